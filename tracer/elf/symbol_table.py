"""The symbols that a binary defines, found by name, by pattern or by address."""

from __future__ import annotations

import fnmatch
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from tracer.elf.image import Image
from tracer.elf.raw_symbols import SHN_UNDEF, RawSymbols, read_raw_symbols
from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import is_any_of

STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_TLS, STT_GNU_IFUNC = 0, 1, 2, 6, 10
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2

Indexes = npt.NDArray[np.intp]

_MOST_KEPT_BYTES = 256 << 10
"""libc's dynamic symbols are half of it; a trace may open hundreds of binaries."""


@dataclass(frozen=True)
class Symbol:
    """One defined symbol; `kind` is STT_*, `binding` STB_*, `address` a link address."""

    name: str
    """Without `@VERSION`."""
    address: int
    size: int
    kind: int
    binding: int
    version: str | None
    section: int


class SymbolTable:
    """The merged symbol tables of one binary; nothing is decoded before it is asked for."""

    def __init__(self, tables: Sequence[RawSymbols]) -> None:
        self._tables = tuple(tables)

    def __len__(self) -> int:
        """Return how many entries the tables have, undefined and doubled ones included."""
        return sum(len(table.array) for table in self._tables)

    @property
    def byte_size(self) -> int:
        """Return how many bytes of the file the tables are."""
        return sum(table.array.nbytes + len(table.strings_view) for table in self._tables)

    def mentions(self, fragment: str) -> bool:
        """Tell whether any name, even of an undefined symbol, contains `fragment`."""
        needle = fragment.encode()
        return any(needle in table.strings for table in self._tables)

    def lacks(self, name: str) -> bool:
        """Tell whether the binary refers to `name` without defining it."""
        for table in reversed(self._tables):  # the dynamic one is the smaller one
            places = [*_hits(table.strings, name.encode() + b"\0"), *_hits(table.strings, name.encode() + b"@")]
            for row in table.array[is_any_of(table.array["name"], places)] if places else ():
                if row["section"] == SHN_UNDEF and table.text(int(row["name"])).partition("@")[0] == name:
                    return True
        return False

    def lacking(self) -> Iterator[str]:
        """Yield all names that the binary refers to without defining them, some of them twice."""
        for table in self._tables:
            for row in table.array[table.array["section"] == SHN_UNDEF]:
                if name := table.text(int(row["name"])).partition("@")[0]:
                    yield name

    def find(self, name: str) -> tuple[Symbol, ...]:
        """Return every function, IFUNC and data object called `name`, ordered by address.

        Linkers store `free` as the tail of `cfree`, so a name may begin anywhere in the string table.
        """
        found: list[Symbol] = []
        for table in self._tables:
            offsets = [*_hits(table.strings, name.encode() + b"\0"), *_hits(table.strings, name.encode() + b"@")]
            if not offsets:
                continue
            indexes = np.flatnonzero(is_any_of(table.array["name"], offsets))
            kinds = table.kinds[indexes]
            wanted = (kinds == STT_FUNC) | (kinds == STT_GNU_IFUNC) | (kinds == STT_OBJECT)
            found += _decode(table, indexes[wanted])
        return _merged(s for s in found if s.name == name)

    def matching(self, pattern: str) -> tuple[Symbol, ...]:
        """Return the functions (IFUNCs too) whose names match `pattern` (fnmatch), ordered by address."""
        match = re.compile(fnmatch.translate(pattern)).match
        literal = max(re.split(r"\[.*?\]|[*?\[]", pattern), key=len).encode()
        found: list[Symbol] = []
        for table in self._tables:
            indexes = np.flatnonzero((table.kinds == STT_FUNC) | (table.kinds == STT_GNU_IFUNC))
            found += _decode(table, _holding(table, indexes, literal))
        return _merged(s for s in found if match(s.name))

    def covering(self, link_address: int) -> Symbol | None:
        """Return the function whose size covers the address; None rather than a near one.

        Of several the choice is fixed: not local, then the innermost, then the shortest name.
        """
        return _innermost(self._functions, link_address)

    def functions_at(self, link_address: int) -> tuple[Symbol, ...]:
        """Return the functions that begin at the address and have a size, under all their names."""
        found = (symbol for spans in self._functions for symbol in spans.covering(link_address))
        return _merged(symbol for symbol in found if symbol.address == link_address)

    def object_covering(self, link_address: int) -> Symbol | None:
        """Return the data object whose size covers the address, chosen as `covering` does."""
        return _innermost(self._objects, link_address)

    def thread_local_covering(self, offset: int) -> Symbol | None:
        """Return the thread-local variable that covers an offset in the binary's segment of them."""
        return _innermost((_Spans(table, STT_TLS) for table in self._tables), offset)

    @cached_property
    def _functions(self) -> tuple[_Spans, ...]:
        return tuple(_Spans(table, STT_FUNC) for table in self._tables)

    @cached_property
    def _objects(self) -> tuple[_Spans, ...]:
        return tuple(_Spans(table, STT_OBJECT) for table in self._tables)


