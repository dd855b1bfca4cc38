"""Coverage gaps of a type: instances of its functions that have no probe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tracer.analysis.evidence import OUTSTANDING
from tracer.model.findings import Leak
from tracer.model.snapshot import Loss, Missing, UncoveredInstances

_CHANGES = ("get", "put", "delete")
_ENDS = ("put", "delete")


def may_have_ended(uncovered: Iterable[UncoveredInstances], types: Collection[str]) -> bool:
    """Tell whether an object that seems to be alive may have been put or deleted where no probe is."""
    return any(copies.type in types and copies.operation in _ENDS for copies in uncovered)


def doubt_notes(uncovered: Iterable[UncoveredInstances], types: Collection[str], counted: bool) -> list[str]:
    """Return what an entry of a type says first: which calls are not seen, and what its count rests on.

    `counted`: whether the type has a counter that is read.
    """
    copies: Counter[tuple[str, str]] = Counter()
    for one in uncovered:
        if one.type in types and one.operation in _CHANGES:
            copies[one.operation, one.function] += one.copies
    if not copies:
        return []
    named = ", ".join(f"{count:,} of {function} ({operation})" for (operation, function), count in copies.items())
    rests = "its count follows the counter" if counted else "without a counter its count is not to be relied on"
    return [f"inlined copies have no probe: {named}; {rests}"]


def uncovered_gaps(uncovered: Iterable[UncoveredInstances], types: Iterable[str]) -> tuple[str, ...]:
    """Return what a report says before anything else, a sentence per type that occurred in the trace."""
    missed = list(uncovered)
    found = []
    for name in dict.fromkeys(types):
        parts = [
            f"{one.copies:,} inlined {'copy' if one.copies == 1 else 'copies'} of {one.function}"
            f" ({one.operation}: {one.reason})"
            for one in missed if one.type == name and one.operation in _CHANGES
        ]  # fmt: skip
        if parts:
            found.append(f"not all of {name} was seen: no probe on {'; '.join(parts)}")
    return tuple(found)


def missing_notes(missing: Iterable[Missing]) -> tuple[str, ...]:
    """Return what a report says first of names that were found nowhere: nothing of them was counted."""
    return tuple(
        f"{name} was found nowhere: check its spelling with `refleak probes`" if name.function
        else f"{name} was found nowhere, and nothing of it was counted: check its functions with `refleak probes`"
        for name in missing
    )  # fmt: skip


def gaps_of_losses(losses: Iterable[Loss], leaks: Iterable[Leak]) -> tuple[str, ...]:
    """Return what a report says first of entries that are not called leaks, since their end may have been lost."""
    kinds = {leak.kind for leak in leaks if leak.state == OUTSTANDING}
    hiding = [loss for loss in losses if kinds & set(loss.hides)]
    if not hiding:
        return ()
    reasons = "; ".join(f"{loss.count:,} lost: {loss.reason}" for loss in hiding)
    return (f"what seems to be alive may have been freed unseen, so it is not called a leak ({reasons})",)
