"""Frames of programs as compilers, linkers and packagers leave them, against lines known by heart."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from built_program import INLINED, binary, build, present, return_address, run, start_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.model.frames import Frame
from tracer.model.snapshot import Binary
from tracer.symbols import Symbolizer, SymbolOptions, symbolize
from tracer.symbols.dwarf_lookup import Tools, find_tools

TOOLS = find_tools()
BY_TOOL = {
    "llvm-symbolizer": Tools(TOOLS.llvm_symbolizer, None),
    "addr2line": Tools(None, TOOLS.addr2line),
    "own tables": Tools(None, None),
}
EITHER = ["llvm-symbolizer", "addr2line"]
PLACES = [("innermost", 3, True), ("middle", 6, True), ("hidden", 9, False)]


def test_both_tools_are_here() -> None:
    assert TOOLS.llvm_symbolizer is not None and TOOLS.addr2line is not None


def frames_at(address: int, of: Binary | Sequence[Binary], tools: str = "llvm-symbolizer", **options: object) -> tuple:
    symbolizer = Symbolizer(SymbolOptions(**options), BY_TOOL.get(tools, TOOLS))
    key = 1 << 48 | address
    return symbolizer.symbolize([key], [of] if isinstance(of, Binary) else of)[key]


def places(frames: Sequence[Frame]) -> list[tuple[str | None, int | None, bool]]:
    return [(f.function, f.line, f.inlined) for f in frames]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return build(tmp_path, INLINED, "-O2", "-g")


FLAVOURS = {
    "PIE": ["-pie", "-fPIE"],
    "non-PIE": ["-no-pie", "-fno-pie"],
    "static": ["-static"],
    "static PIE": ["-static-pie", "-fPIE"],
    "shared": ["-shared", "-fPIC"],
    "DWARF 4": ["-gdwarf-4"],
    "DWARF 5": ["-gdwarf-5"],
    "compressed": ["-gz"],
    "no build id": ["-Wl,--build-id=none"],
    "sections": ["-ffunction-sections", "-Wl,--gc-sections"],
}


@pytest.mark.parametrize("flags", FLAVOURS.values(), ids=FLAVOURS.keys())
@pytest.mark.parametrize("tools", EITHER)
def test_inlined_functions_have_their_lines(tmp_path: Path, flags: list[str], tools: str) -> None:
    program = build(tmp_path, INLINED, "-O2", "-g", *flags)
    address = return_address(program, "hidden", "(?:__|__libc_)?malloc")
    frames = frames_at(address, binary(program), tools)
    assert places(frames) == PLACES
    assert {f.file for f in frames} == {str(program.with_suffix(".c"))}
    assert {f.language for f in frames} == {"C"}
    assert {f.address for f in frames} == {address}
    assert [f.offset for f in frames] == [None, None, address - start_of(program, "hidden")]


@pytest.mark.parametrize("compiler", present("gcc", "clang", "musl-gcc"))
def test_any_compiler(tmp_path: Path, compiler: str) -> None:
    program = build(tmp_path, INLINED, "-O2", "-g", compiler=compiler)
    assert places(frames_at(return_address(program, "hidden", "malloc"), binary(program))) == PLACES


@pytest.mark.parametrize("tools", BY_TOOL)
def test_without_dwarf_the_symbol_table_names_the_function(tmp_path: Path, tools: str) -> None:
    program = build(tmp_path, INLINED, "-O2")
    address = return_address(program, "hidden", "malloc")
    assert frames_at(address, binary(program), tools) == (
        Frame(
            "hidden", "program", str(program), binary(program).build_id,
            address=address, offset=address - start_of(program, "hidden"),
        ),
    )


@pytest.mark.parametrize("tools", BY_TOOL)
@pytest.mark.parametrize("dwarf", [[], ["-g"]], ids=["stripped", "from a program with DWARF"])
def test_no_neighbour_lends_its_name(tmp_path: Path, tools: str, dwarf: list[str]) -> None:
    library = build(tmp_path, INLINED, "-O2", "-shared", "-fPIC", *dwarf)
    hidden = return_address(library, "hidden", "malloc")
    outer = return_address(library, "outer", "hidden")
    run("strip", library)
    (frame,) = frames_at(hidden, binary(library), tools)
    assert (frame.function, frame.offset, frame.why_unknown) == (None, None, "no symbol covers the address")
    assert [f.function for f in frames_at(outer, binary(library), tools)] == ["outer"]


BARE = """\
asm(".text\\n.globl bare\\nbare:\\n call landing\\n nop\\n ret\\n.globl landing\\nlanding: ret\\n");
int main(void) { return 0; }
"""


@pytest.mark.parametrize("tools", BY_TOOL)
def test_a_symbol_without_size_names_nothing(tmp_path: Path, tools: str) -> None:
    program = build(tmp_path, BARE, "-g")
    (frame,) = frames_at(return_address(program, "bare", "landing"), binary(program), tools)
    assert (frame.function, frame.why_unknown) == (None, "no symbol covers the address")


@pytest.mark.parametrize(
    ("tools", "name"), [("both", "hidden"), ("addr2line", "hidden"), ("llvm-symbolizer", None)]
)
def test_dwarf_names_what_the_symbol_table_does_not(program: Path, tools: str, name: str | None) -> None:
    """llvm-symbolizer prefers the name of a near symbol without size to DWARF's: that one is not believed."""
    address = return_address(program, "hidden", "malloc")
    run("objcopy", "--strip-symbol=hidden", program)
    assert places(frames_at(address, binary(program), tools)) == [*PLACES[:2], (name, 9, False)]


