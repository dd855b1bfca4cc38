"""Lines that an entry merges: its id knows functions only, but no line may go unsaid."""

from __future__ import annotations

from collections import Counter

from tracer.model.findings import FrameList
from tracer.model.frames import Frame

_MOST = 3


def elsewhere_notes(stack: FrameList, others: list[tuple[FrameList, int, int]]) -> tuple[str, ...]:
    """Say which of the merged come from another line than `stack`. `others`: (stack, count, bytes).

    Bytes of 0 are left out: objects have none.
    """
    if not others:
        return ()
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for frames, count, size in others:
        place = _first_difference(stack, frames)
        if place is not None:
            counts[place] += count
            sizes[place] += size
    places = sorted(counts, key=lambda place: (-sizes[place], -counts[place], place))
    notes = [_sentence(counts[place], sizes[place], place) for place in places[:_MOST]]
    if len(places) > _MOST:
        rest = places[_MOST:]
        lines = "1 other line" if len(rest) == 1 else f"{len(rest):,} other lines"
        notes.append(f"{sum(counts[place] for place in rest):,} more of these from {lines}")
    return tuple(notes)


def _sentence(count: int, size: int, place: str) -> str:
    amount = "" if size == 0 else " (1 byte)" if size == 1 else f" ({size:,} bytes)"
    return f"{count:,} of these{amount} from {place}"


def _first_difference(stack: FrameList, other: FrameList) -> str | None:
    for ours, theirs in zip(stack, other, strict=False):
        if ours == theirs or (theirs.line is not None and (ours.file, ours.line) == (theirs.file, theirs.line)):
            continue  # same line of source: nothing that a reader could tell apart, so look further out
        return _place(theirs)
    return None


def _place(frame: Frame) -> str:
    if frame.file and frame.line is not None:
        return f"{frame.function or frame.module} at {frame.file.rpartition('/')[2]}:{frame.line}"
    if frame.function:
        return f"{frame.function}+{frame.offset or 0:#x}"
    return f"{frame.module or 'unknown code'}+{frame.address:#x}"
