"""Coverage gaps of a type or an allocator: its functions, and instances of them, that have no probe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from tracer.analysis.unseen_calls import family, unseen_calls, unseen_frees, unseen_makes
from tracer.model.findings import OUTSTANDING, Leak
from tracer.model.snapshot import Coverage, Loss, Missing, UncoveredInstances

_ENDS = ("put", "delete")
_MOST_NAMED = 8
"""Functions that lack a probe for the same reason: of a library that may not be probed there are dozens."""
_KINDS = {"allocation": "the heap", "mapping": "the mappings"}


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


def uncovered_gaps(coverage: Coverage, types: Iterable[str]) -> Mapping[str, str]:
    """Return what a report says before anything else: a sentence by the name of what not all was seen of.

    `types`: those that occurred in the trace. Of others it is told only what may have made them, or blocks, unseen.
    """
    missed: dict[str, list[UncoveredInstances]] = {name: [] for name in types}
    for one in unseen_calls(coverage):
        if one.type in missed:
            missed[one.type].append(one)
    for one in unseen_makes(coverage):
        missed.setdefault(_made(one), []).append(one)
    return {
        name: f"not all of {name} was seen: no probe on {'; '.join(_named_together(calls))}"
        for name, calls in missed.items()
        if calls
    }


def _made(one: UncoveredInstances) -> str:
    if one.operation == "create":
        return one.type or "what stubs count"
    kind, allocator = family(one)
    return allocator or _KINDS[kind]


def _named_together(calls: Iterable[UncoveredInstances]) -> Iterator[str]:
    """Yield the functions that lack a probe for one reason, and the reason."""
    named: dict[tuple[str, str], list[str]] = {}
    for one in calls:
        named.setdefault((one.operation, one.reason), []).append(_called(one))
    for (operation, reason), functions in named.items():
        rest = len(functions) - _MOST_NAMED
        more = [f"{rest:,} more"] if rest > 0 else []
        yield f"{', '.join((*functions[:_MOST_NAMED], *more))} ({operation}: {reason})"


def _named(one: UncoveredInstances) -> str:
    return f"{_called(one)} ({one.operation}: {one.reason})"


def _called(one: UncoveredInstances) -> str:
    copies = f"{one.copies:,} inlined {'copy' if one.copies == 1 else 'copies'} of "
    return f"{copies if one.copies else ''}{one.function}"


def missing_notes(missing: Iterable[Missing]) -> tuple[str, ...]:
    """Return what a report says first of names that were found nowhere: nothing of them was counted."""
    return tuple(
        f"{name} was found nowhere: check its spelling with `refleak probes`" if name.function
        else f"{name} was found nowhere, and nothing of it was counted: check its functions with `refleak probes`"
        for name in missing
    )  # fmt: skip


def hidden_ends(losses: Iterable[Loss], coverage: Coverage, leaks: Iterable[Leak]) -> tuple[str, ...]:
    """Return what a report says first of entries that are not called leaks, since their end may have been lost, or was
    where no probe is."""
    kinds = {leak.kind for leak in leaks if leak.state == OUTSTANDING}
    hiding = [f"{loss.count:,} lost: {loss.reason}" for loss in losses if kinds & set(loss.hides)]
    hiding += [f"no probe on {_named(one)}" for one in unseen_frees(coverage) if family(one)[0] in kinds]
    if not hiding:
        return ()
    return (f"what seems to be alive may have been freed unseen, so it is not called a leak ({'; '.join(hiding)})",)