def test_the_last_instruction_belongs_to_its_function(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\n__attribute__((noreturn, noinline)) void last(void) { abort(); }\n" + "\n" * 7
    program = build(tmp_path, source + "int after(void) { return 1; }\nint main(void) { last(); }\n", "-g", "-O1")
    address = return_address(program, "last", "abort")
    assert places(frames_at(address, binary(program))) == [("last", 2, False)]


@pytest.mark.parametrize("tools", BY_TOOL)
def test_exact_addresses_are_looked_up_as_they_are(program: Path, tools: str) -> None:
    start = start_of(program, "outer")
    symbolizer = Symbolizer(tools=BY_TOOL[tools])
    frames = symbolizer.symbolize([1 << 48 | start], [binary(program)], exact={1 << 48 | start})[1 << 48 | start]
    assert (frames[-1].function, frames[-1].address, frames[-1].offset) == ("outer", start, 0)
    assert frames_at(start, binary(program), tools)[-1].function != "outer"


def test_without_inlines_the_line_is_that_of_the_call(program: Path) -> None:
    address = return_address(program, "hidden", "malloc")
    assert places(frames_at(address, binary(program), inlines=False)) == PLACES[2:]


def split(program: Path, debug: Path, *flags: str) -> None:
    debug.parent.mkdir(parents=True, exist_ok=True)
    run("objcopy", "--only-keep-debug", *flags, program, debug)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)


@pytest.mark.parametrize("tools", EITHER)
@pytest.mark.parametrize("flags", [[], ["--compress-debug-sections"]], ids=["plain", "compressed"])
@pytest.mark.parametrize("by", ["link", "link in .debug", "build id"])
def test_split_debug_files(tmp_path: Path, tools: str, flags: list[str], by: str) -> None:
    program = build(tmp_path, INLINED, "-O2", "-g")
    address, start = return_address(program, "hidden", "malloc"), start_of(program, "hidden")
    build_id = binary(program).build_id
    debug = {
        "link": tmp_path / "program.debug",
        "link in .debug": tmp_path / ".debug" / "program.debug",
        "build id": tmp_path / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug",
    }[by]
    split(program, debug, *flags)
    frames = frames_at(address, binary(program), tools, debug_directories=(str(tmp_path / "root"),))
    assert places(frames) == PLACES
    assert frames[-1].offset == address - start


def test_a_debug_file_without_dwarf_gives_its_symbols(tmp_path: Path) -> None:
    program = build(tmp_path, INLINED, "-O2")
    address = return_address(program, "hidden", "malloc")
    split(program, tmp_path / "program.debug")
    assert places(frames_at(address, binary(program))) == [("hidden", None, False)]


def test_mini_debug_info_names_static_functions(tmp_path: Path) -> None:
    program = build(tmp_path, INLINED, "-O2")
    address = return_address(program, "hidden", "malloc")
    mini = tmp_path / "mini"
    run("objcopy", "--strip-all", "--keep-symbol=hidden", program, mini)
    (tmp_path / "mini.xz").write_bytes(lzma.compress(mini.read_bytes()))
    run("strip", program)
    assert places(frames_at(address, binary(program))) == [(None, None, False)]
    run("objcopy", f"--add-section=.gnu_debugdata={tmp_path / 'mini.xz'}", program)
    assert places(frames_at(address, binary(program))) == [("hidden", None, False)]


