"""Holders of an entry that are put together when they are first asked for: of most entries nobody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from tracer.model.findings import Holder

Key = Sequence[int]


class LateHolders(Sequence[Holder]):
    """Equal to the tuple of holders that it stands for, and pickled as that."""

    __slots__ = ("_find", "_found", "_key")

    def __init__(self, find: Callable[[Key], tuple[Holder, ...]], key: Key) -> None:
        self._find, self._key = find, key
        self._found: tuple[Holder, ...] | None = None

    @property
    def whole(self) -> tuple[Holder, ...]:
        """The holders: the same tuple for entries that are held alike, where `find` keeps what it finds."""
        if self._found is None:
            self._found = self._find(self._key)
        return self._found

    def __len__(self) -> int:
        return len(self.whole)

    def __iter__(self) -> Iterator[Holder]:
        return iter(self.whole)

    @overload
    def __getitem__(self, place: int) -> Holder: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Holder, ...]: ...
    def __getitem__(self, place: int | slice) -> Holder | tuple[Holder, ...]:
        return self.whole[place]

    def __eq__(self, other: object) -> bool:
        return self.whole == (other.whole if isinstance(other, LateHolders) else other)

    def __hash__(self) -> int:
        return hash(self.whole)

    def __repr__(self) -> str:
        return repr(self.whole)

    def __reduce__(self) -> tuple[type, tuple[tuple[Holder, ...]]]:
        return tuple, (self.whole,)


def whole(holders: Sequence[Holder] | None) -> Sequence[Holder] | None:
    """Return what a LateHolders stands for, and anything else as it is."""
    return holders.whole if isinstance(holders, LateHolders) else holders
