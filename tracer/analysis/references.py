"""Live counted objects, merged by type, birth and imbalance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tracer.analysis.births import births
from tracer.analysis.call_paths import call_path
from tracer.analysis.coverage_gaps import doubt_notes, may_have_ended
from tracer.analysis.drift import drifted
from tracer.analysis.evidence import Evidence
from tracer.analysis.groups import Column, Indices, group_rows, oldest, sorted_runs
from tracer.analysis.history import Calls, calls, owners
from tracer.analysis.holders import compared
from tracer.analysis.object_memory import NumberedObjects
from tracer.analysis.own_frame import own_frame
from tracer.analysis.reached import reachability, reached
from tracer.analysis.signature import signatures
from tracer.analysis.stacks import Lines, SymbolizedStack, lines_of
from tracer.analysis.trends import trend
from tracer.analysis.turnover import Turnovers, object_turnover
from tracer.analysis.unpaired_verdict import Verdict
from tracer.late_dataclasses import dataclass
from tracer.model.balance import Balance, CallPath
from tracer.model.events import EVENT
from tracer.model.findings import INHERITED, LEAKED, OUTSTANDING, Instance, Leak, StackCount, UnpairedGet
from tracer.model.operations import Operation
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.records import ObjectFlag
from tracer.model.snapshot import Records
from tracer.model.trends import Trend

_KIND = "reference"
_GET, _PUT = int(Operation.GET), int(Operation.PUT)  # an enum's own attributes are slow to read
_Own = tuple[int, int, int, str, int, int, int, str]
"""pid, generation, type, id, count at the end, signature, Reach, id of the owner's entry."""
Key = tuple[_Own, _Own | None]
"""What objects of an entry have in common, and what those have by which they live."""


def reference_leaks(evidence: Evidence) -> tuple[list[Leak], NumberedObjects]:
    """Merge the live objects of the target's own making."""
    merge = _Merge(evidence, evidence.snapshot.objects, evidence.snapshot.history, False)
    return merge.leaks(), NumberedObjects(evidence.snapshot.objects, merge.numbers)


def inherited_references(evidence: Evidence) -> list[Leak]:
    """Merge the copies that forked processes hold of their parents' objects; their history is the parents'."""
    return _Merge(evidence, evidence.snapshot.inherited_objects, np.zeros(0, dtype=EVENT), True).leaks()


@dataclass(frozen=True)
class _Part:
    """Objects of one raw stack id that functions of one site created."""

    stack: int
    site: int
    rows: Indices


