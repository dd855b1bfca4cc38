"""Other tools that do the same work, as ways to run a program."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from benchmarks.commands import Command, Unmeasured, run, running
from benchmarks.floor import binaries_of
from benchmarks.methods import Method, Outcome, Work
from benchmarks.programs import SOURCES
from benchmarks.settings import CHECKOUT

_READY_SECONDS = 30
_PATIENCE_SECONDS = 8
_SYSTEM_PYTHON = "/usr/bin/python3"


def _tool(*names: str) -> str:
    for name in names:
        if found := shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            return found
    raise Unmeasured("not installed")


class Memleak:
    """bcc's memleak, attached before the program's first instruction, as its -c does not."""

    name, pair_ns = "bcc memleak", 20_000.0

    def run(self, work: Work, seconds: float) -> Outcome:
        tool = _tool("memleak-bpfcc", "memleak")
        with running(work.command, environment=work.environment, held=True) as target:
            command: Command = [_SYSTEM_PYTHON, SOURCES / "bcc_memleak.py", tool, "-p", str(target.pid), "1"]
            variables = {"BCC_KERNEL_SOURCE": str(CHECKOUT / "bpf")}
            with running(command, environment=variables, patience=_PATIENCE_SECONDS) as peer:
                peer.wait_for_words("Top 10 stacks", _READY_SECONDS)
                target.release()
                return Outcome(target.wait(seconds).checked())


class Bpftrace:
    """A script that keeps the same books (leak.bt)."""

    name, pair_ns = "bpftrace script", 20_000.0

    def run(self, work: Work, seconds: float) -> Outcome:
        tool = _tool("bpftrace")
        libc = next((path for path in binaries_of(work.program) if path.name.startswith("libc.so")), None)
        if libc is None:
            raise Unmeasured("the program has no libc of its own")
        with running(work.command, environment=work.environment, held=True) as target:
            script = (SOURCES / "leak.bt").read_text().replace("LIBC", str(libc)).replace("PID", str(target.pid))
            variables = {"__BPFTRACE_NOTIFY_PROBES_ATTACHED": "1", "BPFTRACE_MAP_KEYS_MAX": "1000000"}
            with running([tool, "-e", script], environment=variables, patience=_PATIENCE_SECONDS) as peer:
                peer.wait_for_words("NOTIFY_PROBES_ATTACHED", _READY_SECONDS)
                target.release()
                return Outcome(target.wait(seconds).checked())


class Heaptrack:
    name, pair_ns = "heaptrack", 3_000.0

    def run(self, work: Work, seconds: float) -> Outcome:
        tool = _tool("heaptrack")
        with tempfile.TemporaryDirectory(prefix="refleak-bench-") as folder:
            command = [tool, "-o", Path(folder) / "data", *work.command]
            return Outcome(run(command, seconds, environment=work.environment).checked())


class Memcheck:
    name, pair_ns = "valgrind memcheck", 1_500.0

    def run(self, work: Work, seconds: float) -> Outcome:
        command = [_tool("valgrind"), "-q", "--leak-check=full", *work.command]
        return Outcome(run(command, seconds, environment=work.environment).checked())


class LeakSanitizer:
    name, pair_ns = "LeakSanitizer", 100.0

    def run(self, work: Work, seconds: float) -> Outcome:
        if work.sanitized is None:
            raise Unmeasured("needs the program to be compiled anew")
        environment = {**work.environment, "LSAN_OPTIONS": "exitcode=0"}
        return Outcome(run([work.sanitized, *work.command[1:]], seconds, environment=environment).checked())


def peers() -> list[Method]:
    return [Memleak(), Bpftrace(), Heaptrack(), Memcheck(), LeakSanitizer()]
