"""Who holds what: from words in memory to the lines of a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from built_program import build, start_of
from hand_made import records
from test_reachability import GLOBALS, HEAP, POOL, SIZE, STACK, block, blocks_of, memory_of

from tracer.analysis.holders import compared
from tracer.dwarf.data_entries import read_entries
from tracer.dwarf.data_types import DataTypes
from tracer.elf.image import Image
from tracer.model.findings import Holder
from tracer.model.holders import HolderKind
from tracer.model.reachability import KIND_REFERENCE
from tracer.model.records import ALLOCATION_RECORD, MAPPED_RECORD, OBJECT_RECORD
from tracer.model.snapshot import Records
from tracer.reachability.classes import classify
from tracer.reachability.edges import edges_and_traces
from tracer.reachability.holders import FREED, GONE, MODULE, Holders, Surroundings
from tracer.reachability.memory import THREAD

SPACE = (812, 1)
BIAS, BINARY = 0x3000_0000, 7
MODULES = np.array([(GLOBALS, GLOBALS + (1 << 20), BIAS, BINARY, 0, True)], MODULE)
A_STACK, B_STACK = 501, 502


def held(
    count: int, words: list[tuple[int, int]], stacks: list[int], *, counted: tuple[dict[str, int], ...] = (),
    freed: tuple[tuple[int, ...], ...] = (), gone: tuple[tuple[int, ...], ...] = (), **more: object,
) -> tuple[Records, Holders]:  # fmt: skip
    """Return the holder records of `count` blocks of SIZE bytes, the stack of each in `stacks`."""
    memory = memory_of(sorted(words), **more)
    table = blocks_of(*((block(i), SIZE) for i in range(count)))
    made = records(ALLOCATION_RECORD, [{"address": block(i), "size": SIZE, "stack": stacks[i]} for i in range(count)])
    around = Surroundings(MODULES, np.array(list(freed), FREED), np.array(list(gone), GONE))
    things = records(OBJECT_RECORD, counted, pid=812, generation=1)
    holders = Holders(memory, table, made, things, np.zeros(0, MAPPED_RECORD), around)
    edges, traces = edges_and_traces(memory, table)
    classes = classify(table, edges, np.zeros(count, np.bool_))
    return holders.records(SPACE, edges, traces, classes, count), holders


def told(rows: Records, *names: str) -> set[tuple[int, ...]]:
    return {tuple(int(row[name]) for name in ("kind", "place", "offset", "count", *names)) for row in rows}


def test_words_are_summed_up_by_what_they_stand_in() -> None:
    """Seven blocks at one offset of blocks of one birth, which globals hold; one on the stack of a thread."""
    words = [(block(i) + 24, block(7 + i)) for i in range(7)]
    words += [(GLOBALS + 8 * i, block(i)) for i in range(7)] + [(STACK + 64, block(14))]
    threads = np.array([(77, STACK, 8)], THREAD)
    rows, _ = held(15, words, [A_STACK] * 7 + [B_STACK] * 8, threads=threads)
    assert told(rows[rows["kind"] == HolderKind.BLOCK]) == {(HolderKind.BLOCK, A_STACK, 24, 7)}
    assert told(rows[rows["kind"] == HolderKind.GLOBAL]) == {
        (HolderKind.GLOBAL, BINARY << 48 | GLOBALS - BIAS + 8 * i, -1, 1) for i in range(7)
    }
    assert told(rows[rows["kind"] == HolderKind.STACK], "tid") == {(HolderKind.STACK, 0, -1, 1, 77)}
    assert set(rows["target_size"].tolist()) == {SIZE}


def test_offsets_of_an_array_are_one_holder() -> None:
    words = [(block(0) + 8 * i, block(i)) for i in range(1, 8)]
    words += [(block(8) + 8 * (i - 9), block(i)) for i in range(9, 14)]
    words += [(POOL, block(0)), (POOL + 8, block(8))]
    rows, _ = held(14, words, [A_STACK] + [B_STACK] * 7 + [A_STACK] + [B_STACK] * 5)
    each = {(HolderKind.BLOCK, A_STACK, 8 * i, 1 + (i < 5)) for i in range(1, 8)}
    assert told(rows[rows["kind"] == HolderKind.BLOCK]) == each | {(HolderKind.BLOCK, A_STACK, 0, 1)}
    assert told(rows[rows["kind"] == HolderKind.MAPPING]) == {(HolderKind.MAPPING, 0, -1, 2)}


def test_who_held_a_lost_block_last() -> None:
    free = HEAP + 0x10000
    rows, _ = held(1, [(free + 16, block(0))], [A_STACK], freed=((free, 100, B_STACK, 9, 5), (free, 100, 1, 2, 4)))
    assert told(rows, "released", "size") == {(HolderKind.FREED_BLOCK, B_STACK, 16, 1, 9, 100)}


def test_nobody() -> None:
    rows, _ = held(1, [], [A_STACK])
    assert told(rows) == {(HolderKind.NOBODY, 0, 0, 0)}


def test_objects_are_counted_one_by_one() -> None:
    counted = tuple({"address": block(n) + 8 * (1 - n), "object": block(n), "type": 3} for n in (0, 1))
    words = [(GLOBALS, block(0)), (GLOBALS + 8, block(0)), (block(1), block(0))]
    rows, holders = held(2, words, [A_STACK, B_STACK], counted=counted)
    edges, _ = edges_and_traces(memory_of(sorted(words)), blocks_of((block(0), SIZE), (block(1), SIZE)))
    assert holders.counts(edges).tolist() == [3, 0]
    own = rows[rows["target_kind"] == KIND_REFERENCE]
    assert set(own["target"].tolist()) == {block(0) + 8, block(1)}
    by_block = own[own["kind"] == HolderKind.BLOCK]
    assert told(by_block, "type") == {(HolderKind.BLOCK, B_STACK, 0, 1, 3)}


def test_two_objects_in_one_block_are_told_apart() -> None:
    counted = tuple({"address": block(0) + at, "object": block(0) + at, "type": 3} for at in (0, 32))
    words = [(GLOBALS + 8 * n, block(0) + at) for n, at in enumerate((0, 32, 33, 8))]
    _, holders = held(1, words, [A_STACK], counted=counted)
    edges, _ = edges_and_traces(memory_of(words), blocks_of((block(0), SIZE)))
    assert holders.counts(edges).tolist() == [2, 2]


def test_who_still_points_at_what_is_gone() -> None:
    gone, free = HEAP + 0x20000, HEAP + 0x10000
    words = [(GLOBALS, gone), (free + 8, gone), (gone + 8, gone)]
    words.append((POOL, block(0)))
    rows, _ = held(1, words, [A_STACK], freed=((free, 64, B_STACK, 9, 5),), gone=((gone + 4, gone, 32),))
    own = rows[rows["target"] == gone + 4]
    assert told(own) == {
        (HolderKind.GLOBAL, BINARY << 48 | GLOBALS - BIAS, -1, 1), (HolderKind.FREED_BLOCK, B_STACK, 8, 1),
    }  # fmt: skip


SOURCE = """
struct item { char rest[80]; };
struct owner { long number; struct item *first, *second; char rest[200]; };
struct other { long number; char *first, *second; char rest[200]; };
union both { struct item *item; long number; };
typedef struct { union both both; struct { struct owner *owners[7]; } table; } anonymous;
struct { struct { struct item *item; struct { long size; struct owner *slots[53]; } table; } host; } machines;
static anonymous hidden[3];
struct owner *one; struct other *two;
int main(int count, char **a) { hidden[count].both.number++; return (long)&hidden[count]; }
"""


@pytest.mark.parametrize("flags", [("-gdwarf-5",), ("-gdwarf-4",), ("-gdwarf-5", "-fPIE", "-pie", "-O2")])
def test_places_in_types(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, SOURCE, *flags)
    machines, hidden = start_of(program, "machines"), start_of(program, "hidden")
    with Image.open(program) as image:
        types = DataTypes(image, read_entries)
    assert types.variable_at(machines) == ("machines", ".host.item")
    assert types.variable_at(machines + 8) == ("machines", ".host.table.size")
    assert types.variable_at(machines + 16 + 8 * 52) == ("machines", ".host.table.slots[]")
    assert types.variable_at(0x10) is None
    assert types.variable_at(hidden + 64) == ("hidden", "[].both.item")
    assert types.variable_at(hidden + 64 + 16) == ("hidden", "[].table.owners[]")
    assert [(f.name, f.member) for f in types.structs_like(224, 16, 80)] == [("struct owner", "second")]
    assert [f.name for f in types.structs_like(224, 16, 0)] == ["struct owner", "struct other"]
    assert types.structs_like(224, 0, 80) == types.structs_like(224, 16, 81) == []
    assert types.member("owner", 8) == "first" and types.member("nobody", 8) == ""


def test_a_binary_without_dwarf_tells_nothing(tmp_path: Path) -> None:
    with Image.open(build(tmp_path, SOURCE, "-g0")) as image:
        types = DataTypes(image, read_entries)
    assert not types.is_known and types.variable_at(0x4000) is None and types.structs_like(224, 16, 80) == []


@pytest.mark.parametrize(("count", "pointers", "said"), [
    (2, [1, 1], "count 2, one holder (machine.kmaps): one reference has no holder"),
    (1, [0], "count 1, no holder: lost"),
    (5, [2], "count 5, 2 holders (machine.kmaps): 3 references have no holder"),
    (1, [1], "count 1, one holder (machine.kmaps)"),
    (2, [1, 2, 3], "count 2, 1 to 3 holders: 1 of 3 have fewer holders than references"),
    (2, [1, -1], ""), (2, [], ""),
])  # fmt: skip
def test_holders_against_the_count(count: int, pointers: list[int], said: str) -> None:
    holders = (Holder(1, "block", "struct machine.kmaps"), Holder(1, "freed-block", "struct gone.x"))
    assert compared(count, np.array(pointers), holders) == said
