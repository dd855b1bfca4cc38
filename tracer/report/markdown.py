"""Findings for a merge request: Markdown as GitLab, GitHub and Gitea render it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from tracer.model.findings import ErrorFinding, Findings, Leak
from tracer.report.amount_words import amount
from tracer.report.amounts import counted, duration
from tracer.report.cause_entries import CauseEntry, cause_entries, hanging_words, same_cause_words
from tracer.report.class_words import SHOWN, held_lines, state_word
from tracer.report.entry_sentence import error_sentence, leak_sentence, short_place, stack_text
from tracer.report.over_processes import SharedEntry, over_processes
from tracer.report.period_table import period_title, row_place
from tracer.report.scope import command, end
from tracer.report.selection_words import limits, rate
from tracer.report.source_location import main_frame
from tracer.report.trend_words import looked_at, trend_sentence, turnover_sentence
from tracer.report.verdict_line import verdict
from tracer.report.weights import Weight, listed, total

_SIGNS = {"bad": ":x:", "warn": ":warning:", "good": ":white_check_mark:"}


def write_markdown(findings: Findings, stream: TextIO, top: int = 10, show: Sequence[str] = SHOWN) -> None:
    """Write the verdict, a table of the `top` biggest entries with their stacks folded away, and what it rests on.

    Names are the target's to choose, so each stands in a code element, every character that could be markup escaped.
    """
    entries = over_processes(cause_entries(listed(findings, show)))
    said = verdict(findings)
    stream.write(f"## {_SIGNS.get(said.style, '')} {plain(said.text)}\n\n")
    for line in held_lines(findings, show):
        stream.write(f"{plain(line)}\n\n")
    for gap in findings.coverage_gaps:
        stream.write(f"**{plain(gap)}**\n\n")
    if findings.processes:
        ended = f", {end(findings.last_spaces[0])}"
        stream.write(f"{code(command(findings.processes[0]))}{ended}, traced for {duration(findings.duration_ns)}\n\n")
    if looked_at := limits(findings):
        stream.write(f"Only: {plain(looked_at)}.")
        if findings.selection.is_sampled:
            stream.write(f" Blocks: {plain(rate(findings.selection))}; their amounts are estimates.")
        stream.write("\n\n")
    for loss in findings.losses:
        cure = f" (cure: {code(loss.remedy)})" if loss.remedy else ""
        stream.write(f"**Not complete:** {loss.count:,} lost: {plain(loss.reason)}{cure}\n\n")
    if entries:
        _write_table(entries, top, stream)
    for error in findings.errors[:top]:
        _write_error(error, stream)
    if len(findings.errors) > top:
        stream.write(f"and {counted(len(findings.errors) - top, 'more error')}\n\n")
    for number, entry in enumerate(entries[:top], start=1):
        title = f"{number}. {plain(leak_sentence(entry.summed) + entry.where)}"
        _write_details(title, _lines(entry.entry, entry.summed), stream)
    _write_rest(findings, top, stream)


def _write_table(entries: Sequence[SharedEntry], top: int, stream: TextIO) -> None:
    stream.write("| # | kind | type | state | trend | count | bytes | made in | id |\n")
    stream.write("|--:|---|---|---|---|--:|--:|---|---|\n")
    for number, entry in enumerate(entries[:top], start=1):
        leak = entry.summed
        about = "~" if leak.sample else ""
        size = "" if leak.bytes is None else f"{about}{leak.bytes:,}"
        state, word = state_word(leak), (leak.trend and leak.trend.word) or ""
        stream.write(
            f"| {number} | {leak.kind} | {code(leak.type or '?')} | {state} | {word} | {about}{leak.count:,} | {size}"
            f" | {code(short_place(main_frame(leak)))}{entry.where} | {code(leak.id)} |\n"
        )
    if len(entries) > top:
        _write_sum(f"and {counted(len(entries) - top, 'more entry', 'more entries')}", _total(entries[top:]), stream)
    if kept := [leak for entry in entries[:top] for leak in entry.entry.kept]:
        _write_sum("kept alive by these", total(kept), stream)
    _write_sum("**all**", _total(entries), stream)
    stream.write("\n")


def _total(entries: Iterable[SharedEntry]) -> Weight:
    return total(leak for entry in entries for leak in entry.leaks)


def _write_sum(label: str, weight: Weight, stream: TextIO) -> None:
    stream.write(f"| | {label} | | | | {weight.count:,} | {weight.bytes:,} | | |\n")


def _lines(entry: CauseEntry, leak: Leak) -> list[str]:
    """`leak`: what it says of all that it stands for."""
    lines = stack_text(leak.stack)
    for word, calls in (("gets", leak.gets), ("puts", leak.puts)):
        for call in calls[:5]:
            lines += ["", f"{word}: {call.count:,} from", *(f"  {line}" for line in stack_text(call.stack))]
    for call in leak.freed_at[:5]:
        lines += ["", f"freed: {call.count:,} at {looked_at(leak)}", *(f"  {line}" for line in stack_text(call.stack))]
    lines += [sentence for sentence in (turnover_sentence(leak), trend_sentence(leak.trend)) if sentence]
    for get in leak.unpaired:
        lines += ["", f"never put: {counted(get.count, 'get')} ({get.confidence}: {get.reason})"]
        lines += [f"  {line}" for line in stack_text(get.stack)]
    lines += [f"note: {note}" for note in leak.notes]
    if entry.others:
        lines += ["", same_cause_words(entry)]
    for other in entry.others[:5]:
        lines += [f"  {other.count:,}", *(f"  {line}" for line in stack_text(other.stack))]
    return [*lines, *hanging_words(entry)]


def _write_error(error: ErrorFinding, stream: TextIO) -> None:
    lines = stack_text(error.stack)
    stacks = ("released at", error.released_at), ("last got at", error.last_get), ("made at", error.created_at)
    for what, stack in stacks:
        if stack:
            lines += ["", what, *(f"  {line}" for line in stack_text(stack))]
    _write_details(plain(error_sentence(error)), lines, stream)


def _write_details(title: str, lines: Sequence[str], stream: TextIO) -> None:
    body = "\n".join(_entities(line, "&<>") or "&#8203;" for line in lines)
    stream.write(f"<details><summary>{title}</summary>\n<pre>{body}</pre>\n</details>\n\n")


def _write_rest(findings: Findings, top: int, stream: TextIO) -> None:
    if findings.types:
        stream.write("| type | created | gets | puts | destroyed | alive |\n|---|--:|--:|--:|--:|--:|\n")
        for row in findings.types:
            numbers = (row.created, row.gets, row.puts, row.destroyed, row.outstanding)
            stream.write(f"| {code(row.type)} | {' | '.join(f'{number:,}' for number in numbers)} |\n")
        stream.write("\n")
    _write_periods(findings, top, stream)
    if findings.suppressed:
        stream.write(f"Suppressed: {amount(findings.suppressed)}.\n\n")
    for note in findings.notes:
        stream.write(f"Note: {plain(note)}.\n\n")


def _write_periods(findings: Findings, top: int, stream: TextIO) -> None:
    for period in findings.periods:
        stream.write(f"{plain(period_title(period, period is findings.periods[-1]))}\n\n")
        if period.rows:
            stream.write("| made | freed | left | bytes left | made in |\n|--:|--:|--:|--:|---|\n")
        for row in period.rows[:top]:
            freed, size = ("" if n is None else f"{n:,}" for n in (row.freed, row.outstanding_bytes))
            stream.write(f"| {row.made:,} | {freed} | {row.outstanding:,} | {size} | {code(row_place(row))} |\n")
        stream.write("\n" if period.rows else "")


def code(text: str) -> str:
    """Return text as a code element: in backquotes neither a backquote nor the bar of a table could be escaped."""
    return f"<code>{_entities(text)}</code>"


def plain(text: str) -> str:
    return _entities(text, "\\`*_{}[]<>#|~&@!$")


def _entities(text: str, marked: str | None = None) -> str:
    """Write as entities all of `marked`, by default all that is neither letter, digit nor blank; never a line end."""
    return "".join(_entity(c) if _is_markup(c, marked) else _shown(c) for c in text)


def _is_markup(character: str, marked: str | None) -> bool:
    return character in marked if marked is not None else not (character.isalnum() or character == " ")


def _entity(character: str) -> str:
    return f"&#{ord(character)};" if character.isprintable() else _shown(character)


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
