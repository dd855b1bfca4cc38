"""What a class pointer is called: by symbol, by place, or not at all."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from tracer.aggregation.merged_types import merge_types
from tracer.binaries.open_binaries import OpenBinary
from tracer.capture.class_types import ClassPlaces
from tracer.elf.image import Image
from tracer.model.events import ERROR_EVENT, EVENT
from tracer.model.operations import Operation
from tracer.model.records import OBJECT_RECORD
from tracer.model.snapshot import Mapping, Snapshot, TypeTotals
from tracer.model.statistics import DEATH, LIFETIME, BalancedStatistics
from tracer.symbols.class_names import class_names

SOURCE = r"""
struct operations { void (*end)(void); long spare; };
static void end(void) {}
const struct operations file_class = { end };
static const struct operations socket_class = { end };
struct operations late_class;
__asm__(".data\n.globl _ZTV4Conn\n.type _ZTV4Conn,@object\n_ZTV4Conn: .quad 0,0,0,0\n.size _ZTV4Conn,32\n"
        ".globl unsized\n.type unsized,@object\nunsized: .quad 0\n.text\n");
const void *all[] = { &file_class, &socket_class, &late_class };
"""
BIAS = 0x7F12_3456_0000
SPACE = (7, 1)


def mapping(binary: int = 1, bias: int = BIAS, space: tuple[int, int] = SPACE) -> Mapping:
    start = bias + 0x1000
    return Mapping(*space, start, start + 0x1000, 0x1000, binary, True, 0, link_address=0x1000)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> OpenBinary:
    folder = tmp_path_factory.mktemp("classes")
    (folder / "a.c").write_text(SOURCE)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "lib.so", "a.c"], cwd=folder, check=True)
    return OpenBinary(1, "/opt/lib.so", -1, Image.open(folder / "lib.so"))


def address(library: OpenBinary, symbol: str) -> int:
    found = library.link_address(symbol)
    assert found is not None
    return found


@pytest.mark.parametrize(("symbol", "offset", "name"), [
    ("file_class", 0, "file_class"),
    ("socket_class", 0, "socket_class"),
    ("late_class", 0, "late_class"),  # in .bss
    ("file_class", 8, "file_class+0x8"),
    ("_ZTV4Conn", 16, "_ZTV4Conn"),
    ("_ZTV4Conn", 0, "_ZTV4Conn+0x0"),
    ("_ZTV4Conn", 24, "_ZTV4Conn+0x18"),
])  # fmt: skip
def test_a_symbol_must_cover_the_address(library: OpenBinary, symbol: str, offset: int, name: str) -> None:
    link = address(library, symbol) + offset
    for bias in (BIAS, 0x5555_0000_0000):
        assert ClassPlaces([library], [mapping(bias=bias)]).name(SPACE, bias + link) == name


def test_no_neighbour_lends_its_name(library: OpenBinary) -> None:
    places = ClassPlaces([library], [mapping()])
    link = address(library, "unsized")
    assert places.name(SPACE, BIAS + link) == f"class lib.so+{link:#x}"
    assert places.name(SPACE, BIAS - 1) is None
    assert places.name(SPACE, 8) is None
    assert places.name((8, 1), BIAS + link) is None


def test_an_address_that_several_binaries_had_has_no_name(library: OpenBinary) -> None:
    other = OpenBinary(2, "/opt/other.so", -1, library.image)
    pointer = BIAS + address(library, "file_class")
    assert ClassPlaces([library, other], [mapping(), mapping()]).name(SPACE, pointer) == "file_class"
    assert ClassPlaces([library, other], [mapping(), mapping(2)]).name(SPACE, pointer) is None


def test_vtables_are_called_as_their_classes() -> None:
    linked = {1: "_ZTVN3net4ConnE", 2: "_ZTV4Conn+0x28", 3: "file_class", 4: "_ZTVnothing", 5: "conn+0x8"}
    assert class_names(linked) == {
        1: "net::Conn", 2: "vtable for Conn+0x28", 3: "file_class", 4: "_ZTVnothing", 5: "conn+0x8",
    }  # fmt: skip


def test_one_type_under_two_numbers_becomes_one() -> None:
    objects = np.zeros(3, OBJECT_RECORD)
    objects["type"] = 11, 12, 13
    events = np.zeros(2, EVENT)
    events["operation"], events["value"] = (Operation.CREATE, Operation.GET), (11, 11)
    errors = np.zeros(1, ERROR_EVENT)
    errors["broken_type"] = 12
    deaths = np.array([(11, 5, 6, 2), (12, 5, 6, 3), (12, 5, 7, 1), (13, 5, 6, 9)], DEATH)
    lifetimes = np.array([(11, 5, 2, 30, 10, 20), (12, 5, 1, 40, 40, 40), (13, 5, 1, 7, 7, 7)], LIFETIME)
    snapshot = Snapshot(
        "launched", 1, objects=objects, history=events, errors=errors, type_totals=(TypeTotals(12, 7, 1, created=4),),
        balanced=BalancedStatistics(deaths=deaths, lifetimes=lifetimes),
    )  # fmt: skip
    merged = merge_types(snapshot, {11: 99, 12: 99})
    assert merged.objects["type"].tolist() == [99, 99, 13]
    assert merged.history["value"].tolist() == [99, 11]
    assert merged.errors["broken_type"].tolist() == [99]
    assert merged.type_totals == (TypeTotals(99, 7, 1, created=4),)
    assert merged.balanced.deaths.tolist() == [(13, 5, 6, 9), (99, 5, 6, 5), (99, 5, 7, 1)]
    assert merged.balanced.lifetimes.tolist() == [(13, 5, 1, 7, 7, 7), (99, 5, 3, 70, 10, 40)]
    assert snapshot.objects["type"].tolist() == [11, 12, 13]
    assert merge_types(snapshot, {}) is snapshot
