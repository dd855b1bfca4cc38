"""What a suite gave on a kernel, from pytest's JUnit file, and the table of all of them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- begin: written by make test-kernels -->", "<!-- end -->"
_HEAD = "| kernel | release | suite | passed | failed | skipped | seconds | |"
_FAILURES = ("failure", "error")


@dataclass(frozen=True)
class Outcome:
    """How a suite went on one kernel."""

    version: str
    release: str
    suite: str
    passed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()
    """Names of the tests."""
    seconds: float = 0.0
    problem: str = ""
    """Why there is no result."""

    @property
    def is_good(self) -> bool:
        """A skip is a failure too: a kernel that lacks what a test needs has no such test in its list."""
        return self.passed > 0 and not self.failed and not self.skipped and not self.problem


def read_outcome(version: str, release: str, suite: str, junit: Path) -> Outcome:
    """Read a JUnit file as pytest writes it; one that is not there or cut short gives an Outcome with a problem."""
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except FileNotFoundError:
        return Outcome(version, release, suite, problem="the machine wrote no result")
    except ElementTree.ParseError:
        return Outcome(version, release, suite, problem="the machine's result is cut short")
    names = {_name(case) for case in cases}  # one whose teardown fails too is there twice
    failed = dict.fromkeys(_name(case) for case in cases if any(case.find(kind) is not None for kind in _FAILURES))
    skipped = sum(case.find("skipped") is not None for case in cases)
    seconds = sum(float(case.get("time", 0)) for case in cases)
    passed = len(names) - skipped - len(failed)
    problem = "" if cases else "no test was run"
    return Outcome(version, release, suite, passed, skipped, tuple(failed), seconds, problem)


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name', '')}"


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a Markdown table with a row per kernel."""
    return _with_head([_row(outcome) for outcome in outcomes])


def _row(outcome: Outcome) -> str:
    numbers = outcome.passed, len(outcome.failed), outcome.skipped, round(outcome.seconds)
    cells = outcome.version, outcome.release, outcome.suite, *map(str, numbers), _remark(outcome)
    return f"| {' | '.join(cells)} |"


def _with_head(rows: Sequence[str]) -> str:
    return "\n".join((_HEAD, "|---|---|---|---|---|---|---|---|", *rows)) + "\n"


def _remark(outcome: Outcome) -> str:
    if outcome.problem:
        return outcome.problem
    return "all pass" if outcome.is_good else ", ".join(outcome.failed[:3]) + (", ..." if outcome.failed[3:] else "")


def with_table(document: str, outcomes: Sequence[Outcome]) -> str:
    """Return the document with its table between the marks brought up to date: rows of other kernels stay.

    Raises ValueError where it has no marks.
    """
    begin, end = document.index(BEGIN) + len(BEGIN), document.index(END)
    rows = {_version(row): row for row in document[begin:end].splitlines() if re.match(r"\| \d", row)}
    rows |= {outcome.version: _row(outcome) for outcome in outcomes}
    ordered = [rows[version] for version in sorted(rows, key=lambda version: [int(n) for n in version.split(".")])]
    return f"{document[:begin]}\n\n{_with_head(ordered)}\n{document[end:]}"


def _version(row: str) -> str:
    return row.split("|")[1].strip()
