"""Score refleak, memcheck and AddressSanitizer on all generated programs: `python -m heap_score` here, as root.

Prints the table of docs/heap-errors.md: of each kind and half, how many bad programs were told at the right lines, and
how many correct twins were told of.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heap_programs import DOUBLE, KINDS, HeapProgram, generate
from peers import SOURCE, Told, told_by_memcheck, told_by_refleak, told_by_sanitizer

CHECKOUT = Path(__file__).parents[3]
TWINS = ("bad", "good")
AT_ONCE = 21
"""Programs that one trace follows, as children of a shell."""
TRIES = 5
"""Until nothing was lost: beside other load a program may run on before its probes are in place, and is not judged."""
Tool = Callable[[HeapProgram, str], Told]
Programs = Sequence[HeapProgram]


def build(folder: Path) -> None:
    (folder / SOURCE).write_text(generate()[0])
    for name, flags in {"plain": [], "sanitized": ["-fsanitize=address"]}.items():
        command = ["g++", "-std=c++17", "-O0", "-g", "-w", "-pthread", *flags, "-o", name, SOURCE]
        subprocess.run(command, cwd=folder, check=True, timeout=300)


def traced(folder: Path, programs: Programs, twin: str) -> dict[tuple[str, str], Told]:
    """Trace some programs and return what was told of each."""
    report = folder / "report.json"
    script = "\n".join(f"{folder}/plain {program.name} {twin}" for program in programs) + "\ntrue\n"
    command = [CHECKOUT / "refleak", "--user", "root", "--heap-only", "-o", report, "--exec", "/bin/sh", "-c", script]
    for _ in range(TRIES):
        subprocess.run(command, capture_output=True, timeout=600, check=False)
        found = json.loads(report.read_text())
        if found["complete"]:
            break
        print(found["lost"], file=sys.stderr, flush=True)
    names = {process["pid"]: process["command"] for process in found["processes"]}
    errors: defaultdict[str, list[Any]] = defaultdict(list)
    for error in found["errors"]:
        errors[" ".join(names[error["pid"]][1:2])].append(error)
    return {(p.name, twin): told_by_refleak({"errors": errors[p.name]}) for p in programs}


def tools(folder: Path, programs: Programs) -> Mapping[str, Tool]:
    by_refleak: dict[tuple[str, str], Told] = {}
    for twin in TWINS:
        for first in range(0, len(programs), AT_ONCE):
            by_refleak |= traced(folder, programs[first : first + AT_ONCE], twin)
    return {
        "refleak": lambda program, twin: by_refleak[program.name, twin],
        "memcheck": lambda program, twin: told_by_memcheck(folder / "plain", program.name, twin, folder),
        "AddressSanitizer": lambda program, twin: told_by_sanitizer(folder / "sanitized", program.name, twin),
    }


def wanted(program: HeapProgram, twin: str, tool: str) -> Told:
    """Return what is right; memcheck has one kind for all frees of what is no live block."""
    kind = "invalid-free" if tool == "memcheck" and program.kind == DOUBLE else program.kind
    return frozenset({(kind, program.offence_line, program.birth_line)} if twin == "bad" else set())


def main() -> None:
    programs = generate()[1]
    right: Counter[tuple[str, bool, str, str]] = Counter()
    of = Counter((program.kind, program.is_scored_only) for program in programs)
    with tempfile.TemporaryDirectory() as name:
        build(Path(name))
        for tool, told in tools(Path(name), programs).items():
            for program in programs:
                for twin in TWINS:
                    found, expected = told(program, twin), wanted(program, twin, tool)
                    right[program.kind, program.is_scored_only, tool, twin] += found == expected
                    if found != expected:
                        print(f"{tool}: {program.name} {twin}: {sorted(found)}", file=sys.stderr, flush=True)
    print("| kind | half | programs | refleak | memcheck | AddressSanitizer |\n|---|---|--:|--:|--:|--:|")
    for kind in KINDS:
        for held_back in (False, True):
            cells = [
                " and ".join(str(right[kind, held_back, tool, twin]) for twin in TWINS)
                for tool in ("refleak", "memcheck", "AddressSanitizer")
            ]
            half = "held back" if held_back else "looked at"
            print(f"| `{kind}` | {half} | {of[kind, held_back]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
