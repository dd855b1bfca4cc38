"""Find the functions of specs in one binary."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tracer.elf.image import ET_EXEC, Image
from tracer.elf.symbol_table import STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, Symbol, SymbolTable, read_symbol_table
from tracer.late_patterns import late_pattern
from tracer.model.operations import FunctionSpec, Location, Operation, Site, Spec
from tracer.model.snapshot import Unresolved

_SHORTEST_FRAGMENT = 5
# GCC's suffixes (cgraphclones.cc, ipa-sra.cc): other arguments; a piece of the body; only another name.
_OTHER_ARGUMENTS = late_pattern(r"\.(isra|constprop)\b")
_PIECE = late_pattern(r"\.(part|cold)\b")
_RENAMED = late_pattern(r"(\.(lto_priv|llvm|localalias)(\.\d+)?)+")
_ALLOCATIONS = range(Operation.ALLOC, Operation.REMAP + 1)


def resolve(image: Image, specs: Sequence[Spec], *, allocator: bool) -> tuple[list[Site], list[Unresolved]]:
    """Return the sites of `specs` in `image`, and the functions that are there and cannot be probed.

    `allocator` says that the user named this binary as an allocator's: its `malloc` is one, whatever its
    name. So is the `malloc` that a program defines for itself or has linked in.
    """
    table = read_symbol_table(image)
    search = _Search(image, table, allocator)
    for spec in specs:
        fragment = common_fragment(tuple(f.function for f in spec.functions))
        if len(fragment) >= _SHORTEST_FRAGMENT and not table.mentions(fragment):
            continue
        for function in spec.functions:
            if search.applies(function):
                search.look_for(function)
    return list(search.sites.values()), list(dict.fromkeys(search.unresolved))


def functions_for(image: Image, specs: Sequence[Spec], *, allocator: bool) -> list[FunctionSpec]:
    """Return the functions of `specs` that are meant for this binary, whether or not it has them."""
    search = _Search(image, read_symbol_table(image), allocator)
    return [function for spec in specs for function in spec.functions if search.applies(function)]


@lru_cache(maxsize=256)
def common_fragment(names: tuple[str, ...]) -> str:
    """Return the longest text that all names hold: a binary that lacks it has none of them."""
    shortest = min(names, key=len, default="")
    for length in range(len(shortest), 0, -1):
        for start in range(len(shortest) - length + 1):
            piece = shortest[start : start + length]
            if not re.search(r"[*?\[\]]", piece) and all(piece in name for name in names):
                return piece
    return ""


class _Search:
    """What was found in one binary so far; a site is one address and operation, whatever its names."""

    def __init__(self, image: Image, table: SymbolTable, allocator: bool) -> None:
        self.image = image
        self.table = table
        self.allocator = allocator
        self.sites: dict[tuple[int, Operation, int, Location], Site] = {}
        self.unresolved: list[Unresolved] = []
        self._names = [name for name in (image.name, image.soname) if name]
        self._own_allocator: bool | None = None

    def applies(self, function: FunctionSpec) -> bool:
        if not function.libraries:
            return True
        if any(fnmatch.fnmatchcase(name, pattern) for name in self._names for pattern in function.libraries):
            return True
        if function.operation not in _ALLOCATIONS or function.group:
            return False
        return self.allocator or self._is_program_with_allocator()

    def _is_program_with_allocator(self) -> bool:
        if self._own_allocator is None:
            self._own_allocator = self._is_program() and any(map(self._may_allocate, self.table.find("malloc")))
        return self._own_allocator

    def _is_program(self) -> bool:
        """Tell a program from a library: static position-independent ones look alike but for `_start`."""
        if self.image.soname is not None:
            return False
        return self.image.type == ET_EXEC or bool(self.image.interpreter) or bool(self.table.find("_start"))

    def _may_allocate(self, symbol: Symbol) -> bool:
        """Pass over a program's private `malloc`, which libc's does not become; a static program has no other."""
        static = self.image.interpreter is None and not self.image.needed
        return symbol.kind == STT_FUNC and (symbol.binding != STB_LOCAL or (static and self._is_program()))

    def look_for(self, function: FunctionSpec) -> None:
        for symbol in self._candidates(function.function):
            allocates = function.operation in _ALLOCATIONS and not function.group
            if allocates and function.libraries and not self._may_allocate(symbol):
                continue
            reason = self._add(function, symbol)
            if reason:
                kind = function.operation.name.lower()
                self.unresolved.append(Unresolved(kind, function.type_name or "", symbol.name, reason))

    def _candidates(self, name: str) -> Iterator[Symbol]:
        if re.search(r"[*?\[]", name):
            yield from self.table.matching(name)
            return
        yield from self.table.find(name)
        if self.table.mentions(name + "."):
            yield from self.table.matching(name + ".*")

    def _add(self, function: FunctionSpec, symbol: Symbol) -> str:
        """Keep the site; or return why it is none, which is nothing to speak of where empty."""
        if symbol.kind == STT_GNU_IFUNC:
            return "is an IFUNC, whose code is chosen at run time"
        if symbol.kind != STT_FUNC or _PIECE.search(symbol.name):
            return ""
        plain, _, suffix = symbol.name.partition(".")
        if _OTHER_ARGUMENTS.search(symbol.name):
            return f"was cloned with other arguments ({symbol.name})"
        if suffix and not _RENAMED.fullmatch("." + suffix):
            return ""
        offset = self.image.file_offset_of(symbol.address)
        if offset is None:
            return "has no code in the file"
        key = (symbol.address, function.operation, function.group, function.object)
        if key not in self.sites:
            named = function if function.function == plain else replace(function, function=plain)
            self.sites[key] = Site(named, self.image.path, offset, symbol.address, symbol.size)
        return ""
