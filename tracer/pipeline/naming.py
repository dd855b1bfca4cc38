"""Names for the frames of a snapshot, whether it comes from a trace or from a recording."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from tracer.model.frames import Frame, Symbols
from tracer.model.records import FRAME_BINARY_SHIFT, SCRIPT_BINARY
from tracer.model.snapshot import Binary, SiteInfo, Snapshot
from tracer.pipeline.judge_options import JudgeOptions
from tracer.symbols.class_names import class_names
from tracer.symbols.demangling import demangled
from tracer.symbols.symbolizer import symbolize

if TYPE_CHECKING:
    from tracer.recording.recording import Recording

_NONE: Symbols = {}
_MANGLED = ("_Z", "_R")


def symbols_of(snapshot: Snapshot, options: JudgeOptions, known: Symbols = _NONE) -> Symbols:
    """Name every frame of the stacks, but for those that are known. Scripts have named theirs themselves."""
    first_script_frame = SCRIPT_BINARY << FRAME_BINARY_SHIFT
    script_frames = {first_script_frame | index: (frame,) for index, frame in enumerate(snapshot.script_frames)}
    stacks = snapshot.stacks.values()
    generated, heap = snapshot.generated, snapshot.heap_calls
    frames = {*heap.called, *chain.from_iterable(stack.frames for stack in stacks)}
    passing = [key for key in snapshot.reference_calls if key not in script_frames and not _is_told(known.get(key))]
    frames = (frames - script_frames.keys() - known.keys()).union(passing)
    found = symbolize(frames, snapshot.binaries, options.symbols, generated=generated, heap=heap, passing=passing)
    return found | script_frames


def _is_told(frames: tuple[Frame, ...] | None) -> bool:
    """Tell whether it was looked up what a call passes."""
    return frames is not None and frames[-1].passes is not None


def symbols_so_far(snapshot: Snapshot, options: JudgeOptions, known: Symbols) -> Symbols:
    """Name the frames that are not known yet, and return all."""
    return {**known, **symbols_of(snapshot, options, known)}


def recorded_symbols(recording: Recording, options: JudgeOptions) -> Symbols:
    """Return the symbols of a recording, or look them up in the binaries that are here.

    They are looked up anew, where the binaries are, if the user names other debug files or wants names as linked.
    """
    embedded = recording.symbols
    if embedded is not None and not options.debug_directories and options.demangle:
        return embedded
    binaries = tuple(map(_identified, recording.snapshot.binaries))
    found = symbols_of(replace(recording.snapshot, binaries=binaries), options)
    return {key: _better(frames, (embedded or {}).get(key)) for key, frames in found.items()}


def _identified(binary: Binary) -> Binary:
    """Without a build id nothing tells whether a file here is the one that ran: take it for gone."""
    return binary if binary.build_id is not None else replace(binary, deleted=True)


def _better(found: tuple[Frame, ...], embedded: tuple[Frame, ...] | None) -> tuple[Frame, ...]:
    return embedded if embedded and all(frame.function is None for frame in found) else found


def as_written(snapshot: Snapshot, options: JudgeOptions) -> Snapshot:
    """Return the snapshot with types called as the programmer calls their classes, and what makes something as it is
    written, unless that is not wanted."""
    if not options.demangle:
        return snapshot
    return replace(snapshot, types=class_names(snapshot.types), sites=_written(snapshot.sites))


def _written(sites: tuple[SiteInfo, ...]) -> tuple[SiteInfo, ...]:
    """An allocator is a type too, called like its function: tcmalloc's, jemalloc's or a browser's own `_Znwm`."""
    linked = {site.function for site in sites if site.function.startswith(_MANGLED)}
    names = demangled(linked) if linked else {}
    return tuple(_with_name(site, names[site.function]) if site.function in names else site for site in sites)


def _with_name(site: SiteInfo, name: str) -> SiteInfo:
    return replace(site, function=name, type=name if site.type == site.function else site.type)
