"""perf 6.1, as examples/perf/build.sh makes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import perf_slots
from program import ROOT, Calls, Program

_HERE = ROOT / "examples/perf"
_DATA = {"plain": "-F 999", "cg": "-F 499 -g", "mem": "-F 499 -d -W", "cgrp": "-F 499 --all-cgroups"}
_PUTS = {
    "map__put": "map", "dso__put": "dso", "thread__put": "thread", "maps__put": "maps", "nsinfo__put": "nsi",
    "mem_info__put": "mi", "perf_cpu_map__put": "cpus", "perf_thread_map__put": "threads", "cgroup__put": "cgrp",
    "comm_str__put": "cs", "cpu_aggr_map__put": "cpus",
}  # fmt: skip
_GETS = {put.removesuffix("put") + "get": kind for put, kind in _PUTS.items()}


class Perf(Program):
    """perf, whose puts end in a stub; it is traced without a spec."""

    binary = _HERE / "build/perf"
    slots = perf_slots
    puts = _PUTS
    gets = _GETS
    put_stub = "__refcnt__put"
    get_stub = "__refcnt__get"
    unused = "cmd_timechart"
    held = perf_slots.HELD

    def workloads(self, out: Path) -> dict[str, list[str]]:
        lines = [line for line in (_HERE / "workloads.txt").read_text().splitlines() if line and line[0] != "#"]
        return {name: arguments.format(out=out).split() for name, arguments in (line.split("|") for line in lines)}

    def prepare(self, out: Path) -> None:
        """Record what the workloads read."""
        for name, options in _DATA.items():
            data = out / f"{name}.data"
            if not data.exists():
                record = [str(self.binary), "record", "-e", "cpu-clock", *options.split(), "-o", str(data)]
                command = [*record, str(_HERE / "load.sh")]
                subprocess.run(command, check=True, capture_output=True, env=self.environment(out))

    def environment(self, out: Path) -> dict[str, str]:
        return {**os.environ, "PERF_CONFIG": "/dev/null", "PERF_BUILDID_DIR": str(out / "build-ids")}

    def family(self, type_name: str) -> str:
        return perf_slots.family(type_name)

    def call_of(
        self, names: Mapping[str, str], function: str | None, calls: Calls, addresses: list[int]
    ) -> tuple[list[int], str | None]:
        """Pass over the stub's call, which is in the get or put: of one that was inlined it is what can be changed."""
        return addresses[function in names :], names.get(calls[0][0])

    def proves(self, birth: Calls, puts: Sequence[Calls]) -> bool:
        """Leave out ring buffers, whose counter is spelled like that of a map, and memory that was used again."""
        return birth[0][0] != "mmap_per_evsel" and all("__init" not in put[0][0] for put in puts)
