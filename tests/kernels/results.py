"""What a suite gave on a kernel, from pytest's JUnit file, and the table of all of them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

_HEAD = "| kernel | suite | passed | failed | skipped | seconds | where | |"
_FAILURES = ("failure", "error")
_LACKS = "the kernel lacks "
_FEATURES = {"links": "uprobe_multi", "holds": "holds", "nops": "nop5"}
"""Checks of `refleak doctor`, by the names of tests/kernel/features.py."""


@dataclass(frozen=True)
class Outcome:
    """How a suite went on one kernel."""

    version: str
    release: str
    suite: str
    passed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()
    """Names of the tests, also of those that were skipped without the kernel's lacking anything."""
    seconds: float = 0.0
    problem: str = ""
    """Why there is no result: nothing is known of the kernel then."""
    lacks: tuple[str, ...] = ()
    """What the kernel has not (tests/kernel/features.py): what skipped tests need, or what doctor says."""
    told: str = ""
    """What doctor told of the BPF programs."""
    under: str = ""
    """In what the machine was different (tests/kernels/conditions.py)."""
    where: str = ""
    """Emulated, with KVM or on this machine, and beside how much load."""
    costs: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Of each call: nanoseconds traced, and untraced."""
    verdicts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What was found of each program: a summary (tests/kernels/verdicts.py)."""

    @property
    def is_good(self) -> bool:
        """A skip is no failure where the kernel lacks what the test needs."""
        return self.passed > 0 and not self.failed and not self.problem


def read_outcome(version: str, release: str, suite: str, junit: Path) -> Outcome:
    """Read a JUnit file as pytest writes it; one that is not there or cut short gives an Outcome with a problem."""
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except FileNotFoundError:
        return Outcome(version, release, suite, problem="the machine wrote no result")
    except ElementTree.ParseError:
        return Outcome(version, release, suite, problem="the machine's result is cut short")
    names = {_name(case) for case in cases}  # one whose teardown fails too is there twice
    reasons = {_name(case): skip.get("message", "") for case in cases if (skip := case.find("skipped")) is not None}
    lacks = {name: reason.removeprefix(_LACKS) for name, reason in reasons.items() if reason.startswith(_LACKS)}
    bad = (case for case in cases if any(case.find(kind) is not None for kind in _FAILURES))
    failed = dict.fromkeys((*map(_name, bad), *(name for name in reasons if name not in lacks)))
    seconds = sum(float(case.get("time", 0)) for case in cases)
    passed = len(names) - len(lacks) - len(failed)
    problem = "" if cases else "no test was run"
    needed = tuple(sorted(set(lacks.values())))
    return Outcome(version, release, suite, passed, len(lacks), tuple(failed), seconds, problem, needed)


class Told(TypedDict):
    """What of an Outcome `refleak doctor` tells."""

    lacks: tuple[str, ...]
    told: str


def read_doctor(said: str) -> Told:
    """Read what `refleak doctor` printed: what is missing, and how much the verifier had to follow."""
    missing = {words[0] for line in said.splitlines() if (words := line.split())[1:2] == ["missing"]}
    lacks = tuple(sorted(name for check, name in _FEATURES.items() if check in missing))
    followed = re.search(r"(\d+) BPF programs, .* in ([\d,]+) steps", " ".join(said.split()))
    programs = f"{followed[1]} programs in {followed[2]} verified steps" if followed else ""
    return Told(lacks=lacks, told=programs)


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name', '')}"


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a Markdown table with a row per kernel."""
    rows = [_row(outcome) for outcome in outcomes]
    return "\n".join((_HEAD, "|---|---|---|---|---|---|---|---|", *rows)) + "\n"


def _row(outcome: Outcome) -> str:
    numbers = outcome.passed, len(outcome.failed), outcome.skipped, round(outcome.seconds)
    suite = f"{outcome.suite}, {outcome.under}" if outcome.under else outcome.suite
    cells = outcome.release or outcome.version, suite, *map(str, numbers), outcome.where, _remark(outcome)
    return f"| {' | '.join(cells)} |"


def _remark(outcome: Outcome) -> str:
    if outcome.problem:
        return outcome.problem
    if outcome.is_good:
        without = f"without {', '.join(outcome.lacks)}" if outcome.lacks else ""
        return ", ".join(filter(None, ("all pass", outcome.told, without)))
    return ", ".join(outcome.failed[:3]) + (", ..." if outcome.failed[3:] else "")
