"""Free list of an array: pieces of it are given out, and taken back."""

from __future__ import annotations

from bisect import insort


class FreeList:
    """The free pieces of `size` elements. What is given back joins its neighbours."""

    def __init__(self, size: int) -> None:
        self._free = [(0, size)]

    def take(self, count: int) -> int | None:
        """Take the first `count` free elements that lie together; return the first one's index, or None if there is no
        room."""
        for index, (start, free) in enumerate(self._free):
            if free >= count:
                self._free[index : index + 1] = [(start + count, free - count)] if free > count else []
                return start
        return None

    def give_back(self, start: int, count: int) -> None:
        insort(self._free, (start, count))
        joined: list[tuple[int, int]] = []
        for at, free in self._free:
            if joined and sum(joined[-1]) == at:
                joined[-1] = (joined[-1][0], joined[-1][1] + free)
            else:
                joined.append((at, free))
        self._free = joined
