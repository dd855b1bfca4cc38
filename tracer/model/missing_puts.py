"""Missing puts: freed holders that no put went with, where a reference went lost unless they only borrowed it."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import numpy.typing as npt

from tracer.model.snapshot import Records, Snapshot
from tracer.model.statistics import NEVER_PUT

_NEAR = 3
"""Calls from the free outwards, its own and what may wrap it, the last of which may have made the put."""
_BORROWED = 0.2
"""Where so many of those that held objects which ended lack a put, such pointers are taken for no references."""
_INNER = 2
"""Frames of the free that must be the same."""
_Place = tuple[int, int, int, tuple[int, ...]]
"""Type, offset in the block, size of that, innermost frames of the free."""


class MissingPuts:
    """`rows`: the FREED_HOLDERs of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.rows = snapshot.freed_holders
        self._stacks = snapshot.stacks
        self._lacks = cache(self._lacks_put)

    def lack_put(self) -> npt.NDArray[np.bool_]:
        """Tell of each row whether no put of the object went with the free: none was made before it by the same call of
        a function near to it."""
        pairs = zip(self.rows["freed"].tolist(), self.rows["put"].tolist(), strict=True)
        return np.array([self._lacks(*pair) for pair in pairs], np.bool_)

    def lost(self) -> Records:
        """Return those of the rows of objects that are left that tell of a lost reference: where others of their kind
        are put as the block is freed, or nothing says otherwise."""
        lacking = self.lack_put()
        kinds = [
            (type_, offset, size, self._frames(freed)[:_INNER])
            for type_, offset, size, freed in self.rows[["type", "offset", "size", "freed"]].tolist()
        ]
        ended, borrowed = Counter[_Place](), Counter[_Place]()
        for kind, (serial, count), lacks in zip(
            kinds, self.rows[["serial", "count"]].tolist(), lacking.tolist(), strict=True
        ):
            if not serial:
                ended[kind] += count
                borrowed[kind] += count * lacks
        is_trusted = [borrowed[kind] <= _BORROWED * ended[kind] for kind in kinds]
        chosen: Records = self.rows[(self.rows["serial"] != 0) & lacking & np.array(is_trusted, np.bool_)]
        return chosen

    def _frames(self, stack: int) -> tuple[int, ...]:
        known = self._stacks.get(stack)
        return tuple(known.frames) if known is not None else ()

    def _lacks_put(self, freed: int, put: int) -> bool:
        """Two stacks with the same frames further out are of one call of the function that these call."""
        if put == NEVER_PUT:
            return True
        outer = 0
        for one, other in zip(reversed(frames := self._frames(freed)), reversed(self._frames(put)), strict=False):
            if one != other:
                break
            outer += 1
        return len(frames) - outer > _NEAR
