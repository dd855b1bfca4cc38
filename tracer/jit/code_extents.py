"""Ranges of code that lie so close together that they are one."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.model.addresses import Range


def joined(ranges: Iterable[Range], most_between: int) -> list[Range]:
    """Return ranges, given by ascending start, with those that overlap or have at most so many bytes between them as
    one."""
    found: list[Range] = []
    for start, end in ranges:
        if found and start <= found[-1][1] + most_between:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
