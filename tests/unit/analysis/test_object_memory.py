"""Blocks that counted objects are in belong to the objects' entry; other blocks, and pools of objects, do not."""

from __future__ import annotations

from hand_made import DSO, MAP, SECOND, Code, blocks, objects, process, snapshot

from tracer.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import parse_suppressions
from tracer.model.findings import Leak
from tracer.model.snapshot import Records

AT, SIZE = 0x19000, 64


def found(live: Records, counted: Records, *rules: str, pids: tuple[int, ...] = (812,)) -> tuple[Leak, ...]:
    code = Code()
    main = code.frame("main", "srv.c:21")
    code.stack(1, code.frame("malloc", binary=2), code.frame("dso__new", "dso.c:80"), main)
    code.stack(2, code.frame("malloc", binary=2), code.frame("map__new", "map.c:80"), main)
    code.stack(3, code.frame("dso__new", "dso.c:88"), main)
    code.stack(4, code.frame("map__new", "map.c:88"), main)
    snap = snapshot(
        code, processes=tuple(process(pid) for pid in pids), allocations=live, objects=counted, duration_ns=SECOND
    )
    findings = analyse(snap, code.symbols, AnalysisOptions(suppressions=parse_suppressions("\n".join(rules), "rules")))
    return (*findings.leaks, *findings.suppressed)


def block(number: int, size: int = SIZE, stack: int = 1) -> dict[str, int]:
    return {"address": AT + SIZE * number, "size": size, "stack": stack}


def counted(number: int, offset: int = 0, stack: int = 3, type_: int = DSO) -> dict[str, int]:
    return {"address": AT + SIZE * number + offset, "serial": number, "stack": stack, "type": type_}


def memory_of(leaks: tuple[Leak, ...]) -> list[tuple[int, str | None]]:
    """Return of the entries of blocks how many they are, and the type of the objects whose memory they are."""
    types = {leak.cause or leak.id: leak.type for leak in leaks if leak.kind == "reference"}
    return [
        (leak.count, leak.memory_of and types[leak.memory_of]) for leak in leaks if leak.kind == "allocation"
    ]  # fmt: skip


def test_a_block_of_each_object() -> None:
    assert memory_of(found(blocks(block(0), block(1)), objects(counted(0), counted(1)))) == [(2, "dso")]


def test_a_counter_in_the_midst_of_its_block() -> None:
    assert memory_of(found(blocks(block(0), block(1)), objects(counted(0, 8), counted(1, 8)))) == [(2, "dso")]


def test_a_block_without_an_object_speaks_for_all() -> None:
    assert memory_of(found(blocks(block(0), block(1)), objects(counted(0)))) == [(2, None)]


def test_a_pool_of_objects_is_not_the_memory_of_one() -> None:
    assert memory_of(found(blocks(block(0, 4 * SIZE)), objects(counted(0), counted(1)))) == [(1, None)]


def test_what_ends_where_an_object_begins_has_none() -> None:
    assert memory_of(found(blocks(block(0)), objects(counted(1)))) == [(1, None)]


def test_blocks_of_two_types_are_the_memory_of_neither() -> None:
    live = blocks(block(0), block(1))
    assert memory_of(found(live, objects(counted(0), counted(1, 0, 4, MAP)))) == [(2, None)]


def test_each_type_has_its_own() -> None:
    live = blocks(block(0), block(1, stack=2))
    leaks = found(live, objects(counted(0), counted(1, 0, 4, MAP)))
    assert sorted(memory_of(leaks)) == [(1, "dso"), (1, "map")]


def test_the_same_address_in_another_process() -> None:
    live = blocks(block(0), block(0) | {"pid": 813})
    leaks = found(live, objects(counted(0)), pids=(812, 813))
    assert sorted(memory_of(leaks), key=str) == [(1, "dso"), (1, None)]
    assert [leak.pid for leak in leaks if leak.memory_of] == [812]


def test_the_memory_of_what_is_suppressed_is_too() -> None:
    leaks = found(blocks(block(0)), objects(counted(0)), "ref:dso*")
    assert [leak.kind for leak in leaks if leak.suppressed_by is not None] == ["reference", "allocation"]


def test_memory_of_which_one_object_is_not_suppressed_stays() -> None:
    live = blocks(block(0), block(1))
    leaks = found(live, objects(counted(0), counted(1, 0, 4, MAP)), "ref:dso*")
    assert [(leak.kind, leak.type) for leak in leaks if leak.suppressed_by is None] == [
        ("reference", "map"), ("allocation", "malloc"),
    ]  # fmt: skip
