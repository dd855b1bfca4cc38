"""The report for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from tracer.model.addresses import Space
from tracer.model.findings import ErrorFinding, Findings, Leak
from tracer.report.alike_processes import ProcessEntries, add_inherited, add_others, add_rest, alike
from tracer.report.amount_words import amount
from tracer.report.amounts import counted
from tracer.report.cause_entries import cause_entries
from tracer.report.class_words import held_lines, is_listed
from tracer.report.entries import add_error, add_leak
from tracer.report.entry_sentence import offender, short_place
from tracer.report.holder_words import growing_lines
from tracer.report.nameless import add_nameless
from tracer.report.page import Page, Span, page_for
from tracer.report.period_table import add_periods
from tracer.report.scope import add_scope, command, end
from tracer.report.text_options import TextOptions
from tracer.report.type_table import add_types
from tracer.report.verdict_line import verdict
from tracer.report.weights import reported

_MOST_PLACES = 3


_DEFAULTS = TextOptions()


def write_text(findings: Findings, stream: TextIO, options: TextOptions = _DEFAULTS) -> None:
    """Write the report: the verdict first and last, and between them what it rests on."""
    page = page_for(stream, options.width)
    _compose(page, findings, options)
    page.write(stream, options.color)


def _compose(page: Page, findings: Findings, options: TextOptions) -> None:
    judged = verdict(findings)
    _add_verdict(page, judged)
    for line in held_lines(findings, options.show):
        page.paragraph(line, "         ", "         ")
    for line in growing_lines(findings.growing):
        page.paragraph(line, "           ", "         ")
    for gap in findings.coverage_gaps:
        page.paragraph(gap, "         ", "         ")
    page.blank()
    add_scope(page, findings)
    add_types(page, findings.types)
    _add_processes(page, findings, options)
    _add_errors(page, findings, options.top)
    add_periods(page, findings, options.top)
    _add_suppressed(page, findings.suppressed)
    add_nameless(page, [*(leak.stack for leak in reported(findings)), *(error.stack for error in findings.errors)])
    _add_notes(page, findings)
    if options.next_command and (findings.leaks or findings.errors):
        page.blank()
        page.paragraph(options.next_command, "      ", "next: ")
    if len(page.lines) > 6:  # in a short one it still stands in sight
        page.blank()
        _add_verdict(page, judged)


def _add_verdict(page: Page, judged: Span) -> None:
    page.heading(judged.text, judged.style, "         ")


def _add_processes(page: Page, findings: Findings, options: TextOptions) -> None:
    top = options.top
    leaks_of: dict[Space, list[Leak]] = {last.space: [] for last in findings.last_spaces}
    root = next(iter(leaks_of), None)
    for leak in findings.leaks:
        leaks_of.setdefault(findings.process_of(leak.space), []).append(leak)
    groups = alike((_entries_of(findings, space, leaks, options) for space, leaks in leaks_of.items() if leaks), root)
    is_alone = sum(map(bool, leaks_of.values())) == 1
    number = 0
    own = sum(bool(group[0].listed) for group in groups)  # the others, of which there is one of each program, come last
    for first, *others in (*groups[: min(top, own)], *groups[own:]):
        listed, inherited = first.listed, first.inherited
        if others and not listed:
            add_inherited(page, (first, *others))
            continue
        if not is_alone or first.space != root:
            _add_process_heading(page, findings, first.space)
        for entry in listed[:top]:
            number += 1
            add_leak(page, number, entry, options.tree)
        if len(listed) > top:
            page.blank()
            more = counted(len(listed) - top, "more entry", "more entries")
            rest = [leak for entry in listed[top:] for leak in entry.leaks]
            page.paragraph(f"and {more}: {amount(rest)} (--top {len(listed)} lists all)")
        if inherited:
            page.blank()
            page.paragraph(f"inherited by fork, no leak: {amount(inherited)}")
        add_others(page, others)
    add_rest(page, groups[top:own], own)


def _entries_of(findings: Findings, space: Space, entries: Sequence[Leak], options: TextOptions) -> ProcessEntries:
    shown = (leak for leak in entries if leak.state != "inherited" and is_listed(leak, findings, options.show))
    process = findings.last_by_space.get(space)
    program = process.command[0] if process is not None and process.command else ""
    return ProcessEntries(space, program, cause_entries(shown), [leak for leak in entries if leak.state == "inherited"])


def _add_process_heading(page: Page, findings: Findings, space: Space) -> None:
    process, pid = findings.last_by_space.get(space), space[0]
    page.blank()
    if process is None:
        page.heading(f"---- pid {pid}")
        return
    parent = f", child of {process.parent}" if process.parent is not None else ""
    page.heading(f"---- pid {pid}{parent}, {end(process)}: {command(process)}", indent="     ")


def _add_errors(page: Page, findings: Findings, top: int) -> None:
    errors = [error for error in findings.errors if error.kind != "reinitialised"]
    for number, error in enumerate(errors[:top], start=1):
        add_error(page, number, error)
    if len(errors) > top:
        page.blank()
        page.line(f"and {counted(len(errors) - top, 'more error')} (--top {len(errors)} lists all)")
    _add_reinitialised(page, [error for error in findings.errors if error.kind == "reinitialised"])


def _add_reinitialised(page: Page, errors: Sequence[ErrorFinding]) -> None:
    """Say once what was initialised again while it was counted: it may be no mistake."""
    if not errors:
        return
    named = [f"{error.count:,} x {error.type} at {short_place(offender(error))}" for error in errors[:_MOST_PLACES]]
    rest = sum(error.count for error in errors[_MOST_PLACES:])
    named += [f"{rest:,} elsewhere"] if rest else []
    page.blank()
    page.paragraph(f"initialised again while counted: {', '.join(named)}. That is no error by itself: the memory may"
                   " have been used again without a traced put or delete", "      ", "note: ")  # fmt: skip


def _add_suppressed(page: Page, suppressed: Sequence[Leak]) -> None:
    if not suppressed:
        return
    by = Counter[str]()
    for leak in suppressed:
        by[leak.suppressed_by or ""] += leak.count
    names = ", ".join(f"{name} ({count:,})" for name, count in sorted(by.items(), key=lambda item: (-item[1], item[0])))
    page.blank()
    page.paragraph(f"suppressed: {amount(suppressed)}: {names}", "            ", "")


def _add_notes(page: Page, findings: Findings) -> None:
    if findings.notes:
        page.blank()
    for note in findings.notes:
        page.paragraph(note, "      ", "note: ")
