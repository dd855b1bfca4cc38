"""Merging of live blocks: what allocations and mappings have in common."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from operator import or_

import numpy as np

from tracer.analysis.births import Births, births
from tracer.analysis.estimates import estimated
from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Column, Groups, Indices, group_rows, oldest, sorted_runs
from tracer.analysis.holders import Targets
from tracer.analysis.object_memory import NumberedObjects, Numbers, numbers_of
from tracer.analysis.reached import Reached, reachability
from tracer.late_dataclasses import dataclass
from tracer.model.findings import INHERITED, Holder, Instance, Leak
from tracer.model.reachability import KIND_ALLOCATION, KIND_MAPPING
from tracer.model.selection import KEEPS_ALL, Sample
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

    leak: Leak
    stacks: tuple[int, ...]
    births: Births


def merge_blocks(
    blocks: Blocks, kind: str, evidence: Evidence, objects: NumberedObjects | None = None, inherited: bool = False
) -> list[MergedBlocks]:
    """Merge blocks by process, address space, allocator and the functions of their stack. `objects`: those that may be
    in them."""
    if len(blocks) == 0:
        return []
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
    return _measure(blocks, raw, members, kind, evidence, within, inherited)


def _measure(
    blocks: Blocks, raw: Groups, members: dict[Key, list[int]], kind: str, evidence: Evidence, within: Numbers | None,
    inherited: bool,
) -> list[MergedBlocks]:
    position = np.empty(len(raw), dtype=np.int64)
    position[[group for groups in members.values() for group in groups]] = np.arange(len(raw))
    order, bounds = sorted_runs(position[raw.label], len(raw))
    sizes, starts = blocks.size[order].astype(np.uint64), bounds[:-1]
    roots = np.bitwise_or.reduceat(np.uint32(1) << blocks.reached.root_kind[order].astype(np.uint32), starts).tolist()
    low, high = (f.reduceat(sizes, starts).tolist() for f in (np.minimum, np.maximum))
    whole = estimated(sizes, starts, evidence.snapshot.selection if kind == "allocation" else KEEPS_ALL)
    counts, total = whole.counts.tolist(), whole.bytes.tolist()
    stacks, sites, ends = blocks.stack[raw.first].tolist(), blocks.site[raw.first].tolist(), bounds.tolist()
    spans = [evidence.span(pid, generation) for pid, generation, *_ in members]
    born = births(blocks.time[order], sizes, bounds[np.cumsum([0, *map(len, members.values())])], spans)
    merged, at = [], 0
    for birth, (key, groups) in zip(born, members.items(), strict=True):
        span = slice(at, at + len(groups))
        at += len(groups)
        made_by = [stacks[group] for group in groups], [sites[group] for group in groups]
        parts = list(zip(*made_by, counts[span], total[span], strict=True))
        members_of = order[ends[span.start] : ends[span.stop]]
        rows = oldest(members_of, blocks.time, blocks.address, evidence.samples)
        entry = _entry(
            key, kind, evidence, parts,
            size_min=min(low[span]), size_max=max(high[span]),
            instances=_instances(blocks, rows, evidence.end_ns(key[0], key[1])),
            state=INHERITED if inherited else evidence.state(key[0], key[1], kind, key[2]), sample=whole.sample(span),
            root_kinds=_union(roots[span]), holders=evidence.holders.of(blocks.targets[members_of]),
            objects_in=() if within is None else numbers_of(within[members_of]),
        )  # fmt: skip
        merged.append(MergedBlocks(entry, tuple(part[0] for part in parts), birth))
    return merged


def _union(masks: list[int]) -> list[int]:
    union = reduce(or_, masks, 0)
    return [kind for kind in range(32) if union >> kind & 1]


def _entry(
    key: Key, kind: str, evidence: Evidence, parts: list[tuple[int, int, int, int]], *, state: str, size_min: int,
    size_max: int, instances: tuple[Instance, ...], sample: Sample | None, root_kinds: list[int],
    holders: tuple[Holder, ...] | None, objects_in: tuple[int, ...],
) -> Leak:
    """`parts`: (stack id, site, count, bytes) of each raw stack; the one with most bytes stands for all."""
    pid, generation, name, id_, reach, owner = key
    word, reason = reachability(reach, root_kinds)
    parts = sorted(parts, key=lambda part: (-part[3], -part[2], part[0]))
    stack = evidence.stacks.get(parts[0][0])
    frames = evidence.makers.whole(stack.frames, parts[0][1])
    return Leak(
        id=id_,
        kind=kind,
        type=name or None,
        pid=pid,
        state=state,
        count=sum(count for _, _, count, _ in parts),
        bytes=sum(size for _, _, _, size in parts),
        stack=frames,
        stack_complete=stack.complete,
        stack_status=stack.status,
        instances=instances,
        sample=sample,
        size_min=size_min,
        size_max=size_max,
        own_frame=evidence.own_frames.of(frames, len(frames) - len(stack.frames)),
        maker=frames[0].function if len(frames) > len(stack.frames) else None,
        reachability=word,
        reachability_reason=reason or evidence.why_unknown.get((pid, generation)),
        holders=holders,
        owner=owner or None,
        objects_in=objects_in,
    )


def _instances(blocks: Blocks, rows: Indices, end_ns: int) -> tuple[Instance, ...]:
    """`rows`: of one address space, whose end is `end_ns`."""
    columns = (blocks.address[rows], blocks.size[rows], blocks.time[rows], blocks.tid[rows])
    return tuple([
        Instance(address=address, size=size, references=None, age_ns=max(0, end_ns - time_ns), thread=tid)
        for address, size, time_ns, tid in zip(*(column.tolist() for column in columns), strict=True)
    ])  # fmt: skip
