"""Holders of an entry's objects and blocks, merged by name or birth and offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from tracer.analysis.groups import Column, Indices, group_rows, sorted_runs
from tracer.analysis.own_frame import OwnFrames
from tracer.analysis.reached import places
from tracer.analysis.stacks import SymbolizedStacks
from tracer.late_dataclasses import dataclass
from tracer.model.distinct_values import distinct
from tracer.model.findings import FrameList, Holder
from tracer.model.holders import HolderKind
from tracer.model.late_holders import LateHolders
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT
from tracer.model.snapshot import Records, Snapshot

WORDS = {
    HolderKind.GLOBAL: "global", HolderKind.THREAD_LOCAL: "thread-local", HolderKind.STACK: "stack",
    HolderKind.REGISTER: "register", HolderKind.BLOCK: "block", HolderKind.MAPPING: "mapping",
    HolderKind.FREED_BLOCK: "freed-block",
}  # fmt: skip
_HOLDING = ("kind", "place", "offset", "type", "released", "count", "tid", "name", "interior")
MOST = 16
"""Holders of an entry; the rest is one more, of kind "other"."""
_OTHER = "other"
_AT_ONCE = 1 << 17
"""Targets that are looked up together, but for those of one run: a million would take 50 MiB for a moment."""


class _Content(NamedTuple):
    """What rows of a HOLDER_RECORD say of a holder: their columns _HOLDING."""

    kind: int
    place: int
    offset: int
    type: int
    released: int
    words: int
    tid: int
    name: int
    interior: int


@dataclass(frozen=True)
class Targets:
    """Of each record of one kind the group of holders that speaks for it, -1: none; all that are alike have one."""

    group: Column

    def __getitem__(self, rows: Column) -> Targets:
        return Targets(self.group[rows])


class HoldersOfEntries:
    def __init__(self, snapshot: Snapshot, table: SymbolizedStacks, own_frames: OwnFrames) -> None:
        self._snapshot, self._stacks = snapshot, table
        self._rows = rows = snapshot.holders
        self._binaries = {binary.id: binary.path.rpartition("/")[2] for binary in snapshot.binaries}
        self._own_frames = own_frames
        self._likenesses: dict[int, tuple[FrameList | None, tuple[object, ...] | None]] = {}
        self._known: dict[tuple[int, ...], tuple[Holder, ...]] = {}
        """Of rows by their contents, whatever they are rows of: the children of one program are held alike."""
        self._holders: dict[int, tuple[tuple[object, ...], Holder] | None] = {}
        """By the content of a row: what it shares with those that are merged with it, and the holder."""
        if len(rows):
            groups = group_rows(rows["pid"], rows["generation"], rows["target_kind"], rows["target"])
            order, bounds = sorted_runs(groups.label, len(groups))
            self._order, self._bounds = order.tolist(), bounds.tolist()
            """Of each group the rows, in their own order."""
            self._first = rows[groups.first]
            contents = group_rows(*(rows[name] for name in _HOLDING))
            self._content = contents.label.tolist()
            columns = (rows[name][contents.first].tolist() for name in _HOLDING)
            self._contents = list(map(_Content._make, zip(*columns, strict=True)))

    def targets(self, kind: int, records: Records, address: str = "address") -> Targets:
        """Look up which groups speak for some records of a kind."""
        nothing = np.full(len(records), -1, np.int64)
        if not len(self._rows) or not len(records):
            return Targets(nothing)
        chosen = np.flatnonzero(self._first["target_kind"] == kind)
        place = places(self._first[chosen], "target", records, address)
        return Targets(np.where(place >= 0, chosen[place] if len(chosen) else -1, -1))

    def of(self, targets: Targets) -> tuple[Holder, ...] | None:
        """Return who holds them, most first; None where nobody looked."""
        groups = distinct(targets.group[targets.group >= 0]).tolist()
        return self._of_groups(groups) if groups else None

    def of_each(self, targets: Targets, bounds: Indices) -> list[Sequence[Holder] | None]:
        """Return who holds each run of targets, as `of` does, put together when it is asked for; run r is from
        bounds[r] to bounds[r + 1]."""
        if not len(self._rows):
            return [None] * (len(bounds) - 1)
        found: list[Sequence[Holder] | None] = []
        at = 0
        while at < len(bounds) - 1:
            behind = max(at + 1, int(np.searchsorted(bounds, bounds[at] + _AT_ONCE, side="right")) - 1)
            found += self._of_some(targets.group[bounds[at] : bounds[behind]], bounds[at : behind + 1] - bounds[at])
            at = behind
        return found

    def _of_some(self, group: Column, bounds: Indices) -> list[Sequence[Holder] | None]:
        runs = len(bounds) - 1
        if runs == 1:
            return [self._late(distinct(group[group >= 0]).tolist())]
        known = group >= 0
        run = np.repeat(np.arange(runs), np.diff(bounds))[known]
        pairs = distinct(run * len(self._first) + group[known])
        groups = (pairs % len(self._first)).tolist()
        begins = np.searchsorted(pairs, np.arange(runs + 1) * len(self._first)).tolist()
        return [self._late(groups[begin:end]) for begin, end in pairwise(begins)]

    def _late(self, groups: Sequence[int]) -> Sequence[Holder] | None:
        return LateHolders(self._of_groups, groups) if groups else None

    def _of_groups(self, groups: Sequence[int]) -> tuple[Holder, ...]:
        rows = self._rows_of(groups)
        key = tuple([self._content[row] for row in rows])
        if key not in self._known:
            self._known[key] = self._merged(key)
        return self._known[key]

    def _rows_of(self, groups: Sequence[int]) -> list[int]:
        rows = [row for group in groups for row in self._order[self._bounds[group] : self._bounds[group + 1]]]
        return sorted(rows) if len(groups) > 1 else rows

    def counted(self, targets: Targets) -> list[int]:
        """Return the types of the counted objects that hold them now, those of most words first."""
        words: dict[int, int] = {}
        for group in distinct(targets.group[targets.group >= 0]).tolist():
            rows = self._rows[self._rows_of([group])]
            for row in rows[(rows["kind"] == HolderKind.BLOCK) & (rows["type"] != 0)]:
                words[int(row["type"])] = words.get(int(row["type"]), 0) + int(row["count"])
        return sorted(words, key=lambda type_: (-words[type_], type_))

    def gone(self, kind: int, pid: int, generation: int, address: int) -> tuple[Holder, ...]:
        """Return who holds one object, by the address that its holders name."""
        wanted = np.zeros(1, [("pid", "<u4"), ("generation", "<u2"), ("address", "<u8")])
        wanted["pid"], wanted["generation"], wanted["address"] = pid, generation, address
        return self.of(self.targets(kind, wanted)) or ()

    def _merged(self, contents: Sequence[int]) -> tuple[Holder, ...]:
        found: dict[tuple[object, ...], Holder] = {}
        for content in contents:
            if (known := self._of_content(content)) is not None:
                key, holder = known
                before = found.get(key)
                found[key] = holder if before is None else replace(before, count=before.count + holder.count)
        ranked = sorted(found.values(), key=lambda h: (h.kind == "freed-block", -h.count, h.kind, h.name or ""))
        rest = ranked[MOST:]
        if rest:
            ranked[MOST:] = [Holder(sum(holder.count for holder in rest), _OTHER)]
        return tuple(ranked)

    def _of_content(self, content: int) -> tuple[tuple[object, ...], Holder] | None:
        """Return the holder that rows of one content tell of, and what it is merged by; None for one who is nobody."""
        if content not in self._holders:
            row, known = self._contents[content], None
            if row.kind != HolderKind.NOBODY:
                holder = self._holder(row)
                known = (*_same(holder), self._likeness(holder.stack), self._likeness(holder.freed_at)), holder
            self._holders[content] = known
        return self._holders[content]

    def _likeness(self, stack: FrameList | None) -> tuple[object, ...] | None:
        """Return what is equal for stacks that read the same and end in the same call; worked out once for each."""
        known = self._likenesses.get(id(stack))
        if known is None:
            known = self._likenesses[id(stack)] = stack, _likeness(stack)
        return known[1]

    def _holder(self, row: _Content) -> Holder:
        kind, place, offset = HolderKind(row.kind), row.place, row.offset
        known = self._snapshot.holder_names[row.name - 1] if row.name else None
        counted = self._snapshot.types.get(row.type) if row.type else None
        whole = partial(
            Holder, row.words, WORDS[kind], known.name if known else None,
            (known.type if known else None) or counted, known.member if known else None, interior=bool(row.interior),
        )  # fmt: skip
        module = known.module if known else None
        if kind in (HolderKind.GLOBAL, HolderKind.THREAD_LOCAL):
            if known is None and place:
                named, address = self._binaries.get(place >> FRAME_BINARY_SHIFT), place & FRAME_ADDRESS_MASK
                return whole(module=named, offset=address)
            return whole(module=module)
        if kind is HolderKind.REGISTER:
            return whole(module=module, thread=row.tid or None)
        frames = self._stacks.get(place).frames if place else ()
        if kind is HolderKind.STACK:
            return whole(module=module, thread=row.tid or None, stack=frames or None)
        freed_at = self._stacks.get(row.released).frames if row.released else None
        return whole(
            module=module, stack=frames or None, offset=offset if offset >= 0 else None, freed_at=freed_at or None,
            own_frame=self._own_frames.of(frames), freed_own_frame=self._own_frames.of(freed_at or ()),
        )


_same = attrgetter("kind", "name", "type", "member", "offset", "module", "thread", "interior")


def _likeness(stack: FrameList | None) -> tuple[object, ...] | None:
    if not stack:
        return None
    lines = ((frame.module, frame.function, frame.offset if frame.line is None else frame.line) for frame in stack)
    return stack[0].address, *lines


def short_name(holder: Holder) -> str:
    """Return "machine.kmaps", "thread 812's stack", "a block"."""
    if holder.name:
        return holder.name.removeprefix("struct ")
    if holder.kind == "stack":
        return "a stack" if holder.thread is None else f"thread {holder.thread}'s stack"
    if holder.kind == "block" and holder.type:
        return f"a {holder.type}"
    return _ARTICLES.get(holder.kind, f"a {holder.kind}")


_ARTICLES = {"global": "a global", "thread-local": "thread-local storage", "freed-block": "a freed block",
             "other": "others"}  # fmt: skip


def compared(count: int, pointers: Column, holders: tuple[Holder, ...] | None) -> str:
    """Return what the holders of objects say of their count: "count 2, one holder (machine.kmaps): one reference has no
    holder". `pointers`: how many words point at each, -1 where that is not known. Empty where nothing can be said."""
    known = pointers[pointers >= 0]
    if len(known) == 0 or len(known) < len(pointers) or count < 1:
        return ""
    least, most = int(known.min()), int(known.max())
    if most == 0:
        return f"count {count:,}, no holder: lost"
    if least != most:
        fewer = int(np.count_nonzero(known < count))
        some = f": {fewer:,} of {len(known):,} have fewer holders than references" if fewer else ""
        return f"count {count:,}, {least:,} to {most:,} holders{some}"
    names = list(dict.fromkeys(short_name(h) for h in holders or () if h.kind != "freed-block"))[:2]
    by = f" ({', '.join(names)})" if names else ""
    missing = count - most
    text = f"count {count:,}, {'one holder' if most == 1 else f'{most:,} holders'}{by}"
    if missing <= 0:
        return text
    return f"{text}: {'one reference has' if missing == 1 else f'{missing:,} references have'} no holder"
