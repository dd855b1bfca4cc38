"""Names of holders, by the target's files: variables with the way to the member, structs, classes; and of the variables
that were freed, which are no blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tracer.architecture.current import ARCHITECTURE
from tracer.dwarf.data_types import MOST_BYTES, DataTypes, Found
from tracer.dwarf.stack_variables import StackVariables
from tracer.elf.debug_files import DebugFiles
from tracer.elf.symbol_table import Symbol
from tracer.errors import RefleakError
from tracer.model.c_library_names import LIBC, LOADER, MUSL
from tracer.model.events import ErrorKind, Where
from tracer.model.holders import SEVERAL, HolderKind, HolderName
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT
from tracer.model.snapshot import ANONYMOUS, Records, Snapshot
from tracer.symbols.class_names import class_names
from tracer.symbols.demangling import demangled
from tracer.symbols.frame_registers import FrameRegisters
from tracer.symbols.options import SymbolOptions
from tracer.symbols.source import Source, open_source

_VARIABLES = (HolderKind.GLOBAL, HolderKind.THREAD_LOCAL)
_BLOCKS = (HolderKind.BLOCK, HolderKind.FREED_BLOCK)
_STACK_FRAMES = 8
"""Of the birth of a block: its struct is looked for in the binaries of the innermost."""
_MOST_BYTES = 3 * MOST_BYTES
_SYSTEM = (LIBC, MUSL, LOADER)
"""No user looks for a member of the C library's variables, and to read its DWARF takes seconds."""


class _Likeness(NamedTuple):
    """What rows of a HOLDER_RECORD have in common that have one name."""

    kind: int
    place: int
    offset: int
    size: int
    target_size: int
    table: int


