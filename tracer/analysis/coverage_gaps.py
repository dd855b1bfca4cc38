"""Coverage gaps of a type: its functions, and instances of them, that have no probe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from tracer.analysis.evidence import OUTSTANDING
from tracer.model.findings import Leak
from tracer.model.snapshot import Loss, Missing, UncoveredInstances

_ENDS = ("put", "delete")


def may_have_ended(missed: Iterable[UncoveredInstances], types: Collection[str]) -> bool:
    """Tell whether an object that seems to be alive may have been put or deleted where no probe is."""
    return any(one.type in types and one.operation in _ENDS for one in missed)


def doubt_notes(missed: Iterable[UncoveredInstances], types: Collection[str], counted: bool) -> list[str]:
    """Return what an entry of a type says first: which calls are not seen, and what its count rests on.

    `counted`: whether the type has a counter that is read.
    """
    copies: Counter[tuple[str, str]] = Counter()
    whole: dict[str, None] = {}
    for one in missed:
        if one.type in types and one.copies:
            copies[one.operation, one.function] += one.copies
        elif one.type in types:
            whole[f"{one.function} ({one.operation})"] = None
    rests = "its count follows the counter" if counted else "without a counter its count is not to be relied on"
    named = ", ".join(f"{count:,} of {function} ({operation})" for (operation, function), count in copies.items())
    said = [f"inlined copies have no probe: {named}"] if named else []
    said += [f"no probe is on {', '.join(whole)}"] if whole else []
    return [f"{what}; {rests}" for what in said]


def uncovered_gaps(missed: Sequence[UncoveredInstances], types: Iterable[str]) -> tuple[str, ...]:
    """Return what a report says before anything else, a sentence per type that occurred in the trace."""
    found = []
    for name in dict.fromkeys(types):
        parts = [f"{_named(one)} ({one.operation}: {one.reason})" for one in missed if one.type == name]
        if parts:
            found.append(f"not all of {name} was seen: no probe on {'; '.join(parts)}")
    return tuple(found)


def _named(one: UncoveredInstances) -> str:
    copies = f"{one.copies:,} inlined {'copy' if one.copies == 1 else 'copies'} of "
    return f"{copies if one.copies else ''}{one.function}"


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
