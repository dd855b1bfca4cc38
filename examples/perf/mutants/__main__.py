"""Measure on mutants of perf how often refleak names the get that was never put.

    python3 examples/perf/mutants check DIR     run every workload as it is; prove the slots; list the calls that ran
    python3 examples/perf/mutants run DIR       run each of these calls left out, with two workloads each
    python3 examples/perf/mutants score DIR     the table of docs/pairing.md

Needs root, and perf as examples/perf/build.sh makes it. `run --sometimes` leaves a call out one of four times; with
`--memory` blocks are traced as well, and memory is read at the end, as without any option of refleak. What is
there already is not run again, so a run that was stopped goes on, and `score` after a change of the analysis traces
nothing. With `--wrong` the entries are listed whose first reference is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT)]

from call_sites import KINDS, Perf, read_perf, write_mutant  # noqa: E402
from recordings import Run  # noqa: E402
from score import Scored, Site, print_table, score  # noqa: E402
from slots import Calls, get_slots, put_slot  # noqa: E402

from tracer.analysis.lives import Life  # noqa: E402

PERF = ROOT / "examples/perf/build/perf"
DATA = {"plain": "-F 999", "cg": "-F 499 -g", "mem": "-F 499 -d -W", "cgrp": "-F 499 --all-cgroups"}
REFS_ONLY = ("--refs-only",)
_MOST_CALLS = 30_000
"""Of the call in a workload: more only make the run longer."""


def workloads(out: Path) -> dict[str, list[str]]:
    lines = [line for line in (HERE / "workloads.txt").read_text().splitlines() if line and line[0] != "#"]
    return {name: arguments.format(out=out).split() for name, arguments in (line.split("|") for line in lines)}


def record_data(out: Path) -> None:
    for name, options in DATA.items():
        data = out / f"{name}.data"
        if not data.exists():
            command = [str(PERF), "record", "-e", "cpu-clock", *options.split(), "-o", str(data), str(HERE / "load.sh")]
            subprocess.run(command, check=True, capture_output=True, env=environment(out))


def environment(out: Path) -> dict[str, str]:
    return {**os.environ, "PERF_CONFIG": "/dev/null", "PERF_BUILDID_DIR": str(out / "build-ids")}


def trace(out: Path, perf: Path, arguments: list[str], recording: Path, what: Sequence[str] = REFS_ONLY) -> None:
    """Trace one run, unless it is there. `what`: the options that say what is traced."""
    if recording.exists() and recording.stat().st_size:
        return
    options = ["--user", "root", *what, "--top", "1"]
    command = [str(ROOT / "refleak"), *options, "-o", str(recording), "--exec", str(perf)]
    subprocess.run([*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=environment(out))


def check(out: Path) -> None:
    """Write sites.json: the calls of puts that the workloads execute, and how often."""
    record_data(out)
    perf = read_perf(PERF)
    sites: dict[int, Site] = {}
    proven, wrong = Counter[str](), Counter[str]()
    (out / "plain").mkdir(exist_ok=True)
    for name, arguments in workloads(out).items():
        recording = out / "plain" / f"{name}.refleak"
        trace(out, PERF, arguments, recording)
        traced = Run(recording)
        for stack, count in traced.put_counts().items():
            address, kind = _site(perf, traced.call_addresses(stack), traced.calls(stack))
            if address is not None and kind is not None:
                site = sites.setdefault(address, Site(address, kind, traced.calls(stack)[:4], {}))
                site.workloads[name] = site.workloads.get(name, 0) + count
        for kind, life in traced.lives():
            if traced.calls(life.gets[0])[0][0] == "mmap_per_evsel" or not _ended_by_put(traced, life):
                continue  # a ring buffer, whose counter is spelled like that of a map; memory that was used again
            (proven if _is_balanced(traced, kind, life) else wrong)[kind] += round(life.objects)
    print(f"slots: {proven.total():,} objects that ended took and gave back as many of each; not so: {dict(wrong)}")
    print(f"{len(sites)} of {len(perf.calls)} calls of puts were executed")
    (out / "sites.json").write_text(json.dumps([site.plain() for site in sites.values()]))


def _site(perf: Perf, addresses: list[int], calls: Calls) -> tuple[int | None, str | None]:
    """Return the call that a mutant leaves out, and what it gives back: the call of the put, or of the stub in one that
    was inlined."""
    kind = KINDS.get(calls[0][0])
    if perf.function(addresses[0]) in KINDS:
        addresses = addresses[1:]
    return (addresses[0] if addresses and addresses[0] in perf.calls else None), kind


def run(out: Path, sometimes: bool, memory: bool) -> None:
    """Trace each mutant with the two workloads that the hash of both chooses."""
    perf = read_perf(PERF)
    folder, program, traced = out / _folder(sometimes, memory), out / "perf", () if memory else REFS_ONLY
    folder.mkdir(exist_ok=True)
    for site in read_sites(out):
        least, most = (6, _MOST_CALLS) if sometimes else (1, _MOST_CALLS)
        names = [name for name, count in site.workloads.items() if least <= count < most]
        if not names and not sometimes:
            names = list(site.workloads)
        for name in sorted(names, key=lambda name: sha256(f"{site.address:#x}{name}".encode()).digest())[:2]:
            write_mutant(perf, site.address, program, sometimes)
            trace(out, program, workloads(out)[name], folder / f"{site.address:#x}.{name}.refleak", traced)


def read_sites(out: Path) -> list[Site]:
    return [Site.read(plain) for plain in json.loads((out / "sites.json").read_text())]


def _folder(sometimes: bool, memory: bool) -> str:
    return ("sometimes" if sometimes else "always") + ("-memory" if memory else "")


def scores(out: Path, sometimes: bool, memory: bool) -> Iterator[tuple[Site, Path, Scored]]:
    for site in read_sites(out):
        for recording in sorted((out / _folder(sometimes, memory)).glob(f"{site.address:#x}.*.refleak")):
            name = recording.name.split(".")[1]
            scored = score(site, recording, out / "plain" / f"{name}.refleak")
            if scored is not None:
                yield site, recording, scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "run", "score"))
    parser.add_argument("dir", type=Path)
    parser.add_argument("--sometimes", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    arguments = parser.parse_args()
    out = arguments.dir.resolve()
    out.mkdir(exist_ok=True)
    if arguments.what == "check":
        check(out)
    elif arguments.what == "run":
        run(out, arguments.sometimes, arguments.memory)
    else:
        print_table(scores(out, arguments.sometimes, arguments.memory), arguments.wrong)


def _ended_by_put(traced: Run, life: Life) -> bool:
    return all("__init" not in traced.calls(put)[0][0] for put in life.puts)


def _is_balanced(run: Run, kind: str, life: Life) -> bool:
    given = Counter[str]()
    for stack, count in zip(life.puts, life.given.tolist(), strict=True):
        given[put_slot(kind, run.calls(stack))] += round(count)
    taken = [
        sorted(get_slots(kind, run.calls(stack), row == 0))
        for row, (stack, count) in enumerate(zip(life.gets, life.taken.tolist(), strict=True))
        for _ in range(round(count))
    ]
    for slots in sorted(taken, key=len):
        slot = next((slot for slot in slots if given[slot]), None)
        if slot is None:
            return False
        given[slot] -= 1
    return True


if __name__ == "__main__":
    main()
