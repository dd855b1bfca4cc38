"""The table of `refleak doctor --programs`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from tabulate import tabulate

from tracer.model.verified import Verified
from tracer.report.page import page_for

_HEADERS = ("program", "instructions", "verified", "stack")


def write_programs(
    programs: Sequence[Verified], stream: TextIO, width: int | None = None, color: bool | None = None
) -> None:
    """Write each program's size, what the verifier had to follow for it, and the bytes of its stack.

    `width`, `color`: as the terminal says where they are None.
    """
    page = page_for(stream, width)
    rows = [_row(program) for program in programs]
    rows.append(("all", _number(sum(p.instructions for p in programs)), _number(sum(p.followed for p in programs)), ""))
    align = ("left", "right", "right", "right")
    for line in tabulate(rows, _HEADERS, tablefmt="simple", disable_numparse=True, colalign=align).splitlines():
        page.line(line)
    page.write(stream, color)


def _number(value: int) -> str:
    return f"{value:,}"


def _row(program: Verified) -> tuple[str, str, str, str]:
    if program.refusal:
        return program.name, _number(program.instructions), "refused", ""
    return program.name, _number(program.instructions), _number(program.followed), _number(program.stack_bytes)


def write_programs_json(programs: Sequence[Verified], stream: TextIO) -> None:
    """Write the same as one JSON document."""
    rows = [
        {
            "name": program.name, "instructions": program.instructions, "verified": program.followed,
            "stack_bytes": program.stack_bytes, "refusal": program.refusal,
            "needed": program.is_needed,
        }
        for program in programs
    ]  # fmt: skip
    json.dump({"format": "refleak-programs", "version": 1, "programs": rows}, stream, indent=1)
    stream.write("\n")
