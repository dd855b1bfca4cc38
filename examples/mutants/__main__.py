"""Measure on mutants of a program how often refleak names the get that was never put.

    python3 examples/mutants PROGRAM check DIR     run every workload as it is; prove the slots; list the calls that ran
    python3 examples/mutants PROGRAM run DIR       run each of these calls left out, with two workloads each
    python3 examples/mutants PROGRAM score DIR     the table of docs/pairing.md

PROGRAM is perf or dbus. Needs root, and the program as its build.sh makes it. `run --sometimes` leaves a call out one
of four times; with `--memory` blocks are traced as well, and memory is read at the end, as without any option of
refleak. What is there already is not run again, so a run that was stopped goes on, and `score` after a change of the
analysis traces nothing. `score --wrong` lists the entries of the first half whose first reference is another one,
`check --wrong` the lives whose slots do not come out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from call_sites import Code, read_code, write_mutant  # noqa: E402
from dbus_program import Dbus  # noqa: E402
from perf_program import Perf  # noqa: E402
from program import Calls, Program  # noqa: E402
from recordings import Run  # noqa: E402
from score import Scored, Site, print_table, score  # noqa: E402

from tracer.analysis.lives import Life  # noqa: E402

PROGRAMS: dict[str, type[Program]] = {"perf": Perf, "dbus": Dbus}
REFS_ONLY = ("--refs-only",)
_MOST_CALLS = 30_000
"""Of the call in a workload: more only make the run longer."""
_KEPT = 4
"""Frames of a site's stack, leaf first."""
_MOST_SECONDS = 120
"""Of a run: a mutant may wait for ever."""


def trace(
    program: Program, out: Path, binary: Path, name: str, recording: Path, what: Sequence[str] = REFS_ONLY
) -> None:
    """Trace a workload with a binary, unless it is there. `what`: the options that say what is traced."""
    if recording.exists() and recording.stat().st_size:
        return
    options = ["--user", "root", *program.options, *what, "--top", "1", "-o", str(recording)]
    traced = [str(ROOT / "refleak"), *options, "--exec", str(binary), *program.workloads(out)[name]]
    command = program.command(out, name, traced)
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=program.environment(out), timeout=_MOST_SECONDS
        )


def check(program: Program, out: Path, show_wrong: bool) -> None:
    """Write sites.json: the calls of puts that the workloads execute, and how often."""
    program.prepare(out)
    code = read_code(program)
    sites: dict[int, Site] = {}
    proven, wrong = Counter[str](), Counter[str]()
    (out / "plain").mkdir(exist_ok=True)
    for name in program.workloads(out):
        recording = out / "plain" / f"{name}.refleak"
        trace(program, out, program.binary, name, recording)
        traced = Run(program, recording)
        for stack, count in traced.put_counts().items():
            address, kind = _site(code, traced.call_addresses(stack), traced.calls(stack))
            if address is not None and kind is not None:
                site = sites.setdefault(address, Site(address, kind, traced.calls(stack)[:_KEPT], {}))
                site.workloads[name] = site.workloads.get(name, 0) + count
        for kind, life in traced.lives():
            if not program.proves(traced.calls(life.gets[0]), [traced.calls(put) for put in life.puts]):
                continue
            lacking = _lacking(program, traced, kind, life)
            (wrong if lacking else proven)[kind] += round(life.objects)
            if lacking and show_wrong:
                print(name, kind, *lacking, sep="\n    ")
    print(f"slots: {proven.total():,} objects that ended took and gave back as many of each; not so: {dict(wrong)}")
    print(", ".join(f"{kind} {count:,}" for kind, count in proven.most_common()))
    print(f"{len(sites)} of {len(code.calls)} calls of puts were executed")
    (out / "sites.json").write_text(json.dumps([site.plain() for site in sites.values()]))


