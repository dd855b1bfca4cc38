"""The table of `refleak doctor`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from tracer.model.checks import Check, CheckState
from tracer.report.page import Page, Span, page_for

_STYLES = {CheckState.OK: "good", CheckState.MISSING: "bad", CheckState.UNTESTED: "warn"}


def write_checks(
    checks: Sequence[Check], stream: TextIO, width: int | None = None, color: bool | None = None
) -> None:
    """Write one line per check, what to do below those that are not ok, and a verdict.

    `width`, `color`: as the terminal says where they are None.
    """
    page = page_for(stream, width)
    names = max((len(check.name) for check in checks), default=0)
    for check in checks:
        _add(page, check, names)
    page.blank()
    obstacle = next((check for check in checks if check.is_obstacle), None)
    if obstacle is None:
        page.heading("refleak can trace here", "good")
    else:
        page.heading(f"refleak cannot trace here: {obstacle.name}: {obstacle.remedy}", "bad")
    page.write(stream, color)


def _add(page: Page, check: Check, names: int) -> None:
    style = _STYLES[check.state] if check.exit_code or check.state is not CheckState.MISSING else "warn"
    indent = " " * (names + 12)
    at = len(page.lines)
    page.paragraph(check.meaning, indent, " " * len(indent))
    first = page.lines[at][0].text[len(indent) :]
    page.lines[at] = (Span(f"{check.name:<{names}}  "), Span(f"{check.state:<10}", style), Span(first))
    if check.remedy:
        page.paragraph(check.remedy, indent + "   ", indent + "-> ")


def write_checks_json(checks: Sequence[Check], stream: TextIO) -> None:
    """Write the checks and whether refleak can trace as one JSON document."""
    obstacle = next((check for check in checks if check.is_obstacle), None)
    document = {
        "format": "refleak-doctor",
        "version": 1,
        "can_trace": obstacle is None,
        "checks": [asdict(check) for check in checks],
    }
    json.dump(document, stream, indent=1)
    stream.write("\n")
