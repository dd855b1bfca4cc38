"""The references that were never put, and where those of healthy objects were."""

from __future__ import annotations

from tracer.model.findings import ErrorFinding, Leak, UnpairedGet
from tracer.report.amounts import counted
from tracer.report.page import Page
from tracer.report.stack_lines import chain

_INDENT = 6
_MOST_ENDS = 3


def add_unpaired(page: Page, leak: Leak) -> None:
    """Add the references that were never put, the surest first; where healthy objects ended, if that says more."""
    for number, get in enumerate(leak.unpaired):
        _add_get(page, leak, get, first=number == 0)
    certain = any(get.confidence != "weak" and get.stack != leak.stack for get in leak.unpaired)
    if leak.healthy and not certain:
        _add_ends(page, leak)


def _add_ends(page: Page, leak: Leak) -> None:
    page.line(f"    {counted(sum(end.count for end in leak.healthy), 'object')} created there ended at")
    for end in leak.healthy[:_MOST_ENDS]:
        lead = f"      {end.count:,}  "
        for index, line in enumerate(chain(end.stack, page.width - len(lead))):
            page.line(lead if index == 0 else " " * len(lead), line)
    rest = leak.healthy[_MOST_ENDS:]
    if rest:
        page.line(f"      {sum(end.count for end in rest):,}  elsewhere")


def _add_get(page: Page, leak: Leak, get: UnpairedGet, first: bool) -> None:
    birth = get.stack == leak.stack
    what = f"{counted(get.count, 'reference')} of the creator" if birth else counted(get.count, "get")
    rank = "never put" if first or get.confidence != "weak" else "or never put"
    page.heading(f"    {rank}: {what} [{get.confidence}]", "bad" if first else "warn", "      ")
    for line in chain(get.stack, page.width - _INDENT):
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
