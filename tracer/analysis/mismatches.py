"""Blocks that were freed by another family of functions than made them, or with another size or alignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from tracer.analysis.bad_frees import C_LIBRARIES, byte_words
from tracer.analysis.evidence import Evidence
from tracer.analysis.families import MOST_CALLS, ByPointer, Call, call_of, called, made_by_c
from tracer.model.findings import ErrorFinding, FrameList
from tracer.model.records import Given
from tracer.model.snapshot import Records, SiteInfo

MISMATCHED_FREE = "mismatched-free"
_ALL_LOOKED_AT = 16
"""Of so many frees of an allocation stack each was looked at (is_worth_a_look in bpf/allocations.bpf.h)."""
_REPLACEMENTS = ("libjemalloc*", "libtcmalloc*", "libmimalloc*")
_ALLOCATORS = (*_REPLACEMENTS, *C_LIBRARIES)
_BY_NAME = frozenset({"reallocarray", "free_sized", "free_aligned_sized"})
_BY_NAME_OF_MUSL = frozenset({"calloc", "memalign", "posix_memalign"})
"""Functions of C libraries that call another one of the heap by its name: that may be another allocator's."""


_SIZE, _ALIGNMENT, _REALLOC = int(Given.SIZE), int(Given.ALIGNMENT), int(Given.REALLOC)
"""Numbers: to combine members of an IntFlag takes 20 times as long."""
_Calls = tuple[int, ...]
"""Keys of the innermost calls of a stack: whole stacks are symbolized for errors only, as there may be 100,000."""


class _Free(NamedTuple):
    """A row of FREED_RECORD, of which there may be 100,000: numpy's own take twice the time to read."""

    made: int
    freed: int
    given: int
    called: int
    frees: int
    address: int
    size: int
    argument: int
    pid: int
    generation: int
    site: int
    alignment: int
    path: int


