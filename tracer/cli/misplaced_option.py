"""A misplaced option: one of refleak's behind the command, which then has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from tracer.cli.choices import SUFFIX
from tracer.report.formats import FORMATS

_OUTPUT = ("-o", "--output")
_OF_REPORTS = (SUFFIX, *(suffix for format_ in FORMATS for suffix in format_.suffixes if format_.name != "text"))


def misplaced_option(command: Sequence[str], options: Collection[str], failed: bool) -> str | None:
    """Return the first word of a command that was seemingly meant for refleak; None where nothing speaks for it.

    That is -o with the name of a report, which the command has not written, and one of refleak's long `options`, if its
    name is of several words and the command `failed`.
    """
    for at, word in enumerate(command[1:], start=1):
        name, _, value = word.partition("=")
        if name in _OUTPUT:
            path = value or next(iter(command[at + 1 :]), "")
            if path.lower().endswith(_OF_REPORTS) and not Path(path).exists():
                return f"{name} {path}"
        elif failed and name in options and "-" in name.lstrip("-"):
            return name
    return None
