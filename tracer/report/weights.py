"""Weights of call paths: what is outstanding, with the same entries and sums in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from tracer.late_dataclasses import dataclass
from tracer.model.findings import Findings, Leak
from tracer.model.visible import visible
from tracer.report.class_words import is_listed
from tracer.report.stack_lines import name

STACK_NOT_KEPT = "(stack not kept)"


@dataclass(frozen=True)
class Weight:
    count: int = 0
    bytes: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.count + other.count, self.bytes + other.bytes)


NOTHING = Weight()


@dataclass(frozen=True)
class CallPath:
    """One entry and the names on its way, outermost first: process, functions, and for references the type."""

    leak: Leak
    names: tuple[str, ...]

    @property
    def weight(self) -> Weight:
        return weight(self.leak)


def reported(findings: Findings) -> tuple[Leak, ...]:
    """Return the entries that every format gives and sums: not suppressed, and not a fork's copies of its parent's."""
    return tuple(leak for leak in findings.leaks if leak.state != "inherited")


def listed(findings: Findings, show: Sequence[str]) -> list[Leak]:
    """Return those that are listed one by one, where each is one more thing for people to look at. `show`: classes of
    memory."""
    return [leak for leak in reported(findings) if is_listed(leak, findings, show)]


def weight(leak: Leak) -> Weight:
    return Weight(leak.count, leak.bytes or 0)


def total(leaks: Iterable[Leak]) -> Weight:
    return sum(map(weight, leaks), NOTHING)


def call_paths(findings: Findings) -> list[CallPath]:
    """Return one path per reported entry, in the order of the entries."""
    processes = process_names(findings)
    return [CallPath(leak, (processes.get(leak.pid, f"pid {leak.pid}"), *_names(leak))) for leak in reported(findings)]


def process_names(findings: Findings) -> dict[int, str]:
    """Return the program of each pid, that of its last exec; with the pid where two processes run the same."""
    programs = _programs(findings)
    users = Counter(programs.values())
    return {pid: f"{program} (pid {pid})" if users[program] > 1 else program for pid, program in programs.items()}


def numbered_names(findings: Findings) -> dict[int, str]:
    """Return the program of each pid, with its number among those of one program from the second on.

    Unlike pids these are the same in the next run, where it starts as many.
    """
    seen: Counter[str] = Counter()
    names = {}
    for pid, program in _programs(findings).items():
        seen[program] += 1
        names[pid] = f"{program} ({seen[program]})" if seen[program] > 1 else program
    return names


def _programs(findings: Findings) -> dict[int, str]:
    started = sorted(findings.processes, key=lambda process: process.started_ns)
    return {process.pid: _program(process.executable, process.command) for process in started}


def _program(executable: str | None, command: tuple[str, ...]) -> str:
    return visible(PurePath(executable or (command[0] if command else "")).name) or "?"


def _names(leak: Leak) -> tuple[str, ...]:
    called = tuple(name(frame) for frame in reversed(leak.stack)) or (STACK_NOT_KEPT,)
    return (*called, f"[{leak.type or 'unknown type'}]") if leak.kind == "reference" else called