class _Merge:
    def __init__(self, evidence: Evidence, objects: Records, history: Records, inherited: bool) -> None:
        owner = owners(history, objects)
        condensed = evidence.snapshot.condensed[: 0 if inherited else None]
        self._owner = owner
        self._evidence = evidence
        self._objects = objects
        self._inherited = inherited
        self._reached = reached(evidence.snapshot, KIND_REFERENCE, objects)
        self._targets = evidence.holders.targets(KIND_REFERENCE, objects)
        self._turnover: dict[int, Turnovers] = {}
        self._calls = calls(history, owner, condensed, owners(condensed, objects))
        self._call_order, self._call_bounds = sorted_runs(self._calls.object, len(objects))
        self._drifted = drifted(objects, history, owner)
        self._paths: dict[int, CallPath] = {}
        self.numbers = np.zeros(len(objects), np.int64)
        """Of each object that of its entry, or of its keeper's; 0: none."""
        self._columns: dict[str, Column] = {
            name: np.ascontiguousarray(objects[name]) for name in ("address", "time_ns")
        }

    def leaks(self) -> list[Leak]:
        objects = self._objects
        if len(objects) == 0:
            return []
        label, keys = self._own_keys()
        keeper = self._reached.keeper
        raw = group_rows(label, np.where(keeper >= 0, label[keeper], -1))
        order, bounds = sorted_runs(raw.label, len(raw))
        members: defaultdict[Key, list[_Part]] = defaultdict(list)
        for group, row in enumerate(raw.first.tolist()):
            kept_by = keys[label[keeper[row]]] if keeper[row] >= 0 else None
            rows = order[bounds[group] : bounds[group + 1]]
            part = _Part(int(objects["stack"][row]), int(objects["site"][row]), rows)
            members[keys[label[row]], kept_by].append(part)
        groups = {key: np.concatenate([part.rows for part in parts]) for key, parts in members.items()}
        found = {} if self._inherited else self._verdicts(groups)
        numbers = {own: number for number, (own, kept_by) in enumerate(members, 1) if kept_by is None}
        leaks = []
        for key, parts in members.items():
            leak, kept_by = self._entry(key[0], parts, found.get(key, Verdict())), key[1]
            self.numbers[groups[key]] = numbers.get(key[0] if kept_by is None else kept_by, 0)
            if kept_by is not None:
                leak = replace(leak, keeper=numbers.get(kept_by, 0))
            elif not self._inherited:
                leak = replace(leak, number=numbers[key[0]])
            leaks.append(leak)
        return leaks

    def _verdicts(self, groups: Mapping[Key, Indices]) -> dict[Key, Verdict]:
        from tracer.analysis.pairing import verdicts  # with all that pairs references, which few programs count

        return verdicts(self._evidence, self._objects, self._owner, self._calls, groups)

    def _own_keys(self) -> tuple[Indices, list[_Own]]:
        """Number the objects by what they have in common themselves; return the numbers, and the key of each."""
        objects, known = self._objects, self._reached
        signature = signatures(objects, self._calls, self._evidence.stacks)
        names = ("pid", "generation", "type", "stack", "count", "site")
        raw = group_rows(
            *(objects[name] for name in names), signature, known.reach, self._evidence.owner_groups(known.owner)
        )
        keys = []
        for row in raw.first.tolist():
            pid, generation, type_, stack, count, site = (int(objects[name][row]) for name in names)
            id_ = self._evidence.ids.of(_KIND, self._evidence.type_name(type_), stack, site)
            reach, owner = int(known.reach[row]), self._evidence.owner_id(int(known.owner[row])) or ""
            keys.append((pid, generation, type_, id_, count, int(signature[row]), reach, owner))
        return raw.label, keys

    def _entry(self, key: _Own, parts: list[_Part], verdict: Verdict) -> Leak:
        pid, generation, type_, id_, count, _, reach, owner = key
        parts = sorted(parts, key=lambda part: (-len(part.rows), part.stack))
        table = self._evidence.stacks
        stack = table.get(parts[0].stack)
        rows = np.concatenate([part.rows for part in parts])
        frames = self._evidence.makers.whole(stack.frames, parts[0].site)
        made = self._calls_of(rows)
        word, reason = reachability(reach, self._reached.root_kind[rows].tolist())
        holders = self._evidence.holders.of(self._targets[rows])
        gaps = self._gaps(rows, type_)
        is_known = not gaps or self._has_counter(rows)  # else a get seems unpaired whose put was not seen
        return Leak(
            id=id_,
            kind=_KIND,
            type=self._evidence.type_name(type_),
            pid=pid,
            generation=generation,
            state=self._state(pid, generation, rows, type_),
            count=len(rows),
            bytes=None,
            stack=frames,
            stack_complete=stack.complete,
            stack_status=stack.status,
            instances=self._instances(rows),
            own_frame=own_frame(frames, len(frames) - len(stack.frames)),
            maker=frames[0].function if len(frames) > len(stack.frames) else None,
            gets=self._by_stack(made, _GET),
            puts=self._by_stack(made, _PUT),
            unpaired=tuple(self._of_birth(get, parts[0].stack) for get in verdict.unpaired) if is_known else (),
            healthy=verdict.healthy,
            held_in=() if self._inherited else self._held_in(count, rows, verdict),
            balance=None if self._inherited else self._balance(rows, made),
            trend=None if self._inherited else self._trend(pid, generation, type_, parts, rows),
            notes=(*gaps, *self._notes(rows, made)),
            reachability=word,
            reachability_reason=reason or self._evidence.why_unknown.get((pid, generation)),
            holders=holders,
            holders_and_count=compared(count, self._reached.pointers[rows], holders),
            owner=owner or None,
        )

    def _held_in(self, count: int, rows: Indices, verdict: Verdict) -> tuple[str, ...]:
        """Return types of objects that keep these alive: by who points at them, else by where they were taken and
        would be put.

        None where most have more references than words that point at them: what nobody holds, nobody keeps alive.
        """
        pointers = self._reached.pointers[rows]
        if 2 * int(np.count_nonzero((pointers >= 0) & (pointers < count))) > len(rows):
            return ()
        held = map(self._evidence.type_name, self._evidence.holders.counted(self._targets[rows]))
        return tuple(dict.fromkeys((*held, *verdict.made_with, *verdict.around)))

    def _of_birth(self, get: UnpairedGet, birth: int) -> UnpairedGet:
        """Give the creator's own reference the very stack of the entry: it may be that of another one of its births."""
        is_own = lines_of(get.stack) == self._evidence.stacks.lines(birth)
        return replace(get, stack=self._evidence.stacks.get(birth).frames) if is_own else get

    def _state(self, pid: int, generation: int, rows: Indices, type_: int) -> str:
        """Judge; nothing is a leak for certain that may have been put where no probe is."""
        if self._inherited:
            return INHERITED
        state = self._evidence.state(pid, generation, "reference")
        is_doubtful = state == LEAKED and may_have_ended(self._evidence.unseen, self._types(rows, type_))
        return OUTSTANDING if is_doubtful else state

    def _gaps(self, rows: Indices, type_: int) -> list[str]:
        return doubt_notes(self._evidence.unseen, self._types(rows, type_), self._has_counter(rows))

    def _types(self, rows: Indices, type_: int) -> set[str]:
        return {self._evidence.type_name(type_), *self._evidence.types_in_specs(self._objects["site"][rows])}

    def _has_counter(self, rows: Indices) -> bool:
        sites = self._evidence.snapshot.sites
        made_at = set(self._objects["site"][rows].tolist())
        return any(site >= len(sites) or sites[site].counter for site in made_at)

    def _trend(self, pid: int, generation: int, type_: int, parts: list[_Part], rows: Indices) -> Trend:
        """Judge by the objects of the entry, and by all that were created at the same stacks."""
        if type_ not in self._turnover:
            self._turnover[type_] = object_turnover(self._evidence.snapshot, type_)
        times, bounds = np.sort(self._columns["time_ns"][rows]), np.array([0, len(rows)])
        (born,) = births(times, np.zeros(len(rows), np.uint64), bounds, [self._evidence.span(pid, generation)])
        return trend(born, self._turnover[type_].of(tuple([part.stack for part in parts])), has_size=False)

    def _instances(self, rows: Indices) -> tuple[Instance, ...]:
        sample = oldest(rows, self._columns["time_ns"], self._columns["address"], self._evidence.samples)
        return tuple(self._instance(self._objects[row]) for row in sample.tolist())

    def _instance(self, record: np.void) -> Instance:
        end_ns = self._evidence.end_ns(int(record["pid"]), int(record["generation"]))
        return Instance(
            address=int(record["object"]) or int(record["address"]),
            size=None,
            references=int(record["count"]),
            age_ns=max(0, end_ns - int(record["time_ns"])),
            thread=int(record["tid"]),
        )

    def _calls_of(self, rows: Indices) -> Calls:
        """Sum the calls of some objects by operation and stack, without a loop over them."""
        starts = self._call_bounds[rows]
        lengths = self._call_bounds[rows + 1] - starts
        shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        taken = self._call_order[np.arange(int(lengths.sum())) + shift]
        all_ = self._calls
        if len(rows) == 1:
            return Calls(all_.object[taken], all_.operation[taken], all_.stack[taken], all_.count[taken])
        groups = group_rows(all_.operation[taken], all_.stack[taken])
        counts = np.zeros(len(groups), dtype=np.int64)
        np.add.at(counts, groups.label, all_.count[taken])
        first = taken[groups.first]
        return Calls(all_.object[first], all_.operation[first], all_.stack[first], counts)

    def _balance(self, rows: Indices, made: Calls) -> Balance:
        births, label = np.unique(self._objects["stack"][rows], return_inverse=True)
        given = np.bincount(label, self._objects["initial"][rows]).astype(np.int64)
        created = zip(births.tolist(), given.tolist(), [0] * len(births), strict=True)
        gets, puts = Counter[int](), Counter[int]()
        columns = (made.operation.tolist(), made.stack.tolist(), made.count.tolist())
        for operation, stack, count in zip(*columns, strict=True):
            (gets if operation == _GET else puts)[stack] += count
        calls_ = ((stack, gets[stack], puts[stack]) for stack in sorted({*gets, *puts}))
        references = (*created, *calls_)
        for stack, *_ in references:
            if stack not in self._paths:
                self._paths[stack] = call_path(self._evidence.stacks.get(stack))
        return Balance(references, self._paths)

    def _by_stack(self, made: Calls, operation: int) -> tuple[StackCount, ...]:
        chosen = made.operation == operation
        counts: Counter[Lines] = Counter()
        stacks: dict[Lines, SymbolizedStack] = {}
        for stack, count in zip(made.stack[chosen].tolist(), made.count[chosen].tolist(), strict=True):
            lines = self._evidence.stacks.lines(stack)
            counts[lines] += count
            stacks.setdefault(lines, self._evidence.stacks.get(stack))
        ranked = sorted(counts, key=lambda lines: (-counts[lines], lines))
        return tuple(StackCount(stacks[lines].frames, counts[lines]) for lines in ranked)

    def _notes(self, rows: Indices, made: Calls) -> list[str]:
        objects = self._objects[rows]
        notes = []
        initial = sorted(set(objects["initial"].tolist()))
        if initial != [1]:
            notes.append(f"created with count {_range(initial)}")
        changed = np.flatnonzero(self._drifted[rows])
        if len(changed):
            notes.append(_drift_note(objects[changed[0]], len(changed), len(rows)))
        unread = int(np.count_nonzero(objects["flags"] & ObjectFlag.COUNT_UNREAD))
        if unread and self._has_counter(rows):
            notes.append(f"the counter of {_share(unread, len(rows))} could not be read")
        for name, operation in (("gets", _GET), ("puts", _PUT)):
            missing = int(objects[name].sum()) - int(made.count[made.operation == operation].sum())
            if missing > 0 and not self._inherited:
                word = name if missing != 1 else name[:-1]
                notes.append(f"{missing:,} {word} whose stack was not kept")
        return notes


def _drift_note(example: np.void, changed: int, of: int) -> str:
    count = int(example["count"])
    read = count + int(example["drift"])
    return (
        f"the counter of {_share(changed, of)} changed without a traced call: "
        f"{'it' if of == 1 else 'one'} reads {read} where gets and puts give {count}"
    )


def _share(part: int, whole: int) -> str:
    if whole == 1:
        return "this object"
    return f"all {whole:,}" if part == whole else f"{part:,} of {whole:,}"


def _range(values: list[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