def _site(code: Code, addresses: list[int], calls: Calls) -> tuple[int | None, str | None]:
    """Return the call that a mutant leaves out, and what it gives back."""
    addresses, kind = code.program.put_of(code.function(addresses[0]), calls, addresses)
    address = addresses[0] if addresses and addresses[0] in code.calls else None
    return address, kind or code.program.puts.get(code.calls.get(address or 0, ""))


def run(program: Program, out: Path, sometimes: bool, memory: bool, most: int) -> None:
    """Trace each mutant with the workloads, `most` of them, that the hash of both chooses."""
    code = read_code(program)
    folder, traced = out / _folder(sometimes, memory), () if memory else REFS_ONLY
    folder.mkdir(exist_ok=True)
    binary = folder / program.binary.name
    for site in read_sites(out):
        least = 6 if sometimes else 1
        names = [name for name, count in site.workloads.items() if least <= count < _MOST_CALLS]
        if not names and not sometimes:
            names = list(site.workloads)
        for name in sorted(names, key=lambda name: sha256(f"{site.address:#x}{name}".encode()).digest())[:most]:
            write_mutant(code, site.address, binary, sometimes)
            trace(program, out, binary, name, folder / f"{site.address:#x}.{name}.refleak", traced)


def read_sites(out: Path) -> list[Site]:
    return [Site.read(plain) for plain in json.loads((out / "sites.json").read_text())]


def _folder(sometimes: bool, memory: bool) -> str:
    return ("sometimes" if sometimes else "always") + ("-memory" if memory else "")


def scores(program: Program, out: Path, sometimes: bool, memory: bool) -> Iterator[tuple[Site, Path, Scored]]:
    for site in read_sites(out):
        for recording in sorted((out / _folder(sometimes, memory)).glob(f"{site.address:#x}.*.refleak")):
            name = recording.name.split(".")[1]
            scored = score(program, site, recording, out / "plain" / f"{name}.refleak")
            if scored is not None:
                yield site, recording, scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("what", choices=("check", "run", "score"))
    parser.add_argument("dir", type=Path)
    parser.add_argument("--sometimes", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--workloads", type=int, default=2, help="with how many each call is left out")
    arguments = parser.parse_args()
    program = PROGRAMS[arguments.program]()
    out = arguments.dir.resolve()
    out.mkdir(exist_ok=True)
    if arguments.what == "check":
        check(program, out, arguments.wrong)
    elif arguments.what == "run":
        run(program, out, arguments.sometimes, arguments.memory, arguments.workloads)
    else:
        print_table(program, scores(program, out, arguments.sometimes, arguments.memory), arguments.wrong)


def _lacking(program: Program, run: Run, kind: str, life: Life) -> list[str]:
    """Return what does not come out: gets whose slots no put is left for, and the puts left; nothing where all do."""
    given = Counter[str]()
    for stack, count in zip(life.puts, life.given.tolist(), strict=True):
        given[program.slots.put_slot(kind, run.calls(stack))] += round(count)
    taken = [
        (sorted(program.slots.get_slots(kind, run.calls(stack), row == 0)), stack)
        for row, (stack, count) in enumerate(zip(life.gets, life.taken.tolist(), strict=True))
        for _ in range(round(count))
    ]
    lacking = []
    for slots, stack in sorted(taken, key=lambda one: len(one[0])):
        slot = next((slot for slot in slots if given[slot]), None)
        if slot is None:
            lacking.append(f"got {' or '.join(slots)} at {_said(run.calls(stack))}")
        else:
            given[slot] -= 1
    left = {slot for slot in given if given[slot]}
    places = [stack for stack in life.puts if program.slots.put_slot(kind, run.calls(stack)) in left]
    puts = map(run.calls, places)
    return lacking + [f"put {program.slots.put_slot(kind, calls)} at {_said(calls)}" for calls in puts]


def _said(calls: Calls) -> str:
    return " < ".join(f"{function}:{line}" for function, line in calls[:_KEPT])


if __name__ == "__main__":
    main()
