"""Words for who holds something: "struct machine.kmaps, in a block from machine__new_host machine.c:155"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracer.model.findings import FrameList, Growing, Holder
from tracer.report.amounts import size
from tracer.report.names import innermost, shorten
from tracer.report.page import Page
from tracer.report.source_location import first_named
from tracer.report.stack_lines import name, place

_MOST, _MOST_NAME = 5, 60
"""Of holders, and of a function's or a type's name: those of C++ have hundreds of characters."""
FREED, OTHER = "freed-block", "other"


def holder_words(holder: Holder, *, narrow: bool = False) -> str:
    """Return what a holder is, as a phrase without its count. `narrow`: its functions without their namespaces."""
    if holder.kind == OTHER:
        return "elsewhere"
    if holder.kind in ("global", "thread-local"):
        text = _variable(holder)
    elif holder.kind in ("stack", "register"):
        text = _of_thread(holder, narrow)
    else:
        text = _block(holder, narrow)
    return f"{text} (points into the middle)" if holder.interior else text


def _variable(holder: Holder) -> str:
    if holder.name:
        return f"{holder.name} [{holder.module}]" if holder.module else holder.name
    what = "thread-local storage" if holder.kind == "thread-local" else "a global"
    where = "" if holder.offset is None else f"+{holder.offset:#x}"
    return f"{what}, {holder.module}{where}" if holder.module else what


def _of_thread(holder: Holder, narrow: bool) -> str:
    of = "a thread" if holder.thread is None else f"thread {holder.thread}"
    if holder.kind == "register":
        return f"a register of {of}"
    variable = f"{shorten(holder.name, _MOST_NAME)} on " if holder.name else ""
    return f"{variable}the stack of {of}{_at(', in', holder.stack and holder.stack[:1], narrow)}"


def _block(holder: Holder, narrow: bool) -> str:
    if holder.kind == "mapping":
        return f"memory mapped{_at(' at', own_frames(holder), narrow)}" if holder.stack else "memory of unknown making"
    made, freed = _at(" from", own_frames(holder), narrow), _at(", freed at", freeing_frames(holder), narrow)
    noun = "a freed block" if holder.kind == FREED and not freed else "a block"
    where = "" if holder.offset is None else f" + {holder.offset:#x}"
    if holder.name:
        return f"{shorten(holder.name, _MOST_NAME)}, in {noun}{made}{freed}"
    if holder.type:
        return f"{shorten(holder.type, _MOST_NAME)}{where}, in {noun}{made}{freed}"
    return f"{noun}{made}{where}{freed}"


def own_frames(holder: Holder) -> FrameList | None:
    """Return the frame that says whose block it is; its whole stack, where none does."""
    return _from(holder.stack, holder.own_frame)


def freeing_frames(holder: Holder) -> FrameList | None:
    """Return the same of who freed it."""
    return _from(holder.freed_at, holder.freed_own_frame)


def _from(stack: FrameList | None, own: int | None) -> FrameList | None:
    return stack if own is None or stack is None else stack[own : own + 1]


def _at(word: str, stack: FrameList | None, narrow: bool) -> str:
    frame = first_named(stack or ())
    if frame is None:
        return ""
    function = innermost(name(frame), 1) if narrow else shorten(name(frame), _MOST_NAME)
    return f"{word} {function} {place(frame)}".rstrip()


def growing_lines(growing: Growing | None, grow: str = "grow", *, narrow: bool = False) -> list[str]:
    """Return "91 % of the 2.1 MiB that grow are retained by cache.table [session]", one line for each. `grow`: how that
    is said."""
    if growing is None or not growing.bytes:
        return []
    return [
        f"{100 * one.bytes // growing.bytes} % of the {size(growing.bytes)} that {grow} are retained by "
        f"{holder_words(one.holder, narrow=narrow)}"
        for one in growing.retainers
    ]


def is_held(holders: Sequence[Holder] | None) -> bool:
    """Tell whether somebody is known who holds it now."""
    return any(holder.kind != FREED for holder in holders or ())


def held_by(holders: Sequence[Holder] | None) -> list[str]:
    """Return a line for each holder, most first, for formats that list them."""
    live, freed = _apart(holders)
    lines = [("held by", *row) for row in live] + [("last held by", *row) for row in freed]
    return [f"{words} {holder}: {count:,}" for words, holder, count in lines]


def held_by_since(holders: Sequence[Holder] | None, before: Sequence[Holder] | None) -> list[str]:
    """Return the same lines with what each count grew by: "held by cache.table [srv]: 90 (+50)". `before`: who held it
    then, None where that is not known."""
    if holders is None or before is None:
        return held_by(holders)
    lines = []
    for words, now, then in zip(("held by", "last held by"), _apart(holders), _apart(before), strict=True):
        counts, old = dict(now), dict(then)
        counts |= {holder: 0 for holder in old if holder not in counts}
        for holder, count in counts.items():
            more = count - old.get(holder, 0)
            lines.append(f"{words} {holder}: {count:,}{f' ({more:+,})' if more else ''}")
    return lines


def add_holders(page: Page, holders: Sequence[Holder] | None) -> None:
    """Add who holds something, most first; who held it last where nothing does any more."""
    live, freed = _apart(holders)
    _add(page, "held by", live)
    _add(page, "last held by", freed)


def _apart(holders: Sequence[Holder] | None) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return words and counts of those that hold something now, and of those that held it last; those that only places
    tell apart which are not said are one."""
    sums: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    for holder in holders or ():
        sums[holder.kind == FREED][holder_words(holder)] += holder.count
    return sums[False].most_common(), sums[True].most_common()


def _add(page: Page, words: str, holders: list[tuple[str, int]]) -> None:
    if not holders:
        return
    if len(holders) == 1 and holders[0][1] == 1:
        page.paragraph(f"{words} {holders[0][0]}", "      ", "    ")
        return
    page.line(f"    {words}")
    column = len(f"{max(count for _, count in holders):,}")
    for holder, count in holders[:_MOST]:
        page.paragraph(holder, " " * (column + 8), f"      {count:>{column},}  ")
    rest = sum(count for _, count in holders[_MOST:])
    if rest:
        page.line(f"      {rest:>{column},}  elsewhere")
