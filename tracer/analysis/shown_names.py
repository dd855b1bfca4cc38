"""A snapshot whose names can be shown anywhere: made once, before anything is judged, so that no format forgets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from tracer.model.frames import Frame, Symbols
from tracer.model.snapshot import Snapshot
from tracer.model.visible import visible

Row = TypeVar("Row")


def shown_symbols(symbols: Symbols) -> Symbols:
    """Return the symbols with names that can be shown; the same where all can."""
    changed = {key: frames for key, frames in symbols.items() if not all(map(_is_fit, frames))}
    return {**symbols, **{key: tuple(map(_shown, frames)) for key, frames in changed.items()}} if changed else symbols


def _is_fit(frame: Frame) -> bool:
    texts = (frame.function, frame.module, frame.path, frame.file, frame.language, frame.why_unknown, frame.build_id)
    return all(text is None or text.isprintable() for text in texts)


def shown_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with names that can be shown; command lines stay as they are, each report quotes them."""
    coverage = snapshot.coverage
    return replace(
        snapshot,
        types={number: visible(name) for number, name in snapshot.types.items()},
        sites=_each(snapshot.sites),
        binaries=_each(snapshot.binaries),
        script_frames=_each(snapshot.script_frames),
        losses=_each(snapshot.losses),
        notes=tuple(map(visible, snapshot.notes)),
        coverage=replace(
            coverage, unresolved=_each(coverage.unresolved), uncovered_instances=_each(coverage.uncovered_instances),
            untraced=_each(coverage.untraced),
        ),
    )


def _each(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(map(_shown, rows))


def _shown(row: Row) -> Row:
    """Return a dataclass whose texts can be shown."""
    texts = {name: getattr(row, name) for name in row.__dataclass_fields__}  # type: ignore[attr-defined]
    changed = {k: visible(v) for k, v in texts.items() if isinstance(v, str) and not v.isprintable()}
    return replace(row, **changed) if changed else row  # type: ignore[type-var]