class _Spans:
    """The sized symbols of one kind and one table, in order of address."""

    def __init__(self, table: RawSymbols, kind: int) -> None:
        indexes = np.flatnonzero((table.kinds == kind) & (table.array["size"] > 0))
        self._table = table
        self._indexes = indexes[np.argsort(table.array["value"][indexes], kind="stable")]
        starts = table.array["value"][self._indexes].copy()
        room = np.uint64(0xFFFF_FFFF_FFFF_FFFF) - starts
        ends = starts + np.minimum(table.array["size"][self._indexes], room)
        # One number at a time is taken out of these, which costs a tenth by the views that Python has of arrays.
        self._starts, self._ends, self._furthest = starts.data, ends.data, np.maximum.accumulate(ends).data
        self._decoded: dict[int, Symbol] = {}

    def covering(self, link_address: int) -> list[Symbol]:
        at = bisect_right(self._starts, link_address) - 1
        picked = []
        while at >= 0 and self._furthest[at] > link_address:
            if self._ends[at] > link_address:
                picked.append(self._symbol(at))
            at -= 1
        return picked

    def _symbol(self, at: int) -> Symbol:
        symbol = self._decoded.get(at)
        if symbol is None:
            (symbol,) = _decode(self._table, self._indexes[at : at + 1])
            self._decoded[at] = symbol
        return symbol


def _innermost(parts: Iterable[_Spans], link_address: int) -> Symbol | None:
    candidates = [s for spans in parts for s in spans.covering(link_address)]
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda s: (s.binding == STB_LOCAL, -s.address, len(s.name), s.name), default=None)


_KEPT: WeakKeyDictionary[Image, SymbolTable] = WeakKeyDictionary()


def read_symbol_table(image: Image) -> SymbolTable:
    """Return the symbols of .symtab, .dynsym (found without section headers too) and .gnu_debugdata.

    Damaged tables read as empty. That of an image is read once, unless it is large.
    """
    table = _KEPT.get(image)
    if table is None:
        table = SymbolTable(read_raw_symbols(image))
        if table.byte_size <= _MOST_KEPT_BYTES:
            _KEPT[image] = table
    return table


def _hits(strings: bytes, needle: bytes) -> Iterator[int]:
    at = strings.find(needle)
    while at >= 0:
        yield at
        at = strings.find(needle, at + 1)


def _holding(table: RawSymbols, indexes: Indexes, literal: bytes) -> Indexes:
    """Return those of `indexes` whose names hold `literal`, without decoding the others."""
    if not literal:
        return indexes
    hits = np.array(list(_hits(table.strings, literal)), np.int64)
    if not len(hits):
        return indexes[:0]
    starts = np.array([table.strings.rfind(b"\0", 0, hit) + 1 for hit in hits], np.int64)
    names = table.array["name"][indexes].astype(np.int64)
    next_hit = np.searchsorted(hits, names)
    inside = next_hit < len(hits)
    inside[inside] = starts[next_hit[inside]] <= names[inside]
    return indexes[inside]


def _decode(table: RawSymbols, indexes: Indexes) -> list[Symbol]:
    found = []
    for index in indexes:
        row = table.array[index]
        name, _, version = table.text(int(row["name"])).partition("@")
        version = version.lstrip("@") or table.version(int(index))
        info = int(row["info"])
        found.append(
            Symbol(
                name, int(row["value"]), int(row["size"]), info & 15, info >> 4, version or None, int(row["section"])
            )
        )
    return found


def _merged(symbols: Iterable[Symbol]) -> tuple[Symbol, ...]:
    """Return each (name, address) once, the entry that knows its version before the one that does not."""
    best: dict[tuple[int, str], Symbol] = {}
    for symbol in symbols:
        known = best.get((symbol.address, symbol.name))
        if known is None or (known.version is None and symbol.version is not None):
            best[symbol.address, symbol.name] = symbol
    return tuple(best[key] for key in sorted(best))
