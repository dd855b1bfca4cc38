"""Measure on mutants of a program how often refleak names the get that was never put, or the put that is one too many.

    python3 examples/mutants PROGRAM check DIR     run every workload as it is; prove the slots; list the calls that ran
    python3 examples/mutants PROGRAM run DIR       run each of these calls changed, with two workloads each
    python3 examples/mutants PROGRAM score DIR     the tables of docs/pairing.md

PROGRAM is perf, dbus or glib. Needs root, and the program as its build.sh makes it. `--kind` says what a mutant is: a
put is left out (the default), is made twice, or is made before the last use; a get is made twice, or is left out. `run
--sometimes` changes a call one of four times; with `--memory` blocks are traced as well, and memory is read at the end,
as without any option of refleak. What is there already is not run again, so a run that was stopped goes on, and
`score` after a change of the analysis traces nothing. `score --wrong` lists what is wrong of the first half, `check
--wrong` the lives whose slots do not come out.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from call_sites import Code, read_code, write_mutant  # noqa: E402
from dbus_program import Dbus  # noqa: E402
from doubled import NoRoom, write_doubled  # noqa: E402
from glib_program import Glib  # noqa: E402
from moved import write_moved  # noqa: E402
from perf_program import Perf  # noqa: E402
from program import Calls, Program  # noqa: E402
from proof import lacking  # noqa: E402
from recordings import Run, Unfinished  # noqa: E402
from score import print_table, score  # noqa: E402
from score_extra_puts import print_extra_puts, score_extra_puts  # noqa: E402
from score_moved_puts import print_moved_puts, score_moved_puts  # noqa: E402
from sites import (  # noqa: E402
    GET_LEFT_OUT,
    GET_TWICE,
    KEPT,
    KINDS,
    LEFT_OUT,
    OVER_PUTS,
    PUT_MOVED,
    PUT_TWICE,
    Site,
    read_sites,
    write_sites,
)  # fmt: skip

PROGRAMS: dict[str, type[Program]] = {"perf": Perf, "dbus": Dbus, "glib": Glib}
REFS_ONLY = ("--refs-only",)
_WRITERS = {
    LEFT_OUT: write_mutant, GET_LEFT_OUT: write_mutant, GET_TWICE: write_doubled, PUT_TWICE: write_doubled,
    PUT_MOVED: write_moved,
}  # fmt: skip
_MOST_CALLS = 30_000
"""Of the call in a workload: more only make the run longer."""
_MOST_SECONDS = 60
"""Of a run: a mutant may wait for ever. What was seen until it is killed is recorded."""


def trace(
    program: Program, out: Path, binary: Path, name: str, recording: Path, what: Sequence[str] = REFS_ONLY
) -> None:
    """Trace a workload with a binary, unless it is there. `what`: the options that say what is traced."""
    if recording.exists() and recording.stat().st_size:
        return
    options = ["--user", "root", *program.options, *what, "--top", "1", "-o", str(recording)]
    traced = [str(ROOT / "refleak"), *options, "--exec", str(binary), *program.workloads(out)[name]]
    command = program.command(out, name, traced)
    nothing, environment = subprocess.DEVNULL, program.environment(out)
    with subprocess.Popen(
        command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment, start_new_session=True
    ) as process:
        try:
            process.wait(_MOST_SECONDS)
            return
        except subprocess.TimeoutExpired:
            _kill_all(binary)
        try:
            process.wait(_MOST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            recording.unlink(missing_ok=True)
            print(f"{recording.name}: it did not end", flush=True)


def _kill_all(binary: Path) -> None:
    """Kill the processes that run a program."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "exe").readlink() == binary:
                os.kill(int(process.name), signal.SIGKILL)


def check(program: Program, out: Path, show_wrong: bool) -> None:
    """Write sites.json and get-sites.json: the calls of puts and of gets that workloads execute, and how often."""
    program.prepare(out)
    code = read_code(program)
    puts = Executed(code, program.puts, program.put_stub)
    gets = Executed(code, program.gets, program.get_stub)
    proven, wrong = Counter[str](), Counter[str]()
    (out / "plain").mkdir(exist_ok=True)
    for name in program.workloads(out):
        recording = out / "plain" / f"{name}.refleak"
        trace(program, out, program.binary, name, recording)
        traced = Run(program, recording)
        puts.add(name, traced, traced.put_counts())
        gets.add(name, traced, traced.get_counts())
        for kind, life in traced.lives():
            if not program.proves(traced.calls(life.gets[0]), [traced.calls(put) for put in life.puts]):
                continue
            unanswered = lacking(program, traced, kind, life)
            (wrong if unanswered else proven)[kind] += round(life.objects)
            if unanswered and show_wrong:
                print(name, kind, *unanswered, sep="\n    ")
    print(f"slots: {proven.total():,} objects that ended took and gave back as many of each; not so: {dict(wrong)}")
    print(", ".join(f"{kind} {count:,}" for kind, count in proven.most_common()))
    for what, kind, executed in (("puts", LEFT_OUT, puts), ("gets", GET_TWICE, gets)):
        print(f"{len(executed.sites)} of {executed.all} calls of {what} were executed")
        write_sites(out, kind, executed.sites.values())


