"""Comparison of two runs."""

from __future__ import annotations

import math

from tracer.late_dataclasses import dataclass
from tracer.model.findings import FrameList

_SURE = 3


@dataclass(frozen=True)
class Amount:
    count: int = 0
    bytes: int | None = None
    """None for what has no size: counted objects, errors."""
    count_error: int = 0
    """Standard error of an estimate; 0 of what was counted."""
    bytes_error: int = 0


@dataclass(frozen=True)
class Change:
    """One entry, all its processes together, before and after."""

    id: str
    kind: str
    """A Leak's kind, or "error"."""
    type: str | None
    """For an error: its kind, and the type it concerns."""
    before: Amount | None
    after: Amount | None
    stack: FrameList
    own_frame: int | None = None
    blind_bytes: int = 0
    """Of a run that has none of it, but has sampled: how much it may well have had, as a standard error.

    A run that draws at N bytes and had s bytes has drawn none of them with the probability exp(-s / N): N."""
    held: Amount | None = None
    """Of what is new or gone: what the other run has of it that something still points at, which takes no part."""

    @property
    def word(self) -> str:
        """Return "new", "gone", "grown", "shrunk" or "same"; what grew in count or in bytes has grown.

        An estimate has grown or shrunk by more than three standard errors, or has not.
        """
        if self.before is None:
            return "new" if self._sign > 0 or not self.blind_bytes else "same"
        if self.after is None:
            return "gone" if self._sign < 0 or not self.blind_bytes else "same"
        return ("same", "grown", "shrunk")[self._sign]

    @property
    def grown(self) -> Amount:
        """Return by how much it grew, negative where it shrank; what has no size has 0 bytes."""
        before, after = self.before or Amount(), self.after or Amount()
        return Amount(after.count - before.count, (after.bytes or 0) - (before.bytes or 0))

    @property
    def _sign(self) -> int:
        """Return 1 where there is more after than before, -1 where there is less, 0 where neither is sure."""
        before, after = self.before or Amount(), self.after or Amount()
        counts, sizes = self.grown.count, self.grown.bytes or 0
        count_error = _SURE * math.hypot(before.count_error, after.count_error)
        bytes_error = _SURE * math.hypot(before.bytes_error, after.bytes_error, self.blind_bytes)
        if self.blind_bytes:  # of the number of blocks that were passed over nothing is known
            counts = 0
        if counts > count_error or sizes > bytes_error:
            return 1
        return -1 if -counts > count_error or -sizes > bytes_error else 0


@dataclass(frozen=True)
class Comparison:
    """All entries of both, by word, then by what they grew, descending."""

    changes: tuple[Change, ...]

    def of(self, word: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.word == word)

    @property
    def worse(self) -> bool:
        return any(change.word in ("new", "grown") for change in self.changes)
