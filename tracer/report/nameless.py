"""Nameless frames, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.model.findings import FrameList
from tracer.model.frames import NO_SYMBOL
from tracer.report.amounts import counted
from tracer.report.page import Page

_MOST = 3


def add_nameless(page: Page, stacks: Iterable[FrameList]) -> None:
    """Say once which binaries lack symbols, and what would name their frames; nothing where none does."""
    places: dict[str, set[int]] = {}
    for frame in {id(frame): frame for stack in stacks for frame in stack}.values():  # stacks have many in common
        if frame.module and frame.function is None and frame.why_unknown == NO_SYMBOL:
            places.setdefault(frame.module, set()).add(frame.address)
    if not places:
        return
    ranked = sorted(places, key=lambda module: (-len(places[module]), module))
    named = ", ".join(f"{module} ({counted(len(places[module]), 'place')})" for module in ranked[:_MOST])
    more = f" and {counted(len(ranked) - _MOST, 'more binary', 'more binaries')}" if len(ranked) > _MOST else ""
    page.blank()
    page.paragraph(
        f"no symbols for {named}{more}: install their debug symbols, or name them with --debug-dir or DEBUGINFOD_URLS",
        "      ", "note: ",
    )  # fmt: skip
