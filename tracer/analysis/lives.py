"""Lives of objects, as far as pairing goes: what was taken where, and given back where."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tracer.analysis.groups import Column, Indices
from tracer.late_dataclasses import dataclass
from tracer.model.operations import Operation
from tracer.model.snapshot import Records

Step = tuple[int, int, int]
"""Operation, stack, how often it happened."""


@dataclass(frozen=True)
class Life:
    """References of one object, or of several that went through the same.

    Row 0 of the gets is the birth: the references that the create gave, at the create's stack.
    """

    gets: tuple[int, ...]
    """Distinct stacks."""
    taken: npt.NDArray[np.float64]
    """References taken at each."""
    puts: tuple[int, ...]
    given: npt.NDArray[np.float64]
    possible: npt.NDArray[np.bool_]
    """Shape (gets, puts): whether a put there came after a get here."""
    objects: float = 1
    """How many lived so; what the life counts beside others."""
    steps: tuple[Step, ...] = ()
    """Gets and puts in order of time, and a delete that gave something back as a put."""

    @property
    def remaining(self) -> int:
        """References taken and not given back; negative where one was given back too often."""
        return round(float(self.taken.sum() - self.given.sum()))


def life(
    operation: Column, stack: Column, initial: int, birth: int, objects: float = 1, count: Column | None = None
) -> Life:
    """Put a life together from its gets, puts and delete, in order of time. `initial`: the count at birth.

    `count`: how often each happened, once unless given. A delete gives back all that is left.
    """
    count = np.ones(len(stack), dtype=np.int64) if count is None else count
    gets, first, taken = _summed(stack, count, np.flatnonzero(operation == Operation.GET))
    puts, last, given = _summed(stack, count, np.flatnonzero(operation == Operation.PUT)[::-1])
    taken = np.concatenate([[float(initial)], taken])
    first = np.concatenate([[-1], first])
    left = float(taken.sum()) - float(given.sum())
    deletes = np.flatnonzero(operation == Operation.DELETE)
    if len(deletes) and left > 0:
        puts = np.append(puts, stack[deletes[-1]])
        given, last = np.append(given, left), np.append(last, deletes[-1])
    possible = first[:, None] < last[None, :]
    steps = _steps(operation, stack, count, left)
    return Life((birth, *gets.tolist()), taken, tuple(puts.tolist()), given, possible, objects, steps)


def _steps(operation: Column, stack: Column, count: Column, left: float) -> tuple[Step, ...]:
    rows = np.flatnonzero((operation == Operation.GET) | (operation == Operation.PUT))
    steps = list(zip(operation[rows].tolist(), stack[rows].tolist(), count[rows].tolist(), strict=True))
    deletes = np.flatnonzero(operation == Operation.DELETE)
    if len(deletes) and left > 0:
        steps.append((int(Operation.PUT), int(stack[deletes[-1]]), round(left)))
    return tuple(steps)


def _summed(stack: Column, count: Column, rows: Indices) -> tuple[Column, Indices, npt.NDArray[np.float64]]:
    """Return the distinct stacks of `rows`, the first row of each, and the sum of their counts."""
    distinct, first, label = np.unique(stack[rows], return_index=True, return_inverse=True)
    return distinct, rows[first], np.bincount(label, count[rows], minlength=len(distinct)).astype(np.float64)


def courses(steps: Records, type_: int) -> list[Life]:
    """Return the lives of the ended objects of a type, the most frequent first. `steps`: dtype STEP."""
    found = list(_courses(steps[steps["type"] == type_]))
    return sorted(found, key=lambda life: -life.objects)


def _courses(steps: Records) -> Iterator[Life]:
    bounds = np.flatnonzero(np.diff(steps["course"].astype(np.int64), prepend=-1, append=-1))
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        row = steps[start:end]
        found = life(
            row["operation"][1:], row["stack"][1:], int(row["count"][0]), int(row["stack"][0]), int(row["objects"][0])
        )
        if found.remaining == 0:
            yield found