COLD = """\
#include <stdlib.h>
__attribute__((noinline, cold)) void complain(int n) { exit(n); }
__attribute__((noinline)) int work(int n) {
	if (n > 1000) {
		complain(n);
		abort();
	}
	return n * 3;
}
int main(int argc, char **argv) { return work(argc); }
"""


@pytest.mark.parametrize("tools", BY_TOOL)
def test_a_part_that_the_compiler_moved_away_keeps_its_function(tmp_path: Path, tools: str) -> None:
    program = build(tmp_path, COLD, "-O2", "-g")
    address = return_address(program, "work.cold", "complain")
    line = None if tools == "own tables" else 5
    (frame,) = frames_at(address, binary(program), tools)
    assert (frame.function, frame.line, frame.offset) == ("work", line, None)
    (raw,) = frames_at(address, binary(program), tools, demangle=False)
    assert (raw.function, raw.offset) == ("work.cold", address - start_of(program, "work.cold"))


@pytest.mark.parametrize("compression", ["zlib", "zstd"] if "zstd" in run("objcopy", "--help") else ["zlib"])
def test_lines_come_from_the_tool_that_can_unpack_them(program: Path, compression: str) -> None:
    address = return_address(program, "hidden", "malloc")
    run("objcopy", f"--compress-debug-sections={compression}", program)
    assert places(frames_at(address, binary(program), "both")) == PLACES


@settings(max_examples=100)
@given(damage=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=9))
def test_damaged_binaries_are_survived(damaged: Path, damage: list[tuple[float, int]]) -> None:
    contents = bytearray(damaged.read_bytes())
    headers = struct.unpack_from("<Q", contents, 40)[0]
    for where, value in damage:
        at = int(where * (64 + 13 * 56 + len(contents) - headers))
        contents[at if at < 64 + 13 * 56 else at - 64 - 13 * 56 + headers] = value
    copy = damaged.with_name("damaged")
    copy.write_bytes(contents)
    (frame,) = frames_at(0x1040, Binary(1, str(copy)), "own tables")
    assert (frame.function is None) == (frame.why_unknown is not None)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("damaged"), INLINED, "-O2")


CXX = """\
#include <stdlib.h>
namespace app {
struct Pool {
	void *block;
	__attribute__((noinline)) Pool(int n) : block(malloc(n)) { asm(""); }
	template <class T> __attribute__((noinline)) T *make(T n) { block = realloc(block, n); return (T *)block; }
};
}
int main(int argc, char **argv) {
	app::Pool pool(argc);
	return pool.make(argc) != nullptr;
}
"""


@pytest.mark.parametrize("tools", BY_TOOL)
@pytest.mark.parametrize("compiler", present("g++", "clang++"))
def test_cxx_names(tmp_path: Path, tools: str, compiler: str) -> None:
    program = build(tmp_path, CXX, "-O1", "-g", compiler=compiler)
    address = return_address(program, "_ZN3app4Pool4makeIiEEPT_S2_", "realloc")
    (frame,) = frames_at(address, binary(program), tools)
    line = None if tools == "own tables" else 6
    assert (frame.function, frame.language, frame.line) == ("int* app::Pool::make<int>(int)", "C++", line)
    (raw,) = frames_at(address, binary(program), tools, demangle=False)
    assert (raw.function, raw.language) == ("_ZN3app4Pool4makeIiEEPT_S2_", "C++")
    constructor = return_address(program, "_ZN3app4PoolC[12]Ei", "malloc")
    assert [f.function for f in frames_at(constructor, binary(program), tools)] == ["app::Pool::Pool(int)"]


RUST = """\
pub mod app {
    pub trait Make { fn make(&self) -> Vec<u8>; }
    impl Make for [u8; 3] {
        #[inline(never)]
        fn make(&self) -> Vec<u8> {
            landing();
            self.to_vec()
        }
    }
    #[inline(never)]
    #[no_mangle]
    pub extern "C" fn landing() { std::hint::black_box(0); }
}
fn main() { std::hint::black_box(app::Make::make(&[1u8, 2, 3])); }
"""
RUST_FLAGS = {"default": [], "v0": ["-Csymbol-mangling-version=v0"]}


if present("rustc"):  # no skip: it is no part of the set-up

    @pytest.mark.parametrize("tools", BY_TOOL)
    @pytest.mark.parametrize("mangling", RUST_FLAGS)
    def test_rust_names(tmp_path: Path, tools: str, mangling: str) -> None:
        program = build(tmp_path, RUST, "-g", "-Copt-level=1", *RUST_FLAGS[mangling], compiler="rustc")
        mangled = next(name for name in run("nm", program).split() if "4make" in name and "Make" in name)
        (frame,) = frames_at(return_address(program, re.escape(mangled), "landing"), binary(program), tools)
        line = None if tools == "own tables" else 6
        assert (frame.function, frame.language, frame.line) == ("<[u8; 3] as program::app::Make>::make", "Rust", line)


