"""docs/comparison.md and README.md say of costs what docs/performance.md has measured."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PERFORMANCE = (ROOT / "docs/performance.md").read_text()
COMPARISON = (ROOT / "docs/comparison.md").read_text()
PAIRS, PEERS = "malloc+free pairs", "malloc+free pairs beside the peers"
LOADS = "Real loads, as multiples of the untraced run"


def table(heading: str) -> list[list[str]]:
    """Return the rows of a table, the heads first."""
    (text,) = re.findall(rf"^### {re.escape(heading)}$(.*?)^###? ", PERFORMANCE, re.M | re.S)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [rows[0], *rows[2:]]


def column(heading: str, name: str) -> list[str]:
    heads, *rows = table(heading)
    return [row[heads.index(name)] for row in rows]


def microseconds(cells: list[str]) -> str:
    found = [re.match(r"([\d.]+) µs", cell) for cell in cells]
    values = [float(match[1]) for match in found if match]
    assert len(values) >= 3
    return f"{min(values):.1f} to {max(values):.1f} µs per malloc+free"


def times(cells: list[str]) -> str:
    values = [float(cell.split()[0]) for cell in cells]
    return f"{min(values):.0f} to {max(values):.0f} times slower"


def cost(tool: str) -> str:
    (row,) = re.findall(rf"^\| {tool} \|.*\| ([^|]+) \|$", COMPARISON, re.M)
    return str(row)


def test_costs_are_those_of_the_last_run() -> None:
    (memleak,) = (row for row in table(PEERS) if row[0] == "bcc memleak")
    assert cost("refleak") == microseconds(column(PAIRS, "refleak"))
    assert cost("bcc memleak") == microseconds(memleak)
    assert cost("heaptrack") == times(column(LOADS, "heaptrack"))
    assert cost("valgrind memcheck") == times(column(LOADS, "memcheck"))


def test_the_readme_says_the_same() -> None:
    readme = (ROOT / "README.md").read_text()
    assert f"may run {times(column(LOADS, 'memcheck'))}" in readme
    (said,) = re.findall(r"a malloc and its free some ([\d.]+) µs", readme)
    low, high = (float(word) for word in re.findall(r"[\d.]+", cost("refleak")))
    assert low <= float(said) <= high