class Executed:
    """The calls of gets, or of puts, that workloads execute."""

    def __init__(self, code: Code, names: Mapping[str, str], stub: str | None) -> None:
        self._code = code
        self._names = names
        self._all = code.calls_of(names, stub)
        self.all = len(self._all)
        self.sites: dict[int, Site] = {}

    def add(self, workload: str, traced: Run, counts: Counter[int]) -> None:
        for stack, count in counts.items():
            calls = traced.calls(stack)
            address, kind = self._site(traced.call_addresses(stack), calls)
            if address is not None and kind is not None:
                function = self._code.function(address).split(".")[0]
                depth = next((place for place, (name, _) in enumerate(calls) if name == function), 0) + 1
                site = self.sites.setdefault(address, Site(address, kind, calls[: max(KEPT, depth)], {}, depth))
                site.workloads[workload] = site.workloads.get(workload, 0) + count

    def _site(self, addresses: list[int], calls: Calls) -> tuple[int | None, str | None]:
        """Return the call that a mutant changes, and what it takes or gives back."""
        code, program = self._code, self._code.program
        addresses, kind = program.call_of(self._names, code.function(addresses[0]), calls, addresses)
        address = addresses[0] if addresses and addresses[0] in self._all else None
        return address, kind or self._names.get(code.calls.get(address or 0, ""))


def run(program: Program, out: Path, how: How, most: int) -> None:
    """Trace each mutant with the workloads, `most` of them, that the hash of both chooses."""
    code = read_code(program)
    folder, traced = how.folder(out), () if how.memory else REFS_ONLY
    folder.mkdir(exist_ok=True)
    binary = folder / program.binary.name
    write = _WRITERS[how.kind]
    for site in how.sites(program, out):
        least = 6 if how.sometimes else 1
        names = [name for name, count in site.workloads.items() if least <= count < _MOST_CALLS]
        if not names and not how.sometimes:
            names = list(site.workloads)
        for name in sorted(names, key=lambda name: sha256(f"{site.address:#x}{name}".encode()).digest())[:most]:
            try:
                write(code, site.address, binary, how.sometimes)
            except NoRoom as error:
                print(f"{site.address:#x} is passed over: {error}", flush=True)
                break
            trace(program, out, binary, name, folder / f"{site.address:#x}.{name}.refleak", traced)


@dataclass(frozen=True)
class How:
    """What mutants are, and what of them is traced."""

    kind: str
    sometimes: bool
    memory: bool
    half: int | None = None
    """Only this one's mutants."""

    def folder(self, out: Path) -> Path:
        words = [] if self.kind == LEFT_OUT else [self.kind]
        return out / "-".join([*words, "sometimes" if self.sometimes else "always", *["memory"] * self.memory])

    def sites(self, program: Program, out: Path) -> list[Site]:
        sites = read_sites(out, self.kind)
        return [site for site in sites if self.half is None or site.half(program) == self.half]

    def recordings(self, program: Program, out: Path) -> Iterator[tuple[Site, Path, Path]]:
        """Yield each mutant's recordings, and that of the program as it is with the same workload."""
        for site in self.sites(program, out):
            for recording in sorted(self.folder(out).glob(f"{site.address:#x}.*.refleak")):
                yield site, recording, out / "plain" / f"{recording.name.split('.')[1]}.refleak"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("what", choices=("check", "run", "score"))
    parser.add_argument("dir", type=Path)
    parser.add_argument("--kind", choices=KINDS, default=LEFT_OUT, help="what a mutant is")
    parser.add_argument("--sometimes", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--workloads", type=int, default=2, help="with how many each call is changed")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only the mutants of this half")
    arguments = parser.parse_args()
    program = PROGRAMS[arguments.program]()
    out = arguments.dir.resolve()
    out.mkdir(exist_ok=True)
    how = How(arguments.kind, arguments.sometimes, arguments.memory, arguments.half)
    if arguments.what == "check":
        check(program, out, arguments.wrong)
    elif arguments.what == "run":
        run(program, out, how, arguments.workloads)
    elif how.kind == PUT_MOVED:
        print_moved_puts(program, _scored(score_moved_puts, program, out, how), arguments.wrong)
    elif how.kind in OVER_PUTS:
        print_extra_puts(program, _scored(score_extra_puts, program, out, how), arguments.wrong)
    else:
        print_table(program, _scored(score, program, out, how), arguments.wrong)


Score = TypeVar("Score")


def _scored(
    score: Callable[[Program, str, Site, Path, Path], Score | None], program: Program, out: Path, how: How
) -> Iterator[tuple[Site, Path, Score]]:
    """Yield what can be scored."""
    for site, recording, plain in how.recordings(program, out):
        try:
            scored = score(program, how.kind, site, recording, plain)
        except Unfinished:
            print(f"{recording.name}: the trace did not end")
            continue
        if scored is not None:
            yield site, recording, scored


if __name__ == "__main__":
    main()
