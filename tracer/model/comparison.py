"""What differs between two runs."""

from __future__ import annotations

from dataclasses import dataclass

from tracer.model.findings import FrameList


@dataclass(frozen=True)
class Amount:
    count: int = 0
    bytes: int | None = None
    """None for what has no size: counted objects, errors."""


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

    @property
    def word(self) -> str:
        """Return "new", "gone", "grown", "shrunk" or "same"; what grew in count or in bytes has grown."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        counts = self.after.count - self.before.count
        sizes = (self.after.bytes or 0) - (self.before.bytes or 0)
        if counts > 0 or sizes > 0:
            return "grown"
        return "shrunk" if counts < 0 or sizes < 0 else "same"


@dataclass(frozen=True)
class Comparison:
    """All entries of both, by word, then by what they grew, descending."""

    changes: tuple[Change, ...]

    def of(self, word: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.word == word)

    @property
    def worse(self) -> bool:
        return any(change.word in ("new", "grown") for change in self.changes)
