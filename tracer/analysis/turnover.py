"""Totals of what was made and freed at a stack, the survivors aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from tracer.late_dataclasses import dataclass
from tracer.model.records import LIFE_BINS, LIFE_SHIFT
from tracer.model.snapshot import Records, Snapshot
from tracer.model.trends import Durations


@dataclass(frozen=True)
class Turnover:
    """Of one stack, or of several together."""

    made: int
    freed: int
    lives: Durations | None = None
    peak: int | None = None
    """Most that was alive at once; of several stacks no less than that."""
    since_risen: int = 0
    """How many were made after what was alive last rose by more than an eighth."""
    bins: tuple[int, ...] = ()
    """Lives by bin, as in LIFE_BIN; empty where nothing is known of them."""

    def life_quantile(self, share: float) -> int | None:
        """Return the age that about this share of the freed did not outlive, ns; None where it is not known."""
        return None if self.lives is None else _life_quantile(self.bins, share, self.lives)


def _life_quantile(bins: tuple[int, ...], share: float, lives: Durations) -> int | None:
    if not bins or not lives.count or sum(bins) != lives.count:
        return None
    return _quantile(bins, share, lives.min_ns, lives.max_ns)


def _quantile(bins: tuple[int, ...], share: float, least_ns: int, most_ns: int) -> int:
    """Go into the bin in which it lies as far as the share asks for, as if its lives were spread evenly there."""
    wanted, before = share * sum(bins), 0
    for number, count in enumerate(bins):
        if count and before + count >= wanted:
            low = 1 << (LIFE_SHIFT - 1 + number) if number else 0
            high = most_ns if number == LIFE_BINS - 1 else 1 << (LIFE_SHIFT + number)
            inside = low + (high - low) * (wanted - before) / count
            return int(min(max(inside, least_ns), most_ns))
        before += count
    return most_ns


class Turnovers:
    """The turnover by stack; `of` sums it for the stacks that an entry merges: once for those of one program's runs."""

    def __init__(self, stacks: Iterable[int], find: Callable[[int], Turnover]) -> None:
        """`find`: asked of each of these stacks at most once, when an entry merges it."""
        self._stacks, self._find = frozenset(stacks), cache(find)
        self.of = cache(self._of)
        """Return the sum; None where nothing is known of one of them."""
        self.without_peak = cache(self._without_peak)
        """Return the sum, without what of it is not known of some processes only."""

    def _of(self, stacks: tuple[int, ...]) -> Turnover | None:
        if not stacks or not self._stacks.issuperset(stacks):
            return None
        parts = [self._find(stack) for stack in stacks]
        return parts[0] if len(parts) == 1 else _sum(parts)

    def _without_peak(self, stacks: tuple[int, ...]) -> Turnover | None:
        turnover = self.of(stacks)
        return None if turnover is None else replace(turnover, peak=None)


def _sum(parts: list[Turnover]) -> Turnover:
    peaks = [part.peak for part in parts]
    lives = [part.lives for part in parts if part.lives is not None]
    bins = [part.bins for part in parts if part.bins]
    summed = Turnover(
        made=sum(part.made for part in parts),
        freed=sum(part.freed for part in parts),
        peak=sum(peak or 0 for peak in peaks) if None not in peaks else None,
        since_risen=sum(part.since_risen for part in parts),
        bins=tuple(map(sum, zip(*bins, strict=True))) if bins else (),
    )
    if not lives:
        return summed
    count, least, most = sum(o.count for o in lives), min(o.min_ns for o in lives), max(o.max_ns for o in lives)
    return _with_lives(summed, count, least, most)


def _with_lives(turnover: Turnover, count: int, least_ns: int, most_ns: int) -> Turnover:
    """Add the lives, with a median if the bins hold all of them."""
    median = _life_quantile(turnover.bins, 0.5, Durations(count, least_ns, None, most_ns))
    return replace(turnover, lives=Durations(count, least_ns, median, most_ns))


def block_turnover(snapshot: Snapshot) -> Turnovers:
    """Return what is known of allocations, by stack; over all processes."""
    bins = _bins(snapshot.life_bins)
    names = ("stack", "made", "freed", "life_min_ns", "life_max_ns", "peak", "risen")
    rows = {row[0]: row[1:] for row in zip(*_lists(snapshot.totals, names), strict=True)}

    def find(stack: int) -> Turnover:
        made, freed, least, most, peak, risen = rows[stack]
        turnover = Turnover(made, freed, None, peak or None, made - risen if risen else 0, bins.get((stack, 0), ()))
        return _with_lives(turnover, freed, least, most) if freed and most else turnover

    return Turnovers(rows, find)


def object_turnover(snapshot: Snapshot, type_: int) -> Turnovers:
    """Return what is known of the counted objects of a type, by the stack of their create; over all processes."""
    bins = _bins(snapshot.balanced.lives)
    alive = snapshot.objects["stack"][snapshot.objects["type"] == type_]
    counts = dict(zip(*(column.tolist() for column in np.unique(alive, return_counts=True)), strict=True))
    turnovers = {stack: Turnover(count, 0) for stack, count in counts.items()}
    rows = snapshot.balanced.lifetimes
    rows = rows[rows["type"] == type_]
    names = ("create_stack", "count", "min_ns", "max_ns")
    for stack, count, least, most in zip(*_lists(rows, names), strict=True):
        turnover = Turnover(count + counts.get(stack, 0), count, bins=bins.get((stack, type_), ()))
        turnovers[stack] = _with_lives(turnover, count, least, most)
    return Turnovers(turnovers, turnovers.__getitem__)


def _lists(records: Records, names: tuple[str, ...]) -> list[list[int]]:
    return [records[name].tolist() for name in names]


def _bins(rows: Records) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the lives by (stack, type)."""
    if len(rows) == 0:
        return {}
    keys, label = np.unique(rows[["stack", "type"]], return_inverse=True)
    bins: npt.NDArray[np.int64] = np.zeros((len(keys), LIFE_BINS), dtype=np.int64)
    np.add.at(bins, (label, np.minimum(rows["bin"], LIFE_BINS - 1)), rows["count"].astype(np.int64))
    return dict(zip(keys.tolist(), map(tuple, bins.tolist()), strict=True))