class Mismatches:
    """Judge each pair of a birth and a free that was looked at: what two stacks say holds for all blocks of the pair.

    A size or an alignment counts only where no binary has operators of its own: they may ask libc for more than they
    were asked for, or free with whatever their second argument has become.
    """

    def __init__(self, evidence: Evidence) -> None:
        snapshot = evidence.snapshot
        self._evidence = evidence
        self._births: dict[int, Call] = {}
        """By stack; those whose innermost calls are the same have the same."""
        self._alike: dict[tuple[_Calls, int | None], Call] = {}
        self._frees: dict[tuple[_Calls, int, int], Call] = {}
        self._others: dict[tuple[int, int], bool] = {}
        self._related: dict[tuple[int, int], bool] = {}
        """Whether a birth and a free, by their identities, can be of one family."""
        self._looked_at = Counter[int]()
        for made, count in snapshot.free_sites[["made", "count"]].tolist():
            self._looked_at[made] += count
        self._plain = not any(binary.has_operators for binary in snapshot.binaries)

    def findings(self) -> Iterator[ErrorFinding]:
        """Yield an error for each pair that is one, where nothing was lost: else a block may seem an older one."""
        snapshot = self._evidence.snapshot
        for row in _rows(snapshot.free_sites):
            reason = self._judge(row) if snapshot.is_whole(row.pid, row.generation) else None
            if reason:
                yield ErrorFinding(
                    MISMATCHED_FREE, None, row.pid, row.frees, row.address,
                    self._evidence.stacks.get(row.freed).frames, self._birth_stack(row.made), None, reason=reason,
                    is_least=self._looked_at[row.made] >= _ALL_LOOKED_AT,
                )  # fmt: skip

    def _judge(self, row: _Free) -> str | None:
        other = self._of_other_allocators(row)
        if other:
            return other
        birth, free = self._birth(row.made), self._free(row)
        if not self._are_related(birth, free):
            return f"{_made(row, birth)}, freed by {called(free.names)}"
        if not self._plain or not free.by_jumps or not birth.names or not free.names:
            return None
        if not self._is_freed_by_libc(row):
            return None
        if free.is_sized and not row.given & _SIZE:
            return f"{_made(row, birth)}, freed as one of {byte_words(row.argument)}"
        if free.is_aligned and row.alignment and not row.given & _ALIGNMENT:
            return f"{_made(row, birth)} with alignment {row.alignment:,}, freed as of {row.argument:,}"
        return None

    def _are_related(self, birth: Call, free: Call) -> bool:
        """Tell whether nothing says that these are not of one family: of what has no name nothing is known."""
        pair = id(birth), id(free)
        known = self._related.get(pair)
        if known is None:
            known = not birth.names or not free.names or bool(birth.families & free.families)
            self._related[pair] = known
        return known

    def _is_freed_by_libc(self, row: _Free) -> bool:
        """Whether the probe stood on libc's free: another allocator's own operators have their arguments in another
        order."""
        site = self._site(row.site)
        return not row.given & _REALLOC and site is not None and site.function == "free"

    def _of_other_allocators(self, row: _Free) -> str | None:
        """Tell a block of one of the allocators that are known to have all functions from a free of another."""
        pair = self._evidence.makers.site_of(row.made), row.site
        if row.given & _REALLOC or not self._are_others(pair):
            return None
        made, freed = map(self._site, pair)
        assert made is not None and freed is not None
        return f"a block of {byte_words(row.size)} of {made.module}, freed by {freed.function} of {freed.module}"

    def _are_others(self, pair: tuple[int, int]) -> bool:
        """Tell whether what the first site makes is one allocator's, and what the second one frees another's."""
        if pair not in self._others:
            made, freed = map(self._site, pair)
            self._others[pair] = made is not None and freed is not None and _are_others(made, freed)
        return self._others[pair]

    def _birth_stack(self, stack: int) -> FrameList | None:
        made_by = self._evidence.makers.site_of(stack)
        return self._evidence.makers.whole(self._evidence.stacks.get(stack).frames, made_by) or None

    def _site(self, index: int | None) -> SiteInfo | None:
        sites = self._evidence.snapshot.sites
        return sites[index] if index is not None and index < len(sites) else None

    def _birth(self, stack: int) -> Call:
        call = self._births.get(stack)
        if call is None:
            made_at = self._evidence.makers.site_of(stack)
            key = self._evidence.stacks.innermost(stack, MOST_CALLS), made_at
            call = self._births[stack] = self._alike.get(key) or self._looked_up(*key)
            self._alike[key] = call
        return call

    def _looked_up(self, calls: _Calls, made_at: int) -> Call:
        frames, site = self._evidence.stacks.frames_of(calls), self._site(made_at)
        call = call_of(frames, is_birth=True)
        if not call.names and self._plain and site is not None and _is_any(site.module, C_LIBRARIES):
            return made_by_c(frames, site.function)
        return call

    def _free(self, row: _Free) -> Call:
        stacks, function, path = self._evidence.stacks, row.called, row.path
        key = stacks.innermost(row.freed, MOST_CALLS), function, path
        call = self._frees.get(key)
        if call is None:
            by_pointer = ByPointer(path, stacks.calls_of(function)) if function else None
            call = self._frees[key] = call_of(stacks.frames_of(key[0]), False, by_pointer)
        return call


def _made(row: _Free, birth: Call) -> str:
    return f"a block of {byte_words(row.size)} that {called(birth.names)} made"


def _rows(free_sites: Records) -> Iterator[_Free]:
    columns = (free_sites["count" if name == "frees" else name].tolist() for name in _Free._fields)
    return map(_Free._make, zip(*columns, strict=True))


def _are_others(made: SiteInfo, freed: SiteInfo) -> bool:
    if made.module == freed.module or _passes_on(made) or _passes_on(freed):
        return False
    modules = (made.module, freed.module)
    return all(_is_any(m, _ALLOCATORS) for m in modules) and any(_is_any(m, _REPLACEMENTS) for m in modules)


def _passes_on(site: SiteInfo) -> bool:
    """Tell whether the allocator of a block that a function made or frees may be another than its own library."""
    is_musl = "musl" in site.module
    return _is_any(site.module, C_LIBRARIES) and site.function in (_BY_NAME | _BY_NAME_OF_MUSL if is_musl else _BY_NAME)


def _is_any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
