"""Symbols found by name, pattern and address in binaries that gcc built here."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.elf.image import Image
from tracer.elf.symbol_table import STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT, SymbolTable, read_symbol_table
from tracer.errors import UnsuitableTarget

SOURCE = r"""
int table[3] = {1, 2, 3};
__attribute__((noinline)) static int quiet(int n) { return n * table[n % 3]; }
int pool_get(int n) { return quiet(n) + 1; }
int xpool_get(int n) { return quiet(n) + 2; }
int xpool_put(int n) __attribute__((alias("xpool_get")));
static int chosen(int n) { return n; }
static void *choose(void) { return chosen; }
int picked(int n) __attribute__((ifunc("choose")));
extern int puts(const char *);
int old_entry(int n) { return n + 5; }
int new_entry(int n) { return n + 6; }
int caller(int n) { return puts("x") + picked(n); }
__asm__(".symver old_entry,entry@LIB_1");
__asm__(".symver new_entry,entry@@LIB_2");
__asm__(".text\n.globl outer\n.type outer,@function\nouter: nop; nop\n"
        ".globl inner\n.type inner,@function\ninner: nop; nop\n.size inner,2\nnop\n.size outer,5\n"
        ".type unsized,@function\nunsized: nop; nop\n");
"""
VERSIONS = (
    "LIB_1 { global: pool_*; xpool_*; picked; caller; outer; inner; table; entry; local: quiet; chosen; choose; };"
    "LIB_2 { global: entry; } LIB_1;"
)


def build(folder: Path, *options: str) -> Path:
    (folder / "a.c").write_text(SOURCE)
    (folder / "versions").write_text(VERSIONS)
    command = ["gcc", "-O1", "-fPIC", "-shared", f"-Wl,--version-script={folder / 'versions'}", "-o", "lib.so"]
    subprocess.run([*command, "a.c", *options], cwd=folder, check=True)
    return folder / "lib.so"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="module")
def without_sections(library: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    stripped = tmp_path_factory.mktemp("stripped") / "lib.so"
    subprocess.run(["strip", "-o", stripped, library], check=True)
    data = bytearray(stripped.read_bytes())
    data[40:48] = bytes(8)  # e_shoff
    data[58:64] = bytes(6)
    return bytes(data)


def table_of(path: Path) -> SymbolTable:
    return read_symbol_table(Image.open(path))


def nm(path: Path) -> dict[str, int]:
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return {fields[2]: int(fields[0], 16) for fields in map(str.split, lines) if len(fields) == 3}


@pytest.mark.parametrize(("name", "lacking"), [("puts", True), ("uts", False), ("pool_get", False), ("gets", False)])
def test_what_a_binary_takes_from_others(
    library: Path, without_sections: bytes, name: str, lacking: bool
) -> None:
    assert table_of(library).lacks(name) == lacking
    assert read_symbol_table(Image(without_sections)).lacks(name) == lacking


def test_finds_functions_objects_and_ifuncs(library: Path) -> None:
    table, truth = table_of(library), nm(library)
    kinds = {"pool_get": STT_FUNC, "quiet": STT_FUNC, "table": STT_OBJECT, "picked": STT_GNU_IFUNC}
    for name, kind in kinds.items():
        (symbol,) = table.find(name)
        assert (symbol.name, symbol.address, symbol.kind) == (name, truth[name], kind)
    assert table.find("quiet")[0].binding == STB_LOCAL


def test_finds_a_name_stored_as_the_tail_of_another(library: Path, without_sections: bytes) -> None:
    assert b"\0pool_get\0" not in without_sections
    (symbol,) = read_symbol_table(Image(without_sections)).find("pool_get")
    assert symbol.address == nm(library)["pool_get"]


def test_undefined_and_missing_names_are_not_found(library: Path) -> None:
    table = table_of(library)
    assert table.mentions("puts")
    assert table.find("puts") == ()
    assert table.find("ool_get") == ()
    assert not table.mentions("absent_name")


def test_versions_are_split_off(library: Path, without_sections: bytes) -> None:
    for table in (table_of(library), read_symbol_table(Image(without_sections))):
        assert sorted((s.name, s.version) for s in table.find("entry")) == [("entry", "LIB_1"), ("entry", "LIB_2")]
        assert [s.version for s in table.find("pool_get")] == ["LIB_1"]


def test_matching_is_by_whole_function_name(library: Path) -> None:
    table = table_of(library)
    assert {s.name for s in table.matching("*pool_get")} == {"pool_get", "xpool_get"}
    assert {s.name for s in table.matching("pool_*")} == {"pool_get"}
    assert {s.name for s in table.matching("[x]pool_?ut")} == {"xpool_put"}
    assert table.matching("tabl?") == ()
    assert {"quiet", "pool_get", "entry", "picked"} <= {s.name for s in table.matching("*")}


def test_covering_never_names_a_neighbour(library: Path) -> None:
    table = table_of(library)
    start = nm(library)["outer"]
    named = [table.covering(start + i) for i in range(7)]
    assert [s.name if s else None for s in named] == ["outer", "outer", "inner", "inner", "outer", None, None]
    assert table.covering(0) is None
    assert table.covering(-1) is None
    assert table.covering((1 << 64) - 1) is None


def test_covering_chooses_among_aliases_by_name(library: Path) -> None:
    symbol = table_of(library).covering(nm(library)["xpool_put"] + 1)
    assert symbol is not None
    assert symbol.name == "xpool_get"


def test_reads_mini_debug_info(library: Path, tmp_path: Path) -> None:
    stripped, debug = tmp_path / "lib.so", tmp_path / "debug.xz"
    debug.write_bytes(lzma.compress(library.read_bytes()))
    subprocess.run(["strip", "-o", stripped, library], check=True)
    assert table_of(stripped).find("quiet") == ()
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={debug}", stripped], check=True)
    assert [s.address for s in table_of(stripped).find("quiet")] == [nm(library)["quiet"]]


def test_damaged_mini_debug_info_is_empty(library: Path, tmp_path: Path) -> None:
    stripped, debug = tmp_path / "lib.so", tmp_path / "debug.xz"
    debug.write_bytes(lzma.compress(library.read_bytes())[:200] + b"rubbish")
    subprocess.run(["strip", "-o", stripped, library], check=True)
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={debug}", stripped], check=True)
    table = table_of(stripped)
    assert table.find("quiet") == ()
    assert [s.name for s in table.find("pool_get")] == ["pool_get"]


def test_counts_dynamic_symbols_by_the_old_hash_table(tmp_path: Path) -> None:
    path = build(tmp_path, "-Wl,--hash-style=sysv", "-s")
    data = bytearray(path.read_bytes())
    data[40:48] = bytes(8)
    data[58:64] = bytes(6)
    assert [s.name for s in read_symbol_table(Image(bytes(data))).find("xpool_put")] == ["xpool_put"]


def use(data: bytes) -> None:
    """Ask everything of a table; only UnsuitableTarget may come out."""
    try:
        table = read_symbol_table(Image(data))
    except UnsuitableTarget:
        return
    table.find("pool_get")
    table.matching("*get*")
    for address in (0, 0x1100, 0x1120, 1 << 63):
        symbol = table.covering(address)
        assert symbol is None or symbol.address <= address < symbol.address + symbol.size


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_survives_damaged_binaries(library: Path, without_sections: bytes, data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from([library.read_bytes(), without_sections])))
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(damaged) - 9))
        patch = data.draw(st.sampled_from([b"\xff", b"\0", b"\xff" * 8, b"\0" * 8, b"\x01", b"\xff\xff\xff\x7f"]))
        damaged[at : at + len(patch)] = patch
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(64, len(damaged))) :]
    use(bytes(damaged))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_survives_damaged_headers(library: Path, without_sections: bytes, data: st.DataObject) -> None:
    """Aim the damage at the ELF header, program headers, section headers and dynamic section."""
    damaged = bytearray(data.draw(st.sampled_from([library.read_bytes(), without_sections])))
    image = Image(bytes(damaged))
    dynamic = next(s for s in image.segments if s.type == 2)
    spans = [(20, 64), (64, 500), (dynamic.file_offset, dynamic.file_offset + dynamic.file_size)]
    spans += [(s.file_offset, s.file_offset + min(s.size, 400)) for s in image.sections if s.type in (5, 0x6FFFFFF6)]
    if image.sections:
        spans.append((len(damaged) - 64 * len(image.sections), len(damaged)))
    for _ in range(data.draw(st.integers(1, 4))):
        low, high = data.draw(st.sampled_from(spans))
        at = data.draw(st.integers(low, high - 8))
        size = data.draw(st.sampled_from([1, 4, 8]))
        damaged[at : at + size] = data.draw(st.binary(min_size=size, max_size=size))
    use(bytes(damaged))
