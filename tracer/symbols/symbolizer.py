"""Symbolization: frame keys to frames, at report time, one batch per binary."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tracer.dwarf.producers import may_be_folded
from tracer.elf.debug_files import DebugFiles
from tracer.late_dataclasses import dataclass
from tracer.model.frames import FOLDED, NO_SYMBOL, THROUGH_POINTER, Frame, HeapCalls
from tracer.model.generated import GeneratedFrame
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT
from tracer.model.snapshot import ANONYMOUS, Binary
from tracer.symbols.callees import OPERATOR, Callees
from tracer.symbols.demangling import CLONE_SUFFIX, COLD_PART, demangled, language_of
from tracer.symbols.dwarf_lookup import DwarfLookup, Tools, find_tools
from tracer.symbols.options import SymbolOptions
from tracer.symbols.passed_calls import Budget, PassedCalls
from tracer.symbols.raw_frame import RawFrame
from tracer.symbols.source import Source, open_source

_THUNKS = ("_ZTh", "_ZTv", "_ZTc")
"""Begin the names of functions that adjust `this` and go on in another (Itanium C++ ABI, 5.1.4.4)."""
NO_BINARY = "code in no binary"
JIT, JIT_MODULE = "jit", "[jit]"
NOTHING_GENERATED: Mapping[int, GeneratedFrame] = MappingProxyType({})
NOTHING_OF_HEAP = HeapCalls()
DEFAULT_OPTIONS = SymbolOptions()


@dataclass(frozen=True, slots=True)
class Resolved:
    """All there is at one address, kept for the rest of the run."""

    frames: tuple[RawFrame, ...]
    why_unknown: str | None
    calls: str | None = None
    passes: str | None = None


_Place = tuple[str, int]
"""A binary, and an address that is looked up in it."""


class _Heap(Enum):
    """What is asked of an address, beside its name."""

    CALL = auto()
    CALL_BY_POINTER = auto()
    ENTRY = auto()


class Symbolizer:
    """Names frames, and remembers them by build id and link address.

    `notes` says which foreign tool failed where; what it should have told then comes from the next
    tool or from the symbol tables alone.
    """

    def __init__(self, options: SymbolOptions = DEFAULT_OPTIONS, tools: Tools | None = None) -> None:
        self._options = options
        self._lookup = DwarfLookup(find_tools() if tools is None else tools)
        self._debug_files = DebugFiles(options.debug_directories)
        self._resolved: dict[str, dict[int, Resolved]] = {}
        self._names: dict[str, str] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._lookup.notes)

    def symbolize(
        self, keys: Iterable[int], binaries: Sequence[Binary], exact: Collection[int] = (),
        generated: Mapping[int, GeneratedFrame] = NOTHING_GENERATED, heap: HeapCalls = NOTHING_OF_HEAP,
        passing: Collection[int] = (),
    ) -> dict[int, tuple[Frame, ...]]:  # fmt: skip
        """Return the frames of every key (binary id << 48 | link address), innermost inlined one first.

        Of the keys in `heap` it is told what of the heap they call, of those in `passing` what they pass, of the first
        ones where the code of all is too much.

        Keys are return addresses, looked up one byte before, unless they are in `exact` or marked FRAME_EXACT.
        `generated` names those in code that the target made, where there is no image of it.
        """
        by_id = {binary.id: binary for binary in binaries if binary.kind != ANONYMOUS}
        nowhere = {0, *(binary.id for binary in binaries if binary.kind == ANONYMOUS)}
        wanted = dict.fromkeys(keys)
        exactly = frozenset(exact)
        places = {
            key: (
                by_id.get(key >> FRAME_BINARY_SHIFT), key & FRAME_ADDRESS_MASK,
                _looked_up(key, key in exactly or bool(key & FRAME_EXACT)),
            )
            for key in wanted
        }
        self._resolve(
            [(binary, looked_up) for binary, _, looked_up in places.values() if binary is not None],
            {
                (_identity(binary), looked_up): kind
                for kind, asked in _kinds(heap)
                for binary, address, looked_up in (places[key] for key in asked if key in wanted)
                if binary is not None and (address == looked_up) == (kind is _Heap.ENTRY)
            },
            [
                (_identity(binary), looked_up)
                for binary, address, looked_up in (places[key] for key in passing if key in places)
                if binary is not None and address != looked_up
            ],
        )
        found = {
            key: self._frames(binary, address, looked_up)
            if binary is not None
            else (_outside(key >> FRAME_BINARY_SHIFT, address, nowhere),)
            for key, (binary, address, looked_up) in places.items()
        }
        return found | {
            key: (_generated(told, key, found[key][-1]),)
            for key, told in generated.items()
            if key in found and found[key][-1].function is None
        }

    def _resolve(
        self, places: list[tuple[Binary, int]], heap: Mapping[_Place, _Heap], passing: Sequence[_Place]
    ) -> None:
        """Fill `_resolved` for all places, and `_names` for all names in them."""
        missing: dict[str, set[int]] = {}
        copies: dict[str, list[Binary]] = {}
        for binary, address in places:
            if address not in self._resolved.setdefault(_identity(binary), {}):
                missing.setdefault(_identity(binary), set()).add(address)
                copies.setdefault(_identity(binary), []).append(binary)
        sources = {identity: open_source(_best(same), self._debug_files) for identity, same in copies.items()}
        addresses = {identity: sorted(missing[identity]) for identity in sources}
        try:
            self._lookup.begin(sources.values())
            # What needs no answer is found while that loads.
            passes = _passes(sources, passing)
            hiding = {identity for identity in sources if copies[identity][0].has_operators}
            callees = {identity: self._callees(source, identity in hiding) for identity, source in sources.items()}
            calls = {
                (identity, address): _calls(callees[identity], address, kind)
                for (identity, address), kind in heap.items()
                if identity not in hiding and address in missing.get(identity, ())
            }
            found = self._lookup.ask(sources, addresses)
            for identity, source in sources.items():
                answers = found[identity]
                doubtful = [a for a, frames in answers.items() if _is_doubtful(source, a, frames)]
                answers |= self._lookup.ask_again(source, doubtful)
                for address in addresses[identity]:
                    frames = self._verified(source, address, answers.get(address, ()))
                    kind = heap.get((identity, address))
                    if kind is not None and identity in hiding:
                        is_open = callees[identity] is not None and _hides_inlined(frames)
                        if kind is _Heap.ENTRY or not is_open:
                            calls[identity, address] = _calls(callees[identity], address, kind)
                    called, told = calls.get((identity, address)), passes.get((identity, address))
                    self._resolved[identity][address] = Resolved(frames, source.why_nothing, called, told)
        finally:
            self._lookup.end()
            for source in sources.values():
                source.close()
        if self._options.demangle:
            self._demangle(missing)

    def _callees(self, source: Source, hides: bool) -> Callees | None:
        """`hides`: a binary has operators of its own, which may have been inlined. None: also folded into others."""
        if hides and may_be_folded(source.dwarf):
            return None

        def is_operators(address: int) -> bool:
            frames = self._lookup.ask({"": source}, {"": [address]})[""].get(address, ())
            names = [frame.function or "" for frame in frames[:-1]]
            return _hides_inlined(self._verified(source, address, frames)) or any(map(_is_operator, names))

        return Callees(source, is_operators if hides else None)

    def _verified(self, source: Source, address: int, frames: tuple[RawFrame, ...]) -> tuple[RawFrame, ...]:
        """Let our own symbols name the function with the stack frame, and drop a neighbour's name.

        Without a covering symbol a name is good if DWARF gave it: then there is a file too, and no
        symbol elsewhere of that name (both tools fall back to the nearest symbol).
        """
        outermost = frames[-1] if frames else RawFrame()
        symbol = source.covering(address)
        if symbol is not None:
            outermost = RawFrame(symbol.name, outermost.file, outermost.line, symbol.address)
        elif outermost.file is None or _is_doubtful(source, address, frames):
            outermost = RawFrame(None, outermost.file, outermost.line)
        inlined = frames[:-1] if self._options.inlines else ()
        return (*inlined, outermost)

    def _demangle(self, new: dict[str, set[int]]) -> None:
        names = {
            frame.function
            for identity, addresses in new.items()
            for address in addresses
            for frame in self._resolved[identity][address].frames
            if frame.function is not None
        }
        self._names |= demangled(names - self._names.keys())

    def _frames(self, binary: Binary, address: int, looked_up: int) -> tuple[Frame, ...]:
        resolved = self._resolved[_identity(binary)][looked_up]
        last = len(resolved.frames) - 1
        return tuple(
            self._frame(binary, address, raw, i < last, resolved) for i, raw in enumerate(resolved.frames)
        )

    def _frame(self, binary: Binary, address: int, raw: RawFrame, inlined: bool, resolved: Resolved) -> Frame:
        name = raw.function
        hidden_part = self._options.demangle and name is not None and _is_cold_part(name)
        offset = None if raw.start is None or inlined or hidden_part else address - raw.start
        return Frame(
            function=self._names.get(name, name) if name is not None else None,
            module=JIT_MODULE if binary.kind == JIT else _file_name(binary.path),
            path=binary.path,
            build_id=binary.build_id,
            file=raw.file,
            line=raw.line,
            inlined=inlined,
            address=address,
            offset=offset,
            kind=binary.kind,
            language=_language(name, raw.file),
            why_unknown=(resolved.why_unknown or NO_SYMBOL) if name is None else None,
            calls=None if inlined else resolved.calls,
            passes=None if inlined else resolved.passes,
        )


def symbolize(
    snapshot_frames: Iterable[int],
    binaries: Sequence[Binary],
    options: SymbolOptions = DEFAULT_OPTIONS,
    exact: Collection[int] = (),
    generated: Mapping[int, GeneratedFrame] = NOTHING_GENERATED,
    heap: HeapCalls = NOTHING_OF_HEAP,
    passing: Collection[int] = (),
) -> dict[int, tuple[Frame, ...]]:
    """Return the frames of every frame key; see `Symbolizer.symbolize`."""
    return Symbolizer(options).symbolize(snapshot_frames, binaries, exact, generated, heap, passing)


def _passes(sources: Mapping[str, Source], calls: Sequence[_Place]) -> dict[_Place, str]:
    """Return what calls pass, each known by its binary and the address before the one that it returns to."""
    budget = Budget()
    of = {identity: PassedCalls(source, budget) for identity, source in sources.items()}
    return {(identity, address): of[identity].of(address + 1) for identity, address in calls if identity in of}


def _kinds(heap: HeapCalls) -> tuple[tuple[_Heap, Collection[int]], ...]:
    return (_Heap.CALL, heap.callers), (_Heap.CALL_BY_POINTER, heap.by_pointer), (_Heap.ENTRY, heap.called)


def _calls(callees: Callees | None, address: int, kind: _Heap | None) -> str | None:
    if callees is None:
        return FOLDED
    if kind is _Heap.ENTRY:
        return callees.entered_at(address)
    told = callees.of(address + 1)
    if told is None and kind is _Heap.CALL_BY_POINTER:
        told = callees.by_pointer(address + 1)
    return THROUGH_POINTER if told is None and callees.goes_through_pointer(address + 1) else told


def _hides_inlined(frames: Sequence[RawFrame]) -> bool:
    """Tell whether nothing says if a function was inlined at an address: where there are no lines, and in a thunk, into
    which GCC inlines the function without a word in DWARF."""
    return frames[-1].line is None or (frames[-1].function or "").startswith(_THUNKS)


def _is_operator(name: str) -> bool:
    return OPERATOR.fullmatch(name) is not None or name.startswith(("operator new", "operator delete"))


def _is_doubtful(source: Source, address: int, frames: tuple[RawFrame, ...]) -> bool:
    """Tell whether there is a line, hence DWARF, but the function's name is that of a symbol elsewhere."""
    if not frames or frames[-1].line is None or frames[-1].function is None or source.covering(address) is not None:
        return False
    return source.defines(frames[-1].function.partition("@")[0])