class HolderNames:
    """Looks into the files of a snapshot's binaries, each once."""

    def __init__(self, snapshot: Snapshot, options: SymbolOptions) -> None:
        self._snapshot, self._options = snapshot, options
        self._binaries = {b.id: b for b in snapshot.binaries if b.kind not in (ANONYMOUS, "jit")}
        self._debug_files = DebugFiles(options.debug_directories)
        self._sources: dict[int, Source] = {}
        self._types: dict[int, DataTypes | None] = {}
        self._frames: dict[int, StackVariables] = {}
        self._made_in: dict[int, list[tuple[int, DataTypes]]] = {}
        self._bytes = 0

    def named(self) -> Snapshot:
        """Return the snapshot with names of its holders, and of what was freed and is a variable."""
        holders, errors = self._snapshot.holders.copy(), self._snapshot.errors.copy()
        alike = list(zip(*(holders[name].tolist() for name in _Likeness._fields), strict=True))
        rows = sorted(set(alike))
        variables = np.flatnonzero(_may_be_of_variables(errors))
        try:
            found = [self._name(_Likeness(*row)) for row in rows] + [self._freed(errors[index]) for index in variables]
        finally:
            for source in self._sources.values():
                source.close()
        names = list(dict.fromkeys(name for name in found if name is not None))
        place = {name: number for number, name in enumerate(names, start=1)}
        numbers = np.array([place[name] if name is not None else 0 for name in found], np.uint32)
        number_of = dict(zip(rows, numbers[: len(rows)].tolist(), strict=True))
        holders["name"] = list(map(number_of.__getitem__, alike))
        errors["serial"][variables] = numbers[len(rows) :]
        written = tuple(self._written(names))
        return replace(self._snapshot, holders=holders, errors=errors, holder_names=written)

    def _written(self, names: Sequence[HolderName]) -> list[HolderName]:
        if not self._options.demangle:
            return list(names)
        stems = {name.name.partition("+")[0].partition("\0")[0] for name in names}
        written = demangled({stem for stem in stems if stem.startswith("_")})
        return [
            replace(n, name=written.get(stem, stem) + n.name[len(stem) :].lstrip("\0"))
            for n in names for stem in (n.name.partition("+")[0].partition("\0")[0],)
        ]  # fmt: skip

    def _name(self, row: _Likeness) -> HolderName | None:
        if row.kind in _VARIABLES and row.place:
            return self._variable(row.place, is_local=row.kind == HolderKind.THREAD_LOCAL)
        if row.kind in _BLOCKS:
            return self._of_class(row) or self._of_struct(row)
        if row.kind == HolderKind.STACK and row.place and row.offset < SEVERAL:
            return self._on_stack(row.place, row.offset)
        return None

    def _on_stack(self, stack: int, offset: int) -> HolderName | None:
        """Name the variable of a frame that a word is of."""
        known = self._snapshot.stacks.get(stack)
        if known is None or not known.frames:
            return None
        frame = known.frames[0]
        binary, address = frame >> FRAME_BINARY_SHIFT, frame & FRAME_ADDRESS_MASK
        types, dwarf = self._types_of(binary), self._source(binary).dwarf
        if types is None or dwarf is None:
            return None
        if binary not in self._frames:
            registers = FrameRegisters(self._source(binary).ran or dwarf)
            self._frames[binary] = StackVariables(dwarf, types, ARCHITECTURE.frame_pointer, registers)
        found = self._frames[binary].at(address if frame & FRAME_EXACT else address - 1, offset)
        return HolderName("".join(found), module=self._module(binary)) if found is not None else None

    def _freed(self, event: np.void) -> HolderName | None:
        """Name the variable that was freed."""
        address, space = int(event["address"]), (int(event["pid"]), int(event["generation"]))
        for mapping in self._snapshot.mappings_of.get(space, ()):
            if mapping.holds(address, int(event["time_ns"])):
                if mapping.link_address is None:
                    return None
                link_address = address - mapping.start + mapping.link_address
                return self._variable(mapping.binary << FRAME_BINARY_SHIFT | link_address, is_local=False)
        return None

    def _variable(self, place: int, *, is_local: bool) -> HolderName | None:
        binary, address = place >> FRAME_BINARY_SHIFT, place & FRAME_ADDRESS_MASK
        source = self._source(binary)
        module = self._module(binary)
        symbol = _covering(source, address, is_local=is_local)
        types = None if is_local else self._types_of(binary)
        variable = types.variable_at(address) if types is not None else None
        if variable is not None and (symbol is None or symbol.name.partition(".")[0].endswith(variable[0])):
            return HolderName(f"{variable[0]}{variable[1]}", module=module)
        if symbol is None:
            return None
        offset = address - symbol.address
        return HolderName(f"{symbol.name}\0" + (f"+{offset:#x}" if offset else ""), module=module)

    def _of_class(self, row: _Likeness) -> HolderName | None:
        """Name a block by the table of virtual functions that it begins with."""
        table, offset = row.table, row.offset
        if not table:
            return None
        binary = table >> FRAME_BINARY_SHIFT
        symbol = _covering(self._source(binary), table & FRAME_ADDRESS_MASK, is_local=False)
        if symbol is None or not symbol.name.startswith("_ZTV"):
            return None
        name = class_names({0: symbol.name})[0]
        types = self._types_of(binary)
        member = types.member(name.rpartition("::")[2], offset) if types is not None and offset > 0 else ""
        return HolderName(f"{name}.{member}" if member else name, name, member or None, self._module(binary))

    def _of_struct(self, row: _Likeness) -> HolderName | None:
        """Name a block by the only struct of its size that has, at the place of the pointer, one to what is as large as
        what it points at."""
        if not row.size or row.offset < 0 or not row.target_size:
            return None
        found: dict[Found, int] = {}
        for binary, types in self._types_in(row.place):
            for one in types.structs_like(row.size, row.offset, row.target_size):
                found.setdefault(one, binary)
        if len(found) != 1:
            return None
        (one, binary), = found.items()
        return HolderName(f"{one.name}.{one.member}", one.name, one.member, self._module(binary))

    def _types_in(self, stack: int) -> list[tuple[int, DataTypes]]:
        """Return the binaries in whose functions blocks of a stack were made, with their types."""
        if stack not in self._made_in:
            known = self._snapshot.stacks.get(stack)
            frames = known.frames[:_STACK_FRAMES] if known is not None else ()
            binaries = dict.fromkeys(frame >> FRAME_BINARY_SHIFT for frame in frames)
            found = ((binary, self._types_of(binary)) for binary in binaries)
            self._made_in[stack] = [(binary, types) for binary, types in found if types is not None]
        return self._made_in[stack]

    def _module(self, binary: int) -> str | None:
        known = self._binaries.get(binary)
        return known.path.rpartition("/")[2] if known is not None else None

    def _source(self, binary: int) -> Source:
        if binary not in self._sources:
            known = self._binaries.get(binary)
            self._sources[binary] = open_source(known, self._debug_files) if known is not None else Source()
        return self._sources[binary]

    def _types_of(self, binary: int) -> DataTypes | None:
        """Return the types of a binary; None where it has no DWARF, or where enough was read."""
        if binary not in self._types:
            source = self._source(binary)
            section = source.dwarf.section(".debug_info") if source.dwarf is not None else None
            module = self._module(binary) or ""
            is_wanted = not any(names.fullmatch(module) for names in _SYSTEM)
            fits = is_wanted and section is not None and self._bytes + section.size <= _MOST_BYTES
            self._types[binary] = None
            if source.dwarf is not None and section is not None and fits:
                self._bytes += section.size
                self._types[binary] = _read(source)
        return self._types[binary]


_ANYWHERE = Where.ABORTED | Where.NO_MEMORY


def _may_be_of_variables(errors: Records) -> npt.NDArray[np.bool_]:
    """Tell the frees of what is no block, nor on a stack."""
    found: npt.NDArray[np.bool_] = (errors["error"] == ErrorKind.INVALID_FREE) & (errors["where"] & ~_ANYWHERE == 0)
    return found


def _read(source: Source) -> DataTypes | None:
    try:
        return DataTypes(source.dwarf) if source.dwarf is not None else None
    except (RefleakError, ValueError, IndexError, OSError):  # damaged, or made to harm: it costs names
        return None


def _covering(source: Source, address: int, *, is_local: bool) -> Symbol | None:
    for table in source.tables:
        found = table.thread_local_covering(address) if is_local else table.object_covering(address)
        if found is not None:
            return found
    return None


def with_holder_names(snapshot: Snapshot, options: SymbolOptions) -> Snapshot:
    """Return a snapshot whose holders have names, as far as the files tell; they are looked into only where needed."""
    if not len(snapshot.holders) and not _may_be_of_variables(snapshot.errors).any():
        return snapshot
    return HolderNames(snapshot, options).named()

