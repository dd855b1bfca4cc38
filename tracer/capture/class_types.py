"""The types of objects that point to their class: a C struct of operations, a C++ vtable."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.elf.image import PT_LOAD
from tracer.elf.symbol_table import SymbolTable
from tracer.kernel import bpf
from tracer.late_dataclasses import dataclass
from tracer.model import records
from tracer.model.records import TypeSource
from tracer.model.snapshot import Mapping
from tracer.probing.site_table import type_hash

_KEY = np.dtype([("hash", "<u8")])
_ADDRESS_MASK = (1 << 64) - 1
_VTABLE = "_ZTV"
_FIRST_FUNCTION = 16
"""Where an object's pointer to its vtable points: behind offset-to-top and type (Itanium C++ ABI, 2.5.2)."""


@dataclass(frozen=True)
class ClassTypes:
    types: MappingType[int, int]
    """The number that the kernel side gave a class in one address space, to that of its type."""
    names: MappingType[int, str]
    """Of those types; vtables are called as they are linked."""


def read_class_types(
    map_fd: int, binaries: Binaries, mappings: Sequence[Mapping], known: MappingType[int, str]
) -> ClassTypes:
    """Return the types of all classes; one that is in no binary has the type of its spec, which is in `known`."""
    keys, values = bpf.read_hash(map_fd, _KEY, records.TYPE_NAME, 4096)
    classes = np.flatnonzero(values["source"] == TypeSource.CLASS)
    places = ClassPlaces(binaries.all, mappings) if len(classes) else None
    types, names = {}, {}
    for index in classes.tolist():
        value = values[index]
        space, pointer = (int(value["pid"]), int(value["generation"])), int(value["pointer"])
        name = places.name(space, pointer) if places is not None else None
        type_ = int(value["otherwise"]) if name is None else type_hash(name)
        types[int(keys["hash"][index])] = type_
        names[type_] = known.get(type_, "") if name is None else name
    return ClassTypes(types, names)


class ClassPlaces:
    """Names what stands at addresses of the target's data."""

    def __init__(self, binaries: Sequence[OpenBinary], mappings: Sequence[Mapping]) -> None:
        self._binaries = binaries
        self._symbols: dict[int, SymbolTable] = {}
        self._biases: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for mapping in mappings:
            # Data lies as far from its link address as code; what is in .bss, copies of other binaries' classes
            # among it, is in no mapping of a file.
            if mapping.executable and mapping.link_address is not None:
                bias = (mapping.start - mapping.link_address) & _ADDRESS_MASK
                self._biases.setdefault((mapping.pid, mapping.generation), set()).add((mapping.binary, bias))

    def name(self, space: tuple[int, int], pointer: int) -> str | None:
        """Return the symbol at an address, or binary+offset where there is none.

        None where it is in no binary, or where several stood there, one after the other.
        """
        found = set()
        for binary, bias in self._biases.get(space, ()):
            link_address = (pointer - bias) & _ADDRESS_MASK
            if _holds(self._binaries[binary - 1], link_address):
                found.add((binary, link_address))
        if len(found) != 1:
            return None
        binary, link_address = found.pop()
        return self._symbol(binary, link_address)

    def _symbol(self, binary: int, link_address: int) -> str:
        opened = self._binaries[binary - 1]
        if binary not in self._symbols:
            self._symbols[binary] = opened.symbols
        symbol = self._symbols[binary].object_covering(link_address)
        if symbol is None:
            return f"class {Path(opened.path).name}+{link_address:#x}"
        offset = link_address - symbol.address
        if offset == (_FIRST_FUNCTION if symbol.name.startswith(_VTABLE) else 0):
            return symbol.name
        return f"{symbol.name}+{offset:#x}"


def _holds(binary: OpenBinary, link_address: int) -> bool:
    return any(
        s.type == PT_LOAD and s.link_address <= link_address < s.link_address + s.memory_size
        for s in binary.image.segments
    )
