"""MappedMemory against exact numbers and against a model that knows each page."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_history import batch, event

from tracer.aggregation.mapped import MappedMemory
from tracer.aggregation.mapped_space import MappedTotals
from tracer.model.events import RemapRecord
from tracer.model.operations import Operation
from tracer.model.records import MappedFlag

MAP, UNMAP, REMAP, UNDO = Operation.MAP, Operation.UNMAP, Operation.REMAP, Operation.UNDO
PAGE = 4096
BASE = 0x7F00_0000_0000
INHERITED = int(MappedFlag.INHERITED)


def mapped(time_ns: int, page: int, pages: int, **fields: int) -> tuple[int, ...]:
    return event(MAP, time_ns, 0, address=BASE + page * PAGE, object=pages * PAGE, stack=time_ns, **fields)


def unmapped(time_ns: int, page: int, pages: int, **fields: int) -> tuple[int, ...]:
    return event(UNMAP, time_ns, 0, address=BASE + page * PAGE, object=pages * PAGE, **fields)


def remap_entry(time_ns: int, page: int, pages: int, **fields: int) -> tuple[int, ...]:
    return event(REMAP, time_ns, 0, value=BASE + page * PAGE, extra=pages * PAGE, flags=RemapRecord.ENTRY, **fields)


def remap_return(time_ns: int, old: int, page: int, pages: int, **fields: int) -> tuple[int, ...]:
    new = {"address": BASE + page * PAGE, "object": pages * PAGE, "value": BASE + old * PAGE}
    return event(REMAP, time_ns, 0, stack=time_ns, flags=RemapRecord.RETURN, **new, **fields)


def undone(time_ns: int, **fields: int) -> tuple[int, ...]:
    return event(UNDO, time_ns, 0, **fields)


def books(*rows: tuple[int, ...]) -> MappedMemory:
    memory = MappedMemory()
    memory.add(batch(*rows))
    return memory


def live(memory: MappedMemory) -> list[tuple[int, int, int]]:
    """Return (page, pages, stack) of what is mapped."""
    return [((int(r["start"]) - BASE) // PAGE, int(r["length"]) // PAGE, int(r["stack"])) for r in memory.live()]


def totals(memory: MappedMemory) -> MappedTotals:
    return memory.totals()[10, 0]


Pages = dict[int, tuple[int, bool]]
"""Page to the time of its birth, and whether it is inherited."""


@dataclass
class NaiveSpace:
    pages: Pages = field(default_factory=dict)
    removed: dict[int, tuple[int, int, Pages]] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    made_pages: int = 0

    def take(self, tid: int, page: int, count: int) -> None:
        gone = {p: self.pages.pop(p) for p in range(page, page + count) if p in self.pages}
        self.removed[tid] = (page, count, gone)

    def place(self, page: int, birth: tuple[int, bool], new: bool) -> None:
        self.pages[page] = birth
        if new and not birth[1]:
            self.made.add(birth[0])
            self.made_pages += 1

    def move(self, tid: int, page: int, count: int, time_ns: int) -> None:
        old, old_count, gone = self.removed.pop(tid)
        last = gone.get(old + old_count - 1, (time_ns, False))
        for i in range(count):
            known = gone.get(old + i)
            self.place(page + i, known or ((time_ns, False) if i < old_count else last), known is None)

    def runs(self) -> list[tuple[int, int, int, bool]]:
        """Return (page, pages, time of birth, inherited) of neighbouring pages of one birth."""
        out: list[tuple[int, int, int, bool]] = []
        for page, birth in sorted(self.pages.items()):
            if out and out[-1][0] + out[-1][1] == page and out[-1][2:] == birth:
                out[-1] = (out[-1][0], out[-1][1] + 1, *birth)
            else:
                out.append((page, 1, *birth))
        return out

    def totals(self) -> MappedTotals:
        own = [birth for birth, inherited in self.pages.values() if not inherited]
        return MappedTotals(
            len(self.made), self.made_pages * PAGE, len(self.made) - len(set(own)), (self.made_pages - len(own)) * PAGE
        )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["map", "map", "unmap", "unmap", "remap", "fail", "remap fails", "fork"]),
        st.sampled_from([10, 11]),
        st.sampled_from([20, 21]),
        st.integers(0, 11),
        st.integers(1, 6),
        st.integers(0, 11),
        st.integers(1, 8),
    ),
    max_size=40,
)


@settings(max_examples=500, deadline=None)
@given(STEPS, st.integers(0, 10**6), st.integers(1, 9))
def test_agrees_with_a_page_by_page_model(steps, seed, batch_rows) -> None:
    spaces: dict[int, NaiveSpace] = {}
    rows: list[tuple[int, ...]] = []
    forks: list[tuple[int, int, int]] = []
    for kind, pid, tid, page, pages, new, new_pages in steps:
        time = 10 * (len(rows) + len(forks)) + 10
        who = {"pid": pid, "tid": tid}
        space = spaces.setdefault(pid, NaiveSpace())
        if kind == "fork":
            child = 100 + len(forks)
            spaces[child] = NaiveSpace({p: (birth, True) for p, (birth, _) in space.pages.items()})
            forks.append((time, pid, child))
            pid = child
        elif kind == "map":
            for p in range(page, page + pages):
                space.place(p, (time, False), True)
            rows.append(mapped(time, page, pages, **who))
        elif kind == "unmap":
            space.take(tid, page, pages)
            rows.append(unmapped(time, page, pages, **who))
        elif kind == "remap":
            space.take(tid, page, pages)
            space.move(tid, new, new_pages, time + 10)
            rows += [remap_entry(time, page, pages, **who), remap_return(time + 10, page, new, new_pages, **who)]
        else:
            start = remap_entry if kind == "remap fails" else unmapped
            space.take(tid, page, pages)
            for p, birth in space.removed.pop(tid)[2].items():
                space.place(p, birth, False)
            rows += [start(time, page, pages, **who), undone(time + 10, **who)]

    memory = MappedMemory(reorder_ns=100)
    random = Random(seed)
    # A fork stands in the list with its time first, as an event does.
    delivered = sorted([*rows, *forks], key=lambda item: item[0] + random.randint(0, 100))
    for start in range(0, len(delivered), batch_rows):
        together = delivered[start : start + batch_rows]
        for time, parent, child in (item for item in together if len(item) == 3):
            memory.fork((parent, 0), (child, 0), time)
        memory.add(batch(*(item for item in together if len(item) != 3)))

    found = [
        (int(r["pid"]), (int(r["start"]) - BASE) // PAGE, int(r["length"]) // PAGE, int(r["time_ns"]),
         bool(r["flags"] & INHERITED))
        for r in memory.live()
    ]
    assert found == [(pid, *run) for pid, space in sorted(spaces.items()) for run in space.runs()]
    assert {pid: t for (pid, _), t in memory.totals().items() if t.made} == {
        pid: space.totals() for pid, space in spaces.items() if space.made
    }


def test_munmap_of_part_of_one_and_parts_of_several() -> None:
    memory = books(mapped(1, 0, 5), mapped(2, 5, 5), unmapped(3, 1, 2), unmapped(4, 4, 3))
    assert live(memory) == [(0, 1, 1), (3, 1, 1), (7, 3, 2)]
    assert totals(memory) == MappedTotals(2, 10 * PAGE, 0, 5 * PAGE)


def test_a_mapping_is_freed_when_its_last_page_is() -> None:
    memory = books(mapped(1, 0, 2), unmapped(2, 0, 1), mapped(3, 8, 1), unmapped(4, 1, 1))
    assert totals(memory) == MappedTotals(2, 3 * PAGE, 1, 2 * PAGE)


def test_lengths_are_rounded_up_to_pages() -> None:
    memory = MappedMemory()
    memory.add(batch(event(MAP, 1, 0, address=BASE, object=2 * PAGE + 1), event(UNMAP, 2, 0, address=BASE, object=1)))
    assert [(int(r["start"]), int(r["length"])) for r in memory.live()] == [(BASE + PAGE, 2 * PAGE)]


def test_map_fixed_replaces_what_it_covers() -> None:
    memory = books(mapped(1, 0, 5), mapped(2, 1, 2, value=0x10))
    assert live(memory) == [(0, 1, 1), (1, 2, 2), (3, 2, 1)]
    assert memory.live()["flags"].tolist() == [0, 0x10, 0]


def test_what_is_put_over_a_mapping_at_a_fixed_address_says_when_that_was_made() -> None:
    fixed = {"value": 0x10}
    memory = books(
        mapped(1, 0, 9), mapped(2, 1, 2, **fixed), mapped(3, 2, 2, **fixed), mapped(4, 20, 1, **fixed),
        mapped(5, 8, 1), remap_entry(6, 40, 1), remap_return(7, 40, 6, 1),
    )  # fmt: skip
    assert live(memory) == [(0, 1, 1), (1, 1, 2), (2, 2, 3), (4, 2, 1), (6, 1, 7), (7, 1, 1), (8, 1, 5), (20, 1, 4)]
    assert memory.live()["reserved_ns"].tolist() == [0, 1, 1, 0, 1, 0, 0, 0]


def test_a_failed_munmap_changes_nothing() -> None:
    memory = books(mapped(1, 0, 5), unmapped(2, 1, 2), undone(3))
    assert live(memory) == [(0, 5, 1)]
    assert totals(memory) == MappedTotals(1, 5 * PAGE, 0, 0)


def test_undo_belongs_to_its_thread_and_spares_what_came_between() -> None:
    memory = books(
        mapped(1, 0, 5), unmapped(2, 0, 3), unmapped(3, 4, 1, tid=11), mapped(4, 1, 1, tid=11), undone(5), undone(6)
    )
    assert live(memory) == [(0, 1, 1), (1, 1, 4), (2, 2, 1)]


def test_undo_without_a_removal_is_nothing() -> None:
    assert live(books(undone(1), mapped(2, 0, 1), undone(3))) == [(0, 1, 2)]


def test_mremap_moves_grows_and_keeps_the_birth() -> None:
    memory = books(mapped(1, 0, 3), remap_entry(2, 0, 3), remap_return(3, 0, 20, 7))
    assert live(memory) == [(20, 7, 1)]
    assert totals(memory) == MappedTotals(1, 7 * PAGE, 0, 0)


def test_mremap_shrinks_in_place() -> None:
    memory = books(mapped(1, 0, 7), remap_entry(2, 0, 7), remap_return(3, 0, 0, 3))
    assert live(memory) == [(0, 3, 1)]
    assert totals(memory) == MappedTotals(1, 7 * PAGE, 0, 4 * PAGE)


def test_mremap_of_unknown_memory_is_born_by_the_call() -> None:
    memory = books(remap_entry(2, 0, 3), remap_return(3, 0, 20, 5))
    assert live(memory) == [(20, 5, 3)]
    assert totals(memory) == MappedTotals(1, 5 * PAGE, 0, 0)


def test_mremap_that_shrinks_to_where_nothing_was_known() -> None:
    memory = books(mapped(1, 0, 1), mapped(2, 2, 1), remap_entry(3, 0, 3), remap_return(4, 0, 9, 2))
    assert live(memory) == [(9, 1, 1), (10, 1, 4)]
    assert totals(memory) == MappedTotals(3, 3 * PAGE, 1, PAGE)


def test_mremap_of_length_zero_makes_a_second_mapping() -> None:
    assert live(books(mapped(1, 0, 2), remap_entry(2, 0, 0), remap_return(3, 0, 9, 2))) == [(0, 2, 1), (9, 2, 3)]


def test_a_failed_mremap_changes_nothing() -> None:
    assert live(books(mapped(1, 0, 4), remap_entry(2, 1, 2), undone(3))) == [(0, 4, 1)]


def test_a_child_inherits_and_its_own_counts_apart() -> None:
    memory = MappedMemory()
    memory.fork((10, 0), (11, 0), 5)
    memory.add(batch(mapped(1, 0, 4), mapped(7, 8, 1), unmapped(6, 0, 1, pid=11), mapped(8, 9, 2, pid=11)))
    memory.fork((11, 0), (12, 0), 9)
    records = memory.live()
    assert [(int(r["pid"]), (int(r["start"]) - BASE) // PAGE, int(r["flags"])) for r in records] == [
        (10, 0, 0), (10, 8, 0), (11, 1, INHERITED), (11, 9, 0), (12, 1, INHERITED), (12, 9, INHERITED),
    ]  # fmt: skip
    assert memory.totals() == {
        (10, 0): MappedTotals(2, 5 * PAGE, 0, 0),
        (11, 0): MappedTotals(1, 2 * PAGE, 0, 0),
        (12, 0): MappedTotals(0, 0, 0, 0),
    }


def test_generations_of_one_pid_are_different_spaces() -> None:
    memory = books(mapped(1, 0, 1), mapped(2, 0, 2, generation=1), unmapped(3, 0, 2, generation=1))
    assert live(memory) == [(0, 1, 1)]


def test_other_operations_are_passed_over_and_empty_is_empty() -> None:
    memory = books(event(Operation.CREATE, 1, 1), event(Operation.FREE, 2, 0))
    assert len(memory.live()) == 0
    assert memory.totals() == {}


def freed_places(memory: MappedMemory) -> list[tuple[int, int, int, int]]:
    """Return what was unmapped: (first page, pages, time, stack), in order of time."""
    memory.live()
    rows = np.sort(memory.unmapped(), order="time_ns")
    return [((int(r["address"]) - BASE) // PAGE, int(r["size"]) // PAGE, int(r["time_ns"]), int(r["release"]))
            for r in rows]  # fmt: skip


def test_where_memory_was_unmapped() -> None:
    memory = books(mapped(1, 0, 5), unmapped(2, 1, 2, stack=7), unmapped(3, 3, 1, tid=9, stack=8))
    assert freed_places(memory) == [(1, 2, 2, 7), (3, 1, 3, 8)]


def test_memory_that_was_mapped_over() -> None:
    """By zeros it is gone; by a file it may be the same, and what stood there without MAP_FIXED was unmapped unseen."""
    over, anonymous = 0x10, 0x20
    memory = books(
        mapped(1, 0, 9), mapped(2, 1, 2, value=over | anonymous), mapped(3, 4, 1, value=over), mapped(4, 6, 1),
        mapped(5, 20, 1, value=over | anonymous), mapped(6, 2, 3, value=over | anonymous),
    )  # fmt: skip
    assert freed_places(memory) == [(1, 2, 2, 2), (2, 3, 6, 6)]


def test_what_failed_moved_or_was_not_known_was_not_unmapped() -> None:
    memory = books(
        mapped(1, 0, 5), unmapped(2, 1, 2, stack=7), undone(3), unmapped(4, 20, 1, stack=8),
        remap_entry(5, 0, 2), remap_return(6, 0, 9, 2),
    )  # fmt: skip
    assert freed_places(memory) == []


def test_the_last_unmaps_are_kept() -> None:
    steps = [step for n in range(1, 5001) for step in (mapped(2 * n, n, 1), unmapped(2 * n + 1, n, 1, stack=n))]
    memory = books(*steps)
    memory.live()
    found = memory.unmapped()
    assert (len(found), found["release"].max()) == (4097, 5000)


def test_what_a_call_of_the_heap_mapped_is_marked_and_not_counted() -> None:
    memory = books(mapped(1, 0, 4), mapped(2, 8, 2, value=0x22 | 1 << 32))
    flags = [int(row["flags"]) for row in memory.live()]
    assert flags == [0, 0x22 | int(MappedFlag.BY_HEAP)]
    assert totals(memory) == MappedTotals(made=1, made_bytes=4 * PAGE, freed=0, freed_bytes=0)
