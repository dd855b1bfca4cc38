"""Merging of live blocks: what allocations and mappings have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from tracer.analysis.births import Births, births
from tracer.analysis.estimates import estimated
from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Column, Groups, Indices, group_rows, sorted_runs
from tracer.analysis.holders import Targets
from tracer.analysis.object_memory import NumberedObjects, Numbers, numbers_of_each
from tracer.analysis.reached import Reached, reachability
from tracer.late_dataclasses import dataclass
from tracer.model.findings import INHERITED, Holder, Instance, Leak
from tracer.model.reachability import KIND_ALLOCATION, KIND_MAPPING
from tracer.model.selection import KEEPS_ALL
from tracer.model.snapshot import Records

Key = tuple[int, int, str, str, int, str]
"""pid, generation, allocator, id, Reach, id of the owner's entry."""
_KINDS = {"allocation": KIND_ALLOCATION, "mapping": KIND_MAPPING}


@dataclass(frozen=True)
class Blocks:
    """Live blocks as columns of one length. Sizes in bytes, times in ns since the trace began."""

    reached: Reached
    targets: Targets
    address: Column
    size: Column
    time: Column
    stack: Column
    tid: Column
    pid: Column
    generation: Column
    site: Column

    def __len__(self) -> int:
        return len(self.address)


def blocks_of(records: Records, address: str, size: str, kind: str, evidence: Evidence, found: Reached) -> Blocks:
    """Take the columns of ALLOCATION_RECORDs or MAPPED_RECORDs; `address`, `size` name two fields; `found`: of them."""
    fields = (address, size, "time_ns", "stack", "tid", "pid", "generation", "site")
    targets = evidence.holders.targets(_KINDS[kind], records, address)
    return Blocks(found, targets, *(np.ascontiguousarray(records[name]) for name in fields))


@dataclass(frozen=True, slots=True)
class MergedBlocks:
    """One entry before it is told what it means, and the raw stack ids that it merges."""

    fields: dict[str, Any]
    """Of its Leak, but for what it means."""
    count: int
    kept: int
    """How many of these were kept: all, or those that were drawn."""
    stacks: tuple[int, ...]
    births: Births

    def leak(self, **meaning: Any) -> Leak:
        """Make the entry, given what it means."""
        return Leak(**self.fields, **meaning)


@dataclass(frozen=True)
class _OfEntries:
    """What entries have of their blocks, worked out for all entries at once: element e of each is of entry e."""

    size_min: list[int]
    size_max: list[int]
    root_kinds: list[int]
    """A bit for each."""
    births: Iterator[Births]
    holders: list[Sequence[Holder] | None]
    objects_in: list[tuple[int, ...]]
    instances: list[tuple[Instance, ...]]


def merge_blocks(
    blocks: Blocks, kind: str, evidence: Evidence, objects: NumberedObjects | None = None, inherited: bool = False
) -> Iterator[MergedBlocks]:
    """Merge blocks by process, address space, allocator and the functions of their stack, and yield entry by entry, of
    which there may be a million. `objects`: those that may be in them."""
    if len(blocks) == 0:
        return
    names = [evidence.allocator(site) or "" for site in range(int(blocks.site.max()) + 1)]
    codes = {name: code for code, name in enumerate(sorted(set(names)))}
    allocator = np.array([codes[name] for name in names])[blocks.site]
    reach, owners = blocks.reached.reach, evidence.owner_groups(blocks.reached.owner)
    raw = group_rows(blocks.pid, blocks.generation, allocator, blocks.stack, reach, owners)
    columns = (blocks.pid, blocks.generation, blocks.site, blocks.stack, reach, blocks.reached.owner)
    rows = zip(*(column[raw.first].tolist() for column in columns), strict=True)
    keys = [
        (
            pid, generation, names[site], evidence.ids.of(kind, names[site] or None, stack, site), reach,
            evidence.owner_id(owner) or "",
        )
        for pid, generation, site, stack, reach, owner in rows
    ]
    members: defaultdict[Key, list[int]] = defaultdict(list)
    for group, key in enumerate(keys):
        members[key].append(group)
    within = objects.within(blocks.pid, blocks.generation, blocks.address, blocks.size) if objects else None
    yield from _measure(blocks, raw, members, kind, evidence, within, inherited)


