"""The references that were never put, and where those of healthy objects were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tracer.model.findings import ErrorFinding, Leak, UnpairedGet
from tracer.report.amounts import counted
from tracer.report.page import Page
from tracer.report.stack_lines import chain, read_alike
from tracer.report.unpaired_sentence import accused, certainty

_INDENT = 6
_MOST_ENDS = 3


def add_unpaired(page: Page, leak: Leak) -> None:
    """Add the references that were never put, the surest first; where healthy objects ended, if that says more."""
    for number, get in enumerate(_read_alike(page, leak.unpaired)):
        _add_get(page, leak, get, first=number == 0)
    certain = any(get.confidence != "weak" and get.stack != leak.callers for get in leak.unpaired)
    if leak.healthy and not certain:
        _add_ends(page, leak)


def _read_alike(page: Page, gets: Iterable[UnpairedGet]) -> list[UnpairedGet]:
    """Sum those that would be printed twice with the same words."""
    found: dict[tuple[str, ...], UnpairedGet] = {}
    for get in gets:
        words = (certainty(get), get.reason, *_chain(page, get))
        before = found.get(words)
        found[words] = get if before is None else replace(before, count=before.count + get.count)
    return list(found.values())


def _chain(page: Page, get: UnpairedGet) -> list[str]:
    own = get.stack.index(get.taken_for) if get.taken_for is not None else None
    return chain(get.stack, page.width - _INDENT, own)


def _add_ends(page: Page, leak: Leak) -> None:
    page.line(f"    {counted(sum(end.count for end in leak.healthy), 'object')} created there ended at")
    column = len(f"{max(end.count for end in leak.healthy):,}")
    read = read_alike(leak.healthy, page.width - column - 8)
    for lines, count in read[:_MOST_ENDS]:
        lead = f"      {count:,}  "
        for index, line in enumerate(lines):
            page.line(lead if index == 0 else " " * len(lead), line)
    rest = read[_MOST_ENDS:]
    if rest:
        page.line(f"      {sum(count for _, count in rest):,}  elsewhere")


def _add_get(page: Page, leak: Leak, get: UnpairedGet, first: bool) -> None:
    rank = "never put" if first or get.confidence != "weak" else "or never put"
    page.heading(f"    {rank}: {accused(leak, get)} [{certainty(get)}]", "bad" if first else "warn", "      ")
    for line in _chain(page, get):
        page.line(" " * _INDENT, line)
    page.paragraph(get.reason, " " * _INDENT)


def add_probable_put(page: Page, error: ErrorFinding) -> None:
    """Add the put that was probably one too many, if it is known."""
    if error.probably is None:
        return
    same = error.probably == error.stack
    page.line("    probably one too many", ": this very put" if same else "")
    if not same:
        for line in chain(error.probably, page.width - _INDENT):
            page.line(" " * _INDENT, line)
    if error.reason:
        page.paragraph(error.reason, " " * _INDENT)