def _looked_up(key: int, exactly: bool) -> int:
    address = key & FRAME_ADDRESS_MASK
    return address if exactly else max(address - 1, 0)


@cache
def _file_name(path: str) -> str:
    return Path(path).name


@cache
def _is_cold_part(name: str) -> bool:
    return COLD_PART.search(name) is not None


@cache
def _language(name: str | None, file: str | None) -> str | None:
    return language_of(CLONE_SUFFIX.sub("", name) if name else None, file)


def _identity(binary: Binary) -> str:
    return binary.build_id or f"binary {binary.id}"


def _best(copies: Sequence[Binary]) -> Binary:
    """Return the one of several binaries with equal build ids that is likeliest to be there still."""
    return min(copies, key=lambda binary: (binary.open_path is None, binary.deleted, binary.id))


def _outside(binary_id: int, address: int, nowhere: Collection[int]) -> Frame:
    why = NO_BINARY if binary_id in nowhere else f"binary {binary_id} is not known"
    return Frame(None, address=address, why_unknown=why)


def _generated(told: GeneratedFrame, key: int, unknown: Frame) -> Frame:
    """Return a frame by what the running target told; `unknown` is what the files told of it."""
    if told.function is None:
        return replace(unknown, why_unknown=told.why_unknown)
    return Frame(
        told.function, JIT_MODULE, unknown.path, file=told.file, line=told.line, address=key & FRAME_ADDRESS_MASK,
        offset=told.offset, kind=JIT, language=told.language, passes=unknown.passes,
    )  # fmt: skip
