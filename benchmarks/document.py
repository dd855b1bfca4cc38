"""The tables in a document, between two markers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables import Table

BEGIN = "<!-- tables of `python -m benchmarks --write`: begin -->"
END = "<!-- tables: end -->"


def markdown(machine: str, tables: Sequence[Table]) -> str:
    """Return a run as Markdown."""
    return "\n\n".join([f"Measured on: {machine}.", *(table.markdown() for table in tables)]) + "\n"


def fill(path: Path, text: str) -> None:
    """Put a run between the markers of a document; raises ValueError where it has none."""
    document = path.read_text()
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no markers {BEGIN} and {END}")
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