def test_code_in_no_binary_keeps_its_address() -> None:
    assert symbolize([0x7F0000001234], []) == {
        0x7F0000001234: (Frame(None, address=0x7F0000001234, why_unknown="code in no binary"),)
    }


def test_a_binary_that_is_not_listed() -> None:
    key = 5 << 48 | 16
    assert symbolize([key], []) == {key: (Frame(None, address=16, why_unknown="binary 5 is not known"),)}


def test_nothing_gives_nothing() -> None:
    assert symbolize([], []) == {}


def test_the_file_that_ran_is_named_after_it_was_deleted(program: Path) -> None:
    address = return_address(program, "hidden", "malloc")
    file = os.open(program, os.O_RDONLY)
    try:
        ran = binary(program, open_path=f"/proc/self/fd/{file}", deleted=True)
        program.unlink()
        assert places(frames_at(address, ran)) == PLACES
        assert places(frames_at(address, ran, "addr2line")) == PLACES
        assert frames_at(address, ran)[0].module == "program"
    finally:
        os.close(file)


def test_a_file_of_another_build_gives_no_names(program: Path) -> None:
    address = return_address(program, "hidden", "malloc")
    ran = binary(program)
    build(program.parent, INLINED.replace("hidden", "hideen"), "-O2", "-g")
    (frame,) = frames_at(address, ran)
    assert (frame.function, frame.line, frame.why_unknown) == (None, None, "the file on disk is another build")
    assert (frame.module, frame.build_id) == ("program", ran.build_id)


def test_a_binary_that_is_gone_is_named_by_its_debug_file(program: Path) -> None:
    address = return_address(program, "hidden", "malloc")
    ran = binary(program)
    (frame,) = frames_at(address, binary(program, path="/nowhere/program"))
    assert (frame.function, frame.why_unknown) == (None, "the file that ran is gone")
    root = program.parent / "root"
    debug = root / ".build-id" / ran.build_id[:2] / f"{ran.build_id[2:]}.debug"
    split(program, debug)
    program.unlink()
    assert places(frames_at(address, ran, debug_directories=(str(root),))) == PLACES


def test_a_deleted_file_without_build_id_lends_nothing(tmp_path: Path) -> None:
    program = build(tmp_path, INLINED, "-O2", "-g", "-Wl,--build-id=none")
    address = return_address(program, "hidden", "malloc")
    (frame,) = frames_at(address, binary(program, deleted=True))
    assert (frame.function, frame.why_unknown) == (None, "the file that ran is gone")


@pytest.mark.parametrize("path", ["[vdso]", "/dev/null", "/memfd:x (deleted)", "/nul\0byte", "/etc/passwd"])
def test_paths_that_are_no_binary_are_a_miss(path: str) -> None:
    (frame,) = frames_at(0x1234, Binary(1, path))
    assert frame.function is None
    assert frame.why_unknown


@pytest.mark.parametrize("name", ["with space", 'with"quote', "with'quote", "both\"'quotes", "new\nline", "-e", "ü"])
def test_any_path_can_be_looked_up(tmp_path: Path, program: Path, name: str) -> None:
    address = return_address(program, "hidden", "malloc")
    folder = tmp_path / name
    folder.mkdir()
    shutil.move(program, folder / name)
    symbolizer = Symbolizer(tools=TOOLS)
    frames = symbolizer.symbolize([1 << 48 | address], [binary(folder / name)])[1 << 48 | address]
    assert places(frames) == PLACES
    assert symbolizer.notes == ()


def test_two_binaries_with_one_build_id_share_their_names(program: Path) -> None:
    address = return_address(program, "hidden", "malloc")
    first, second = binary(program, 1, path="/gone/elsewhere.so"), binary(program, 2, open_path=str(program))
    symbolizer = Symbolizer(tools=BY_TOOL["llvm-symbolizer"])
    frames = symbolizer.symbolize([1 << 48 | address, 2 << 48 | address], [first, second])
    assert places(frames[1 << 48 | address]) == places(frames[2 << 48 | address]) == PLACES
    assert [frames[i << 48 | address][0].module for i in (1, 2)] == ["elsewhere.so", "program"]
    program.unlink()
    assert symbolizer.symbolize([1 << 48 | address], [first]) == {1 << 48 | address: frames[1 << 48 | address]}
