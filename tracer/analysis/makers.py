"""The functions that made what a snapshot holds: the leaf of each entry's stack, which the walk leaves out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePath

from tracer.analysis.groups import group_rows
from tracer.analysis.identity import frame_key
from tracer.analysis.runtime import is_machinery
from tracer.model.findings import FrameList
from tracer.model.frames import Frame
from tracer.model.operations import Operation
from tracer.model.snapshot import Records, SiteInfo, Snapshot

_MAPS = (Operation.MAP, Operation.REMAP)
_MAKERS = (Operation.CREATE, Operation.ALLOC, Operation.REALLOC, *_MAPS)
Made = tuple[str, str | None, int, int]
"""Kind and type of an entry, stack and site."""


class Makers:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._keys: dict[tuple[int, str | None], str] = {}
        self._frames: dict[int, Frame | None] = {}
        self._wholes: dict[tuple[int, int], tuple[FrameList, FrameList]] = {}
        """By a stack, which is kept so that its identity stays its own, and a site."""

    def allocator(self, site: int) -> str | None:
        """Return the name of the allocator of a site: its type, else its function."""
        info = self._info(site)
        return None if info is None else info.type or info.function

    def type_name(self, type_hash: int) -> str:
        return self._snapshot.types.get(type_hash) or f"type {type_hash:#x}"

    def frame(self, site: int) -> Frame | None:
        """Return the function of a site as a frame; None where its name is not known."""
        if site not in self._frames:
            self._frames[site] = self._frame(site)
        return self._frames[site]

    def whole(self, stack: FrameList, site: int) -> FrameList:
        """Return a stack with the function that its leaf called; the same where that is the leaf, or not known."""
        frame = self.frame(site)
        if not stack or frame is None or stack[0].function == frame.function:
            return stack
        key = id(stack), site
        if key not in self._wholes:
            self._wholes[key] = stack, (frame, *stack)
        return self._wholes[key][1]

    def key(self, site: int, type_: str | None) -> str:
        """Return what identifies the function of a site over runs; "" for allocators and stubs: their type says it."""
        key = self._keys.get((site, type_))
        if key is None:
            frame = self.frame(site)
            said = frame is None or frame.function == type_ or is_machinery(frame)
            key = self._keys[site, type_] = "" if said or frame is None else frame_key(frame)
        return key

    def site_of(self, stack: int, type_hash: int = 0) -> int:
        """Return the site at which a stack made something: the one that was seen, or else the only one of its type.

        Where there is neither: a number that is no site's.
        """
        known = self._by_stack.get((stack, type_hash))
        return self._only.get(type_hash, len(self._snapshot.sites)) if known is None else known

    def places(self, kind: str, rows: Records) -> Iterator[Made]:
        """Yield the distinct places of records that have a stack and a site."""
        types = rows["type"] if kind == "reference" else rows["site"]
        first = group_rows(types, rows["stack"], rows["site"]).first
        columns = (types[first].tolist(), rows["stack"][first].tolist(), rows["site"][first].tolist())
        for type_, stack, site in zip(*columns, strict=True):
            yield kind, self.type_name(type_) if kind == "reference" else self.allocator(site), stack, site

    def of_totals(self, stack: int, type_hash: int, site: int) -> Made:
        """Return the place of a row of totals; `type_hash`: 0 for a block or a mapping."""
        if type_hash:
            return "reference", self.type_name(type_hash), stack, self.site_of(stack, type_hash)
        info = self._info(site)
        is_mapping = info is not None and info.operation in _MAPS
        return "mapping" if is_mapping else "allocation", self.allocator(site), stack, site

    def _info(self, site: int) -> SiteInfo | None:
        sites = self._snapshot.sites
        return sites[site] if site < len(sites) else None

    def _frame(self, site: int) -> Frame | None:
        info = self._info(site)
        if info is None or not info.function or info.operation not in _MAKERS:
            return None
        path, build_id = self._files.get(info.module, (None, None))
        return Frame(info.function, info.module or None, path, build_id, address=info.address, offset=0)

    @cached_property
    def _files(self) -> dict[str, tuple[str, str | None]]:
        """Path and build id by file name."""
        return {PurePath(b.path).name: (b.path, b.build_id) for b in reversed(self._snapshot.binaries)}

    @cached_property
    def _by_stack(self) -> dict[tuple[int, int], int]:
        """Site by stack, and by type or 0."""
        found: dict[tuple[int, int], int] = {}
        for rows in (self._snapshot.totals, self._snapshot.allocations, self._snapshot.mapped):
            first = group_rows(rows["stack"], rows["site"]).first[::-1]
            columns = (rows["stack"][first].tolist(), rows["site"][first].tolist())
            found |= {(stack, 0): site for stack, site in zip(*columns, strict=True)}
        for rows in (self._snapshot.objects, self._snapshot.inherited_objects):
            first = group_rows(rows["type"], rows["stack"], rows["site"]).first[::-1]
            named = (rows[name][first].tolist() for name in ("stack", "type", "site"))
            found |= {(stack, type_): site for stack, type_, site in zip(*named, strict=True)}
        return found

    @cached_property
    def _only(self) -> dict[int, int]:
        """Site by type, of those types that only functions of one name create. Stubs are given the type's name."""
        by_type: defaultdict[str | None, dict[str, int]] = defaultdict(dict)
        for index, info in enumerate(self._snapshot.sites):
            if info.operation == Operation.CREATE:
                by_type[info.type].setdefault(info.function, index)
        stub = None if by_type.keys() - {None} else next(iter(by_type[None].values()), None)
        found: dict[int, int] = {}
        for hash_, name in self._snapshot.types.items():
            sites = by_type.get(name, {})
            site = next(iter(sites.values())) if len(sites) == 1 else None if sites else stub
            if site is not None:
                found[hash_] = site
        return found
