"""Broken rules of counting, merged by what and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracer.analysis.bad_frees import KINDS, BadFrees
from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import group_rows
from tracer.analysis.mismatches import Mismatches
from tracer.analysis.stacks import lines_of
from tracer.model.events import COUNTED_EVENT, ErrorKind, Where
from tracer.model.findings import FREED_PAST_COUNTER, REINITIALISED, REMARKS, ErrorFinding, FrameList, Holder
from tracer.model.holders import KIND_GONE
from tracer.model.snapshot import Records

if TYPE_CHECKING:
    from tracer.analysis.extra_put import ExtraPut

_KINDS: Mapping[int, str] = {
    ErrorKind.OVER_PUT: "over-put",
    ErrorKind.USE_AFTER_ZERO: "use-after-zero",
    ErrorKind.DELETE_WHILE_REFERENCED: "delete-while-referenced",
    ErrorKind.REINITIALISED: REINITIALISED,
    ErrorKind.FREED_WHILE_COUNTED: "freed-while-counted",
    ErrorKind.FREED_PAST_COUNTER: FREED_PAST_COUNTER,
    **KINDS,
}


def error_findings(evidence: Evidence, frees: BadFrees, events: Records) -> tuple[ErrorFinding, ...]:
    """Merge ERROR events by kind, type, process and the functions of their three stacks; most frequent first.

    Of bad frees the lines count too: what is freed wrongly at two of them takes two corrections. Only some of those
    alike are kept: `represented` of each says for how many it stands.
    """
    names = ("error", "broken_type", "pid", "generation", "stack", "birth", "release")
    groups = group_rows(*(events[name] for name in names))
    stand_for = np.maximum(events["represented"], 1)
    counts = np.bincount(groups.label, stand_for, len(groups)).astype(np.int64).tolist()
    merged: dict[tuple[object, ...], ErrorFinding] = {}
    extra = _extra_puts(evidence, events)
    for row, count in sorted(zip(groups.first.tolist(), counts, strict=True)):
        event = events[row]
        numbers = [int(event[name]) for name in ("stack", "birth", "release")]
        stacks = [evidence.stacks.get(number) for number in numbers]
        alike = map(evidence.stacks.lines, numbers) if event["error"] in KINDS else (stack.keys for stack in stacks)
        key = (*(int(event[name]) for name in names[:4]), *alike)
        before = merged.get(key)
        is_freed = int(event["error"]) in (ErrorKind.FREED_WHILE_COUNTED, ErrorKind.FREED_PAST_COUNTER)
        said = _past(events.view(COUNTED_EVENT)[row]) if is_freed else frees.reason(event)
        put = extra(row) if before is None or before.probably is None else None
        merged[key] = ErrorFinding(
            kind=_KINDS.get(int(event["error"]), f"error {int(event['error'])}"),
            type=evidence.type_name(int(event["broken_type"])) if event["broken_type"] else frees.type(event),
            pid=int(event["pid"]),
            count=count + (before.count if before else 0),
            address=before.address if before else int(event["address"]),
            stack=before.stack if before else stacks[0].frames,
            created_at=before.created_at if before else _birth(evidence, event),
            released_at=before.released_at if before else None if is_freed else stacks[2].frames or None,
            last_get=before.last_get if before else stacks[2].frames or None if is_freed else None,
            probably=evidence.stacks.frames(put.stack) if put else before.probably if before else None,
            reason=put.reason if put else before.reason if before else said,
            holders=before.holders if before else _holders(evidence, event) if is_freed else (),
        )
    _place_the_rest(merged)
    for error in Mismatches(evidence).findings():
        key = (error.kind, error.pid, *(lines_of(stack or ()) for stack in (error.stack, error.created_at)))
        before = merged.get(key)
        merged[key] = _together(before, error) if before else error
    return tuple(sorted(_without_followers(list(merged.values())), key=_rank))


def _together(one: ErrorFinding, other: ErrorFinding) -> ErrorFinding:
    return replace(one, count=one.count + other.count, is_least=one.is_least or other.is_least)


def _extra_puts(evidence: Evidence, events: Records) -> Callable[[int], ExtraPut | None]:
    if not (events["error"] == ErrorKind.OVER_PUT).any():
        return lambda _: None
    from tracer.analysis.extra_put import ExtraPuts  # with all that pairs references, which few programs count

    return ExtraPuts(evidence, events).of


def _place_the_rest(merged: dict[tuple[object, ...], ErrorFinding]) -> None:
    """Add the double frees of which the first free's place was not kept to those like them, if these have one place."""
    known: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for key, error in merged.items():
        if error.released_at is not None:
            known.setdefault(key[:-1], []).append(key)
    for key, error in list(merged.items()):
        like = known.get(key[:-1], [])
        if error.kind == KINDS[ErrorKind.DOUBLE_FREE] and error.released_at is None and len(like) == 1:
            merged[like[0]] = _together(merged[like[0]], error)
            del merged[key]


def _birth(evidence: Evidence, event: np.void) -> FrameList | None:
    """Return the stack that an object or a block was made at, with what made it."""
    stack, type_ = int(event["birth"]), int(event["broken_type"])
    if event["error"] == ErrorKind.INVALID_FREE and event["where"] & Where.ON_STACK:
        return None  # of the frame that the address is in
    return evidence.makers.whole(evidence.stacks.get(stack).frames, evidence.makers.site_of(stack, type_)) or None


def _holders(evidence: Evidence, event: np.void) -> tuple[Holder, ...]:
    return evidence.holders.gone(KIND_GONE, int(event["pid"]), int(event["generation"]), int(event["address"]))


def _past(event: np.void) -> str:
    count = int(event["count"])
    if count > 1:
        return f"its count was {count:,}: {count - 1:,} besides the creator's reference"
    return "freed past its counter: the creator's reference was dropped without a put"


def _without_followers(errors: list[ErrorFinding]) -> list[ErrorFinding]:
    """Leave out the bad frees inside of a call that is an error itself: fclose of a closed stream frees it twice."""
    calls = [error for error in errors if error.kind not in KINDS.values()]
    return [
        error for error in errors
        if error.kind not in KINDS.values()
        or not any(call.pid == error.pid and _is_inside(error.stack, call.stack) for call in calls)
    ]  # fmt: skip


def _is_inside(stack: FrameList, call: FrameList) -> bool:
    """Tell whether a stack is that of a call's inside: it has the same callers, and none besides where the call jumped
    to the function that frees."""
    return len(call) > 0 and stack[-len(call) :] == call


def _rank(error: ErrorFinding) -> tuple[bool, int, str, str, int, int]:
    return (error.kind in REMARKS, -error.count, error.kind, error.type or "", error.pid, error.address)
