"""Reads the JSON report back, as far as a comparison needs: leaks, errors, what was suppressed, with their stacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from tracer.errors import CannotRead
from tracer.model.findings import REACHABILITY, AllocationTotals, ErrorFinding, Findings, FrameList, Leak
from tracer.model.frames import Frame
from tracer.model.selection import KEEPS_ALL, Sample, Selection
from tracer.model.snapshot import Coverage
from tracer.model.visible import visible
from tracer.report.json_report import FORMAT, VERSION

T = TypeVar("T", str, int, bool)
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


class _Unfit(ValueError):
    pass


def read_json(text: bytes, name: str) -> Findings:
    """Return the leaks and errors of a report, what it set aside, and whether it was complete. Raises CannotRead."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise CannotRead(
            f"{name} is neither a recording nor a JSON report of refleak", "make one with -o FILE.refleak or .json"
        ) from None
    try:
        return _findings(document, name)
    except _Unfit as error:
        raise CannotRead(f"{name} is no JSON report of refleak: {error}", "make one with -o FILE.json") from None


def _findings(document: Any, name: str) -> Findings:
    report = _object(document)
    if report.get("format") != FORMAT:
        raise _Unfit(f'"format" is not {FORMAT!r}')
    version = _get(report, "version", int)
    if version > VERSION:
        raise CannotRead(
            f"{name} has version {version} of the JSON report; this refleak reads up to {VERSION}",
            "read it with the refleak that made it, or a newer one",
        )
    selection = _selection(report)
    return Findings(
        mode=_get(report, "mode", str), duration_ns=_get(report, "duration_ns", int),
        complete=_get(report, "complete", bool) or (selection.is_sampled and not report.get("lost")),
        target_ended=_maybe(report, "target_ended", bool) or False,
        losses=(), coverage=Coverage(), processes=(), allocations=AllocationTotals(0, 0, 0, 0), types=(),
        leaks=tuple(_leak(_object(leak)) for leak in _list(report, "leaks")),
        suppressed=tuple(_leak(_object(leak)) for leak in _suppressed(report)),
        errors=tuple(_error(_object(error)) for error in _list(report, "errors")), selection=selection,
    )  # fmt: skip


def _suppressed(report: Mapping[str, Any]) -> list[Any]:
    return _list(_object(report.get("suppressed", {"entries": []})), "entries")


def _selection(report: Mapping[str, Any]) -> Selection:
    if report.get("sampling") is None:
        return KEEPS_ALL
    return Selection(sample_bytes=_get(_object(report["sampling"]), "sample_bytes", int))


def _leak(leak: Mapping[str, Any]) -> Leak:
    count, size = _get(leak, "count", int), _maybe(leak, "bytes", int)
    sample = None
    if leak.get("estimated") is not None:
        estimated = _object(leak["estimated"])
        errors = _get(estimated, "count_error", int), _get(estimated, "bytes_error", int)
        sample = Sample(count, size or 0, errors[0] ** 2, errors[1] ** 2)
        count, size = _get(estimated, "count", int), _get(estimated, "bytes", int)
    return Leak(
        id=_get(leak, "id", str), kind=_get(leak, "kind", str), type=_maybe(leak, "type", str),
        pid=_get(leak, "pid", int), state=_get(leak, "state", str), count=count, bytes=size, sample=sample,
        stack=_stack(leak, "stack"),
        stack_complete=_get(leak, "stack_complete", bool), stack_status=_maybe(leak, "stack_status", str) or "complete",
        suppressed_by=_maybe(leak, "suppressed_by", str), reachability=_class(leak), owner=_maybe(leak, "owner", str),
        maker=_maybe(leak, "maker", str), own_frame=_maybe(leak, "own_frame", int),
    )  # fmt: skip


def _class(leak: Mapping[str, Any]) -> str | None:
    word = _maybe(leak, "reachability", str)
    return word if word in REACHABILITY else None


def _error(error: Mapping[str, Any]) -> ErrorFinding:
    return ErrorFinding(
        kind=_get(error, "kind", str), type=_maybe(error, "type", str), pid=_get(error, "pid", int),
        count=_get(error, "count", int), address=_hex(error, "address"), stack=_stack(error, "stack"),
        created_at=None, released_at=None, is_least=_maybe(error, "is_least", bool) or False,
    )  # fmt: skip


def _stack(owner: Mapping[str, Any], key: str) -> FrameList:
    return tuple(_frame(_object(frame)) for frame in _list(owner, key))


def _frame(frame: Mapping[str, Any]) -> Frame:
    return Frame(
        function=_maybe(frame, "function", str), module=_maybe(frame, "module", str), path=_maybe(frame, "path", str),
        build_id=_maybe(frame, "build_id", str), file=_maybe(frame, "file", str), line=_maybe(frame, "line", int),
        inlined=_maybe(frame, "inlined", bool) or False, address=_hex(frame, "address"),
        offset=_maybe(frame, "offset", int), kind=_maybe(frame, "kind", str) or "native",
        language=_maybe(frame, "language", str), why_unknown=_maybe(frame, "why_unknown", str),
    )  # fmt: skip


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Unfit("an object is expected")
    return value


def _list(owner: Mapping[str, Any], key: str) -> list[Any]:
    value = owner.get(key)
    if not isinstance(value, list):
        raise _Unfit(f'"{key}" is no list')
    return value


def _maybe(owner: Mapping[str, Any], key: str, kind: type[T]) -> T | None:
    value = owner.get(key)
    if value is not None and type(value) is not kind:
        raise _Unfit(f'"{key}" is not of type {kind.__name__}')
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise _Unfit(f'"{key}" is no number of 64 bits')
    return visible(value) if isinstance(value, str) else value


def _get(owner: Mapping[str, Any], key: str, kind: type[T]) -> T:
    value = _maybe(owner, key, kind)
    if value is None:
        raise _Unfit(f'"{key}" is missing')
    return value


def _hex(owner: Mapping[str, Any], key: str) -> int:
    try:
        return int(_get(owner, key, str), 16)
    except ValueError:
        raise _Unfit(f'"{key}" is no hex number') from None
