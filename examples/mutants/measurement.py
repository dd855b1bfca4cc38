"""The measurement of docs/pairing.md: calls that are executed, mutants that change one, and what is said of each."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from call_sites import Code, read_code, write_mutant
from doubled import NoRoom, write_doubled
from moved import write_moved
from program import ROOT, Calls, Program
from proof import lacking
from recordings import Run, Unfinished
from sites import GET_LEFT_OUT, GET_TWICE, KEPT, LEFT_OUT, PUT_MOVED, PUT_TWICE, Site, read_sites, write_sites

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


def check(program: Program, out: Path, show_wrong: bool) -> int:
    """Write sites.json and get-sites.json: the calls of puts and of gets that workloads execute, and how often. Return
    how many objects ended of which the slots do not come out."""
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
    return wrong.total()


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
    sample: int | None = None
    """Only so many of them, chosen by the hash of their places."""

    def folder(self, out: Path) -> Path:
        words = [] if self.kind == LEFT_OUT else [self.kind]
        return out / "-".join([*words, "sometimes" if self.sometimes else "always", *["memory"] * self.memory])

    def sites(self, program: Program, out: Path) -> list[Site]:
        sites = read_sites(out, self.kind)
        found = [site for site in sites if self.half is None or site.half(program) == self.half]
        return found if self.sample is None else sorted(found, key=lambda site: site.digest(program))[: self.sample]

    def recordings(self, program: Program, out: Path) -> Iterator[tuple[Site, Path, Path]]:
        """Yield each mutant's recordings, and that of the program as it is with the same workload."""
        for site in self.sites(program, out):
            for recording in sorted(self.folder(out).glob(f"{site.address:#x}.*.refleak")):
                yield site, recording, out / "plain" / f"{recording.name.split('.')[1]}.refleak"


Score = TypeVar("Score")


def scored(
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
