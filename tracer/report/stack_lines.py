"""Stacks as lines: function, place, and whose code it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath

from tracer.model.findings import FrameList, Leak, StackCount
from tracer.model.frames import NO_SYMBOL, Frame
from tracer.report.names import shorten
from tracer.report.page import Page, Span

_OWN = "  <-- your code"
_INDENT = 6
_HEAD, _TAIL = 24, 8
_LEAST_ROOM = 16
"""For a name, with its place on the same line."""
_BELOW_MAIN = ("_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread")
_STATUS_SENTENCES = {
    "truncated": "stack cut here: deeper than the tracer follows",
    "no-table": "stack cut here: the next caller has no unwind table",
    "fault": "stack cut here: its memory could not be read",
    "unsupported": "stack cut here: an unwind rule that is not supported",
    "lost": "stack not kept",
}


def add_stack(page: Page, stack: FrameList, own: int | None = None, status: str = "complete") -> None:
    """Add a stack, leaf first, then a line on why it is not whole, if so."""
    shown = _without_start(stack)
    frames: list[Frame | int] = list(shown)
    if len(shown) > _HEAD + _TAIL + 1:
        frames[_HEAD:-_TAIL] = [len(shown) - _HEAD - _TAIL]
    places = [place(frame) for frame in frames if isinstance(frame, Frame)]
    longest = max((len(text) for text in places), default=0)
    names = max((len(name(frame)) for frame in frames if isinstance(frame, Frame)), default=0)
    column = min(names, max(_LEAST_ROOM, page.width - _INDENT - 2 - longest - (len(_OWN) if own is not None else 0)))
    for index, frame in enumerate(frames):
        if isinstance(frame, int):
            page.line(" " * _INDENT, Span(f"... {frame:,} more frames ...", "dim"))
        else:
            mine = own is not None and index == own < len(frames) and frame is stack[own]
            _add_frame(page, frame, mine, column)
    sentence = _STATUS_SENTENCES.get(status)
    if sentence:
        page.heading(f"({sentence})", "warn", " " * (_INDENT + 1), " " * _INDENT)


def _add_frame(page: Page, frame: Frame, mine: bool, column: int) -> None:
    """A name that is longer than the column pushes its place to the right rather than lose what still fits; a place for
    which there is no room stands on a line of its own."""
    mark = _OWN if mine else ""
    room = page.width - _INDENT - 2 - len(place(frame)) - len(mark)
    if room < min(_LEAST_ROOM, len(name(frame))):
        page.line(" " * _INDENT, shorten(name(frame), page.width - _INDENT))
        page.line(" " * (_INDENT + 2), place(frame), Span(mark, "bold" if mine else "dim"))
        return
    text = f"{shorten(name(frame), room):<{min(column, room)}}  {place(frame)}"
    remark = _remark(frame)
    if remark and _INDENT + len(text) + len(mark) + len(remark) + 2 <= page.width:
        mark += f", {remark}" if mine else f"  ({remark})"
    page.line(" " * _INDENT, text, Span(mark, "bold" if mine else "dim"))


def _without_start(stack: FrameList) -> FrameList:
    """Leave out what is below `main` or a thread's first function: the same in every stack."""
    end = len(stack)
    while end > 1 and _is_start(stack[end - 1]):
        end -= 1
    below_main = end > 0 and stack[end - 1].function == "main"
    return stack[:end] if below_main or all(frame.function for frame in stack[end:]) else stack


def _is_start(frame: Frame) -> bool:
    nameless_libc = frame.function is None and (frame.module or "").startswith("libc.")
    return nameless_libc or frame.function in _BELOW_MAIN


def name(frame: Frame) -> str:
    """Return the function, or binary+address, or the bare address: never a neighbour's name."""
    if frame.function:
        return frame.function
    return f"{frame.module}+{frame.address:#x}" if frame.module else f"{frame.address:#x}"


def place(frame: Frame) -> str:
    """Return file:line, else the binary, else why there is no name; that there is no symbol is said once, elsewhere."""
    if frame.file:
        base = PurePath(frame.file).name or frame.file
        return base if frame.line is None else f"{base}:{frame.line}"
    if frame.function:
        return f"[{frame.module}]" if frame.module else ""
    said_once = frame.module and frame.why_unknown == NO_SYMBOL
    return f"({frame.why_unknown})" if frame.why_unknown and not said_once else ""


def _remark(frame: Frame) -> str:
    if frame.inlined:
        return "inlined"
    return frame.language or frame.kind if frame.kind != "native" else ""


def chain(stack: FrameList, room: int, own: int | None = None, most: int = 4) -> list[str]:
    """Return a stack as lines of `f a.c:1 < g b.c:2 < ...`, each at most `room` wide unless one frame forces it. `own`:
    the index of a frame that is shown wherever it stands."""
    shown = _without_start(stack)
    parts = [_joined(frame, room) for frame in shown[:most]]
    if own is not None and most <= own < len(shown):
        parts[most - 1 :] = [*(["..."] if own > most else [parts[-1]]), _joined(shown[own], room)]
        most = own + 1
    parts = [*parts, *(["..."] if len(shown) > most else [])] or ["(stack not kept)"]
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 3 + len(part) <= room:
            lines[-1] += f" < {part}"
        else:
            lines.append(f"< {part}")
    return lines


def read_alike(calls: Iterable[StackCount], room: int) -> list[tuple[tuple[str, ...], int]]:
    """Return the lines of `chain` with how many calls they stand for, most first: no lines twice."""
    return _summed((chain(call.stack, room), call.count) for call in calls)


def births_alike(leaks: Iterable[Leak], room: int) -> list[tuple[tuple[str, ...], int]]:
    """Return the same of where entries were made, with the frame in each that is the user's own."""
    return _summed((chain(leak.stack, room, leak.own_frame), leak.count) for leak in leaks)


def _summed(counted: Iterable[tuple[list[str], int]]) -> list[tuple[tuple[str, ...], int]]:
    counts: Counter[tuple[str, ...]] = Counter()
    for lines, count in counted:
        counts[tuple(lines)] += count
    return counts.most_common()


def _joined(frame: Frame, room: int) -> str:
    at = place(frame)
    return f"{shorten(name(frame), max(16, room - len(at) - 5))} {at}".rstrip()
