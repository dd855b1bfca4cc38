"""From the blocks that were drawn to all blocks.

A block of size s was drawn with the probability p = 1 - exp(-s / N), so it stands for 1 / p blocks: the sums of 1 / p
and of s / p have the true sums as their expectation whatever the sizes are, and those of (1 - p) / p^2, times s^2 for
bytes, estimate their variance (Horvitz and Thompson 1952, for independent draws).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.selection import Sample, Selection

Floats = npt.NDArray[np.float64]
Sizes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Estimated:
    """Runs of blocks, each an element of every array."""

    counts: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint64]
    kept: npt.NDArray[np.int64] | None = None
    """None, and so are all that follow, where nothing was sampled."""
    kept_bytes: Sizes | None = None
    count_variance: Floats | None = None
    bytes_variance: Floats | None = None

    def sample(self, span: slice) -> Sample | None:
        """Return what the estimates of some runs together rest on."""
        if self.kept is None or self.kept_bytes is None or self.count_variance is None or self.bytes_variance is None:
            return None
        return Sample(
            int(self.kept[span].sum()),
            int(self.kept_bytes[span].sum(dtype=np.uint64)),
            float(self.count_variance[span].sum()),
            float(self.bytes_variance[span].sum()),
        )


def weights(sizes: Sizes, selection: Selection) -> Floats:
    """Return for each block how many it stands for."""
    if not selection.is_sampled:
        return np.ones(len(sizes))
    drawn_size = np.maximum(sizes, 1).astype(np.float64)  # as bpf/selection.bpf.h has it
    return np.asarray(-1 / np.expm1(-drawn_size / selection.sample_bytes))


def estimated(sizes: Sizes, starts: npt.NDArray[np.int64], selection: Selection) -> Estimated:
    """Return count and bytes of each run of blocks; run g begins at `starts[g]` and none is empty."""
    kept = np.diff(np.append(starts, len(sizes)))
    kept_bytes = np.add.reduceat(sizes, starts)
    if not selection.is_sampled:
        return Estimated(kept, kept_bytes)
    weight = weights(sizes, selection)
    variance = weight * (weight - 1)
    squares = sizes.astype(np.float64) ** 2
    counts, total, count_variance, bytes_variance = (
        np.add.reduceat(column, starts) for column in (weight, weight * sizes, variance, variance * squares)
    )
    return Estimated(
        np.rint(counts).astype(np.int64), np.rint(total).astype(np.uint64), kept, kept_bytes, count_variance,
        bytes_variance,
    )  # fmt: skip


def alike(count: int, size: int, selection: Selection) -> tuple[int, int]:
    """Estimate count and bytes of drawn blocks of which only the sums are known, as if all had their mean size.

    Exact where they have one size, as those of one stack mostly do. It is how pprof scales what it reads.
    """
    if not selection.is_sampled or count == 0:
        return count, size
    mean = max(size // count, 1)
    weight = float(weights(np.array([mean], dtype=np.uint64), selection)[0])
    return round(count * weight), round(size * weight)