def _measure(
    blocks: Blocks, raw: Groups, members: dict[Key, list[int]], kind: str, evidence: Evidence, within: Numbers | None,
    inherited: bool,
) -> Iterator[MergedBlocks]:
    pieces = [0, *np.cumsum([len(groups) for groups in members.values()]).tolist()]
    groups = [group for groups in members.values() for group in groups]
    position = np.empty(len(raw), dtype=np.int64)
    position[groups] = np.arange(len(raw))
    entry = np.repeat(np.arange(len(members)), np.diff(pieces))[position]
    found = _of_entries(blocks, entry[raw.label], list(members), evidence, within)
    order, bounds = sorted_runs(position[raw.label], len(raw))
    sampled = evidence.snapshot.selection if kind == "allocation" else KEEPS_ALL
    whole = estimated(blocks.size[order].astype(np.uint64), bounds[:-1], sampled)
    first = raw.first[groups]
    made_by = (blocks.stack[first].tolist(), blocks.site[first].tolist(), whole.counts.tolist(), whole.bytes.tolist())
    parts = list(zip(*made_by, strict=True))

    @cache
    def state(pid: int, generation: int, name: str) -> str:
        return INHERITED if inherited else evidence.state(pid, generation, kind, name)

    @cache
    def made_at(stack: int, site: int) -> dict[str, Any]:
        """Many entries are of one stack: the children of one program allocate alike."""
        return _made_at(evidence, stack, site)

    each = zip(members, pairwise(pieces), found.births, strict=True)
    for number, (key, (begin, end), born) in enumerate(each):
        some, sample = parts[begin:end], whole.sample(slice(begin, end))
        count = sum([part[2] for part in some])
        fields = _entry(key, kind, evidence, found.root_kinds[number])
        fields.update(
            made_at(*_most(some)),
            state=state(key[0], key[1], key[2]), count=count, bytes=sum([part[3] for part in some]), sample=sample,
            size_min=found.size_min[number], size_max=found.size_max[number], instances=found.instances[number],
            holders=found.holders[number], objects_in=found.objects_in[number],
        )  # fmt: skip
        stacks = tuple([part[0] for part in some])
        yield MergedBlocks(fields, count, sample.count if sample else count, stacks, born)


def _of_entries(
    blocks: Blocks, entry: Indices, keys: Sequence[Key], evidence: Evidence, within: Numbers | None
) -> _OfEntries:
    """`entry`: of each block."""
    counts = np.bincount(entry, minlength=len(keys))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    order, starts = np.lexsort((blocks.address, blocks.time, entry)), bounds[:-1]
    sizes = blocks.size[order].astype(np.uint64)
    roots = np.bitwise_or.reduceat(np.uint32(1) << blocks.reached.root_kind[order].astype(np.uint32), starts)
    span = cache(evidence.span)
    spans = [span(pid, generation) for pid, generation, *_ in keys]
    most = np.minimum(counts, evidence.samples)
    first = np.concatenate([[0], np.cumsum(most)])
    rows = order[np.arange(first[-1]) + np.repeat(starts - first[:-1], most)]
    ends = np.repeat([end_ns for _, end_ns in spans], most)
    shown = _instances(blocks, rows, ends.tolist())
    return _OfEntries(
        np.minimum.reduceat(sizes, starts).tolist(), np.maximum.reduceat(sizes, starts).tolist(), roots.tolist(),
        births(blocks.time[order], sizes, bounds, spans), evidence.holders.of_each(blocks.targets[order], bounds),
        [()] * len(keys) if within is None else numbers_of_each(within[order], bounds),
        [tuple(shown[begin:end]) for begin, end in pairwise(first.tolist())],
    )  # fmt: skip


@cache
def _explained(reach: int, root_kinds: int) -> tuple[str | None, str | None]:
    return reachability(reach, [kind for kind in range(32) if root_kinds >> kind & 1])


def _most(parts: list[tuple[int, int, int, int]]) -> tuple[int, int]:
    """Return stack id and site of the raw stack that stands for all: of those with (stack id, site, count, bytes) the
    one with most bytes."""
    part = parts[0] if len(parts) == 1 else min(parts, key=lambda part: (-part[3], -part[2], part[0]))
    return part[0], part[1]


def _made_at(evidence: Evidence, stack_id: int, site: int) -> dict[str, Any]:
    stack = evidence.stacks.get(stack_id)
    frames = evidence.makers.whole(stack.frames, site)
    return {
        "stack": frames,
        "stack_complete": stack.complete,
        "stack_status": stack.status,
        "own_frame": evidence.own_frames.of(frames, len(frames) - len(stack.frames)),
        "maker": frames[0].function if len(frames) > len(stack.frames) else None,
    }


def _entry(key: Key, kind: str, evidence: Evidence, root_kinds: int) -> dict[str, Any]:
    pid, generation, name, id_, reach, owner = key
    word, reason = _explained(reach, root_kinds)
    return {
        "id": id_,
        "kind": kind,
        "type": name or None,
        "pid": pid,
        "generation": generation,
        "reachability": word,
        "reachability_reason": reason or evidence.why_unknown.get((pid, generation)),
        "owner": owner or None,
    }


def _instances(blocks: Blocks, rows: Indices, ends_ns: Sequence[int]) -> list[Instance]:
    """`ends_ns`: of each row when its address space ended."""
    columns = (blocks.address[rows], blocks.size[rows], blocks.time[rows], blocks.tid[rows])
    return [
        Instance(address=address, size=size, references=None, age_ns=max(0, end_ns - time_ns), thread=tid)
        for address, size, time_ns, tid, end_ns in zip(*(column.tolist() for column in columns), ends_ns, strict=True)
    ]
