"""Which family of the heap's functions a stack says that its block is of, and which pairs are a mismatch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hand_made import SITES, Code, records, snapshot

from tracer.analysis import analyse
from tracer.analysis.families import ByPointer, call_of, called, family_of, made_by_c
from tracer.model.findings import Findings
from tracer.model.frames import Frame
from tracer.model.operations import Operation
from tracer.model.records import FREED_RECORD, TOTALS_RECORD, Given
from tracer.model.snapshot import Loss, SiteInfo, Snapshot
from tracer.report.amount_words import times
from tracer.report.entry_sentence import error_sentence

NEW = Frame("operator new(unsigned long)", "libstdc++.so.6", address=1, calls="malloc")


def place(calls: str | None, function: str | None = "make", address: int = 7) -> Frame:
    return Frame(function, "srv", address=address, calls=calls)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("malloc", (False, False, False)), ("_Znwm", (True, False, False)), ("_ZdaPvm", (True, True, False)),
        ("operator delete[](void*, unsigned long)", (True, True, False)), ("_ZnamSt11align_val_t", (True, True, True)),
        ("operator new(unsigned long, std::align_val_t)", (True, False, True)),
        ("Pool::operator new(unsigned long)", (False, False, False)),
    ],
)  # fmt: skip
def test_families(name: str, expected: tuple[bool, bool, bool]) -> None:
    family = family_of(name)
    assert (family.is_cpp, family.is_array, family.is_aligned) == expected


def test_the_call_above_the_operators_names_the_function() -> None:
    assert call_of((NEW, place("_Znam")), is_birth=True).names == {"_Znam"}
    assert call_of((place("malloc"),), is_birth=True).names == {"malloc"}
    assert not call_of((NEW, place("_Znam")), is_birth=True).by_jumps


def test_only_what_fits_the_event_is_meant() -> None:
    assert call_of((place("_ZdlPv|malloc"),), is_birth=True).names == {"malloc"}
    assert call_of((place("_ZdlPv|malloc"),), is_birth=False).names == {"_ZdlPv"}
    assert call_of((place("realloc"),), is_birth=False).names == {"realloc"}


@pytest.mark.parametrize("stack", [(), (place(None),), (place("malloc", None),), (NEW,), (NEW, place("_Znam", None))])
def test_what_is_not_certain_has_no_name(stack: tuple[Frame, ...]) -> None:
    assert call_of(stack, is_birth=True).names == frozenset()


def test_an_operator_on_the_stack_is_of_cpp_whoever_called_it() -> None:
    assert called(call_of((NEW, place(None)), is_birth=True).names) == "an operator new"
    delete = Frame("operator delete(void*)", "srv", address=1, calls="free")
    assert called(call_of((delete, place(None)), is_birth=False).names) == "an operator delete"


@pytest.mark.parametrize(
    ("frames", "made"),
    [((place(None),), {"malloc"}), ((place(None, None),), set()), ((NEW, place(None)), set()), ((), set())],
)
def test_what_was_made_through_a_pointer_is_of_c(frames: tuple[Frame, ...], made: set[str]) -> None:
    assert made_by_c(frames, "malloc").names == made
    assert made_by_c(frames, "_Znwm").names == set()


@pytest.mark.parametrize(
    ("calls", "path", "entered", "names"),
    [
        ("%2", 2, "free", {"free"}), ("%2", 2, ">free", {"free"}), ("*b02", 0xB02, "_ZdlPv", {"_ZdlPv"}),
        ("*b02", 0xB02, ">_ZdlPv", set()), ("*b02", 2, "free", set()), ("%2", 3, "free", set()), ("%2", 2, None, set()),
        ("%2", 2, "malloc|free", {"free"}),
    ],
)  # fmt: skip
def test_calls_through_pointers(calls: str, path: int, entered: str | None, names: set[str]) -> None:
    call = call_of((place(calls),), False, ByPointer(path, entered))
    assert call.names == names
    assert not call.by_jumps
    assert call_of((place(calls),), False).names == set()


def test_an_inlined_operator_is_what_was_called() -> None:
    inner = replace(place(None, "operator new[](unsigned long)"), inlined=True)
    assert call_of((inner, place("malloc")), is_birth=True).names == {"operator new[](unsigned long)"}


def test_how_functions_are_called() -> None:
    assert called(frozenset({"_Znwm", "operator new[](unsigned long)"})) == "new or new[]"
    assert called(frozenset({"_ZdlPvmSt11align_val_t"})) == "aligned delete"


BIRTH, FREE = 1, 2
FREED_BY_LIBC, FREED_BY_JEMALLOC = len(SITES), len(SITES) + 1
FREES = (
    SiteInfo(Operation.FREE, "free", "libc.so.6", "malloc"),
    SiteInfo(Operation.FREE, "_ZdlPvmSt11align_val_t", "libjemalloc.so.2", "malloc"),
)


def traced(made: str | None, freed: str | None, row: dict[str, int], **more: Any) -> tuple[Snapshot, Code]:
    code = Code()
    for stack, name, calls in ((BIRTH, "make", made), (FREE, "drop", freed)):
        key = code.frame(name, f"{name}.c:{stack}")
        code.symbols[key] = tuple(replace(frame, calls=calls) for frame in code.symbols[key])
        code.stack(stack, key, code.frame("main", "srv.c:9"))
    usual = {"made": BIRTH, "freed": FREE, "count": 5, "address": 0x5020, "size": 40, "pid": 812, "generation": 1,
             "site": FREED_BY_LIBC}  # fmt: skip
    sites = records(FREED_RECORD, [{**usual, **row}])
    return snapshot(code, sites=SITES + FREES, free_sites=sites, **more), code


def judged(made: str | None, freed: str | None, row: dict[str, int] | None = None, **more: Any) -> Findings:
    seen, code = traced(made, freed, row or {}, **more)
    return analyse(seen, code.symbols)


@pytest.mark.parametrize(
    ("maker", "count"),
    [("malloc", 1), ("posix_memalign", 1), ("reallocarray", 0)],
)
def test_blocks_of_another_allocator(maker: str, count: int) -> None:
    """glibc's reallocarray calls realloc by its name: where another allocator stands in, the block is that one's."""
    seen, code = traced("malloc", "free", {"site": FREED_BY_JEMALLOC})
    total = {"stack": BIRTH, "made": 5, "freed": 5, "site": len(seen.sites)}
    sites = (*seen.sites, SiteInfo(Operation.ALLOC, maker, "libc.so.6", "malloc"))
    errors = analyse(replace(seen, sites=sites, totals=records(TOTALS_RECORD, [total])), code.symbols).errors
    assert len(errors) == count


def test_a_mismatch_has_both_stacks() -> None:
    (error,) = judged("_Znwm", "free").errors
    assert (error.kind, error.pid, error.count, error.address) == ("mismatched-free", 812, 5, 0x5020)
    assert error.reason == "a block of 40 bytes that new made, freed by free"
    assert (error.stack[0].function, (error.created_at or ())[0].function) == ("drop", "make")


@pytest.mark.parametrize(("count", "said"), [(1, "1 time"), (15, "15 times"), (16, "at least 16 times")])
def test_more_mismatches_than_were_looked_at_may_be_there(count: int, said: str) -> None:
    (error,) = judged("_Znwm", "free", {"count": count}).errors
    assert (times(error), error.is_least) == (said, count > 15)
    assert count == 1 or f", {said}," in error_sentence(error)


@pytest.mark.parametrize(
    ("made", "freed", "row", "reason"),
    [
        ("_Znwm", "_ZdlPvm", {"argument": 48}, "that new made, freed as one of 48 bytes"),
        ("_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t", {"argument": 128, "alignment": 64},
         "that aligned new made with alignment 64, freed as of 128"),
        ("_Znwm", "realloc", {"given": Given.REALLOC}, "that new made, freed by realloc"),
    ],
)  # fmt: skip
def test_sizes_and_alignments(made: str, freed: str, row: dict[str, int], reason: str) -> None:
    (error,) = judged(made, freed, row).errors
    assert error.reason == f"a block of 40 bytes {reason}"


@pytest.mark.parametrize(
    ("made", "freed", "row"),
    [
        ("_Znwm", "_ZdlPv", {}), ("malloc", "free", {}), (None, "free", {}), ("_Znwm", None, {}),
        ("_Znam|_Znwm", "_ZdaPv", {}), ("_Znwm", "_ZdlPvm", {"argument": 40, "given": Given.SIZE}),
        ("_Znwm", "_ZdlPv|_ZdlPvm", {"argument": 48}), ("malloc", "realloc", {"given": Given.REALLOC}),
        ("_ZnwmSt11align_val_t", "_ZdlPvSt11align_val_t", {"argument": 128}),
        ("_ZnwmSt11align_val_t", "_ZdlPvmSt11align_val_t",
         {"argument": 192, "alignment": 64, "site": FREED_BY_JEMALLOC}),
    ],
)  # fmt: skip
def test_what_is_right_or_not_certain_is_no_error(made: str | None, freed: str | None, row: dict[str, int]) -> None:
    assert judged(made, freed, row).errors == ()


def test_sizes_do_not_count_where_a_program_has_operators_of_its_own() -> None:
    seen, code = traced("_Znwm", "_ZdlPvm", {"argument": 48})
    own = replace(seen, binaries=tuple(replace(binary, has_operators=True) for binary in seen.binaries))
    assert analyse(own, code.symbols).errors == ()
    assert len(analyse(seen, code.symbols).errors) == 1


def test_nothing_is_said_where_something_was_lost() -> None:
    assert judged("_Znwm", "free", losses=(Loss("live map full", 1, "--max-blocks"),)).errors == ()
