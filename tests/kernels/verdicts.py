"""What tests/kernel/test_every_kernel.py found on each kernel, side by side."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

TESTS = "tests/kernel/test_every_kernel.py"
Verdicts = Mapping[str, tuple[str, Sequence[str]]]
"""What was traced, to the verdict and the entries: JSON of id, kind, state, type, count and bytes each."""
Summary = Mapping[str, Sequence[str]]
"""The same with two strings each: the verdict, and how many entries there are with a digest of them."""
_MOST_DIFFERENCES = 5


def read_verdicts(junit: Path) -> Verdicts:
    """Read what the tests recorded in pytest's JUnit file; nothing of tests that did not pass."""
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (FileNotFoundError, ElementTree.ParseError):
        return {}
    found = {}
    for case in cases:
        recorded = {item.get("name"): item.get("value", "") for item in case.iter("property")}
        if "verdict" in recorded and case.find("failure") is None and case.find("error") is None:
            entries = [json.dumps(entry) for entry in json.loads(recorded["entries"])]
            name = case.get("name", "").removeprefix("test_").replace("_", " ")
            found[name] = recorded["verdict"], entries
    return found


def summary(verdicts: Verdicts) -> Summary:
    return {name: [verdict, _told(entries)] for name, (verdict, entries) in verdicts.items()}


def _told(entries: Sequence[str]) -> str:
    digest = sha256("\n".join(entries).encode()).hexdigest()[:8]
    return f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'} ({digest})"


def differences(first: Verdicts, second: Verdicts) -> Iterator[str]:
    """Tell what a kernel found otherwise than another: a line each, few of each program."""
    for name, (verdict, entries) in first.items():
        if name not in second:
            yield f"{name}: there is no verdict"
            continue
        if second[name][0] != verdict:
            yield f"{name}: {second[name][0]}, and not {verdict}"
        missing, more = set(entries) - set(second[name][1]), set(second[name][1]) - set(entries)
        lines = [*(f"{name}: lacks {entry}" for entry in missing), *(f"{name}: has also {entry}" for entry in more)]
        yield from sorted(lines)[:_MOST_DIFFERENCES]


def side_by_side(found: Mapping[str, Summary]) -> str:
    """Return a Markdown table: what the first kernel found, and whether each other found the same."""
    if not found:
        return ""
    kernels = list(found)
    reference = found[kernels[0]]
    rows = [
        f"| {name} | {verdict} | {entries} | "
        + " | ".join(_compared([verdict, entries], found[kernel].get(name)) for kernel in kernels[1:]) + " |"
        for name, (verdict, entries) in reference.items()
    ]  # fmt: skip
    head = f"| | on {kernels[0]} | | {' | '.join(kernels[1:])} |"
    return "\n".join((head, "|---" * (3 + len(kernels[1:])) + "|", *rows)) + "\n"


def _compared(expected: Sequence[str], found: Sequence[str] | None) -> str:
    if found is None:
        return "none"
    if list(found) == list(expected):
        return "the same"
    return f"{found[0]}, {found[1]}"
