"""Selection of the blocks that a trace keeps, and what those that were drawn stand for."""

from __future__ import annotations

import math

from tracer.late_dataclasses import dataclass

ANY_SIZE = 2**64 - 1


@dataclass(frozen=True)
class Selection:
    """What the kernel side was told. Sizes in bytes; counted objects and mappings are all kept."""

    min_size: int = 0
    max_size: int = ANY_SIZE
    sample_bytes: int = 0
    """A block of size s is drawn with the probability 1 - exp(-s / sample_bytes); 0: all are kept."""

    @property
    def is_sampled(self) -> bool:
        return self.sample_bytes > 0

    @property
    def is_by_size(self) -> bool:
        return self.min_size > 0 or self.max_size < ANY_SIZE

    @property
    def keeps_all(self) -> bool:
        return not self.is_sampled and not self.is_by_size


KEEPS_ALL = Selection()


@dataclass(frozen=True)
class Sample:
    """The blocks that an estimate rests on, and its variance.

    Samples of different blocks add up, since each was drawn independently.
    """

    count: int = 0
    """Blocks that were drawn."""
    bytes: int = 0
    count_variance: float = 0.0
    bytes_variance: float = 0.0

    def __add__(self, other: Sample) -> Sample:
        return Sample(
            self.count + other.count,
            self.bytes + other.bytes,
            self.count_variance + other.count_variance,
            self.bytes_variance + other.bytes_variance,
        )

    @property
    def count_error(self) -> int:
        """Standard error of the estimated number of blocks, rounded."""
        return round(math.sqrt(self.count_variance))

    @property
    def bytes_error(self) -> int:
        return round(math.sqrt(self.bytes_variance))
