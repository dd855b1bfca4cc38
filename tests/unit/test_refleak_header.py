"""examples/refleak.h as compilers see it: gcc and clang, C and C++, two files and a library, every level, LTO."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

HEADERS = Path(__file__).parents[2] / "examples"
SOURCES = Path(__file__).parent / "refleak_h"
STUBS = (
    "__refcnt__init", "__refcnt__get", "__refcnt__put", "__refcnt__get_by", "__refcnt__put_by", "refcnt__delete",
)  # fmt: skip
NOPS = bytes.fromhex("900f1f440000662e0f1f840000000000")
COMPILERS = {"gcc": "c", "g++": "c++", "clang": "c", "clang++": "c++"}
BEHAVIOUR = ["counts 3 2", "puts 0 0 0 1 0", "counts 0 1", "calls 2"]
LEVELS = (
    "-O0", "-O1", "-O2", "-O3", "-Os", "-O2 -fcf-protection=full", "-O2 -masm=intel", "-O2 -fno-pie -no-pie",
    "-O2 -fvisibility=hidden", "-O2 -ffunction-sections -Wl,--gc-sections", "-O2 -pg -fno-omit-frame-pointer",
    "-O2 -flto", "-O3 -flto", "-O2 -fno-asynchronous-unwind-tables",
)  # fmt: skip


def run(*command: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout


def require(compiler: str, flags: Sequence[str]) -> list[str]:
    """Skip where a compiler or its linker is missing; return the flags that it needs besides."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if "clang" not in compiler:
        return []
    quiet = "-Wno-unused-command-line-argument"
    if "-flto" not in flags:
        return [quiet]
    if shutil.which("ld.lld") is None:
        pytest.skip("clang's link time optimisation needs lld")
    return [quiet, "-fuse-ld=lld"]


def build(folder: Path, compiler: str, options: str) -> Path:
    """Compile two files and a library with one set of options; return the program."""
    flags = [*options.split(), *require(compiler, options.split())]
    common = [compiler, "-x", COMPILERS[compiler], "-g", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}", *flags]
    library = [flag for flag in common if flag not in ("-fno-pie", "-no-pie")]
    for part in ("main", "second"):
        run(*common, "-c", "-o", folder / f"{part}.o", SOURCES / f"{part}.c")
    run(*library, "-fPIC", "-shared", "-o", folder / "libpart.so", SOURCES / "library.c")
    run(
        compiler, *flags, "-o", folder / "program", folder / "main.o", folder / "second.o",
        f"-L{folder}", "-lpart", f"-Wl,-rpath,{folder}",
    )  # fmt: skip
    return folder / "program"


def stub_symbols(elf: ELFFile, section: str = ".symtab") -> list[Symbol]:
    table = elf.get_section_by_name(section)
    assert isinstance(table, SymbolTableSection)
    return [symbol for symbol in table.iter_symbols() if symbol.name in STUBS]


def code(elf: ELFFile, symbol: Symbol) -> bytes:
    section = elf.get_section(symbol["st_shndx"])
    start = symbol["st_value"] - section["sh_addr"]
    return bytes(section.data()[start : start + symbol["st_size"]])


def check_stubs(path: Path) -> None:
    """Each stub is there once: a weak function with a size and unwind information, its first bytes the two nops."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        symbols = stub_symbols(elf)
        assert sorted(s.name for s in symbols) == sorted(STUBS)
        dwarf = elf.get_dwarf_info()
        # Who asks for no .eh_frame has .debug_frame instead, where linkers leave the duplicates in.
        entries = dwarf.EH_CFI_entries() if dwarf.has_EH_CFI() else []
        entries += dwarf.CFI_entries() if dwarf.has_CFI() else []
        described = {(e["initial_location"], e["address_range"]) for e in entries if isinstance(e, FDE)}
        for symbol in symbols:
            assert (symbol["st_info"]["bind"], symbol["st_info"]["type"]) == ("STB_WEAK", "STT_FUNC")
            assert symbol["st_other"]["visibility"] == "STV_DEFAULT"
            assert code(elf, symbol).startswith(NOPS)
            assert code(elf, symbol).endswith(b"\xc3")
            assert (symbol["st_value"], symbol["st_size"]) in described


@pytest.mark.parametrize("options", LEVELS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_stubs(compiler: str, options: str, tmp_path: Path) -> None:
    program = build(tmp_path, compiler, options)
    assert run(program, cwd=tmp_path).splitlines() == [*BEHAVIOUR, "one 1 1"]
    check_stubs(program)
    check_stubs(tmp_path / "libpart.so")
    with (tmp_path / "libpart.so").open("rb") as file:
        assert sorted(s.name for s in stub_symbols(ELFFile(file), ".dynsym")) == sorted(STUBS)


@pytest.mark.parametrize("options", ["-O0", "-O3", "-O3 -flto"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_portable_stubs(compiler: str, options: str, tmp_path: Path) -> None:
    program = build(tmp_path, compiler, f"{options} -DREFLEAK_PORTABLE")
    assert run(program, cwd=tmp_path).splitlines() == [*BEHAVIOUR, "one 1 1"]
    with program.open("rb") as file:
        assert sorted(s.name for s in stub_symbols(ELFFile(file))) == sorted(STUBS)


@pytest.mark.parametrize("options", ["-O0", "-O3 -flto", "-O0 -DREFLEAK_PORTABLE", "-O3 -flto -DREFLEAK_PORTABLE"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_arguments_are_in_the_registers_at_entry(compiler: str, options: str, tmp_path: Path) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    program = build(tmp_path, compiler, options)
    show = {
        "__refcnt__init": r'printf "init %d %d %s\n", $rdi - $rdx, $esi, (char *)$rcx',
        "__refcnt__get": r'printf "get %d %s\n", $rdi - $rsi, (char *)$rdx',
        "__refcnt__put": r'printf "put %d %s\n", $rdi - $rsi, (char *)$rdx',
        "__refcnt__get_by": r'printf "get_by %d %s %d\n", $rdi - $rsi, (char *)$rdx, $rcx == (long)&calls',
        "__refcnt__put_by": r'printf "put_by %d %s %d\n", $rdi - $rsi, (char *)$rdx, $rcx == (long)&calls',
        "refcnt__delete": r'printf "delete %s\n", (char *)$rdi',
    }
    script = tmp_path / "script"
    script.write_text(
        "set breakpoint pending on\nbreak main\nrun >/dev/null\n"
        + "".join(f"break *&{name}\ncommands\nsilent\n{what}\ncontinue\nend\n" for name, what in show.items())
        + "continue\n"
    )
    out = run("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", script, program, cwd=tmp_path)
    kinds = {"init", "get", "put", "get_by", "put_by", "delete"}
    assert [line.strip() for line in out.splitlines() if line.split(" ")[0] in kinds] == [
        "init 8 1 conn", "init 12 2 user", "get 8 once(conn)", "get_by 8 conn 1", "put_by 8 once(conn) 1",
        "get 8 conn", "put 8 conn", "put 8 conn", "put 8 conn", "put 12 conn", "delete",
    ]  # fmt: skip


@pytest.mark.parametrize("compiler", COMPILERS)
def test_disabled_behaves_the_same_without_stubs(compiler: str, tmp_path: Path) -> None:
    require(compiler, [])
    flags = ["-x", COMPILERS[compiler], "-O2", "-Wall", "-Wextra", "-Werror", "-DREFLEAK_DISABLE", f"-I{HEADERS}"]
    sources = [SOURCES / f"{part}.c" for part in ("main", "second", "library")]
    run(compiler, *flags, "-o", tmp_path / "program", *sources)
    assert run(tmp_path / "program").splitlines() == BEHAVIOUR
    with (tmp_path / "program").open("rb") as file:
        assert stub_symbols(ELFFile(file)) == []
    assert b"once(conn)" not in (tmp_path / "program").read_bytes()


PAIRS = """
#include "refleak.h"
struct conn { long pad; int refs; };
#ifdef PLAIN
void start(struct conn *conn) { __atomic_store_n(&conn->refs, 1, __ATOMIC_RELAXED); }
void get(struct conn *conn) { __atomic_fetch_add(&conn->refs, 1, __ATOMIC_RELAXED); }
int put(struct conn *conn) { return __atomic_sub_fetch(&conn->refs, 1, __ATOMIC_ACQ_REL) == 0; }
int put_by(struct conn *conn, void *by) { (void)by; return __atomic_sub_fetch(&conn->refs, 1, __ATOMIC_ACQ_REL) == 0; }
void delete_it(struct conn *conn) { (void)conn; }
#else
void start(struct conn *conn) { refcnt__init(conn, refs, 1); }
void get(struct conn *conn) { refcnt__get(conn, refs); }
int put(struct conn *conn) { return refcnt__put(conn, refs); }
int put_by(struct conn *conn, void *by) { return refcnt__put_by(conn, refs, by); }
void delete_it(struct conn *conn) { refcnt__delete(conn); }
#endif
"""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_disabled_is_the_code_of_the_bare_operations(compiler: str, tmp_path: Path) -> None:
    require(compiler, [])
    (tmp_path / "pairs.c").write_text(PAIRS)
    text = []
    for option in ("-DPLAIN", "-UPLAIN"):
        run(
            compiler, "-x", COMPILERS[compiler], "-O2", "-DREFLEAK_DISABLE", f"-I{HEADERS}", option,
            "-c", "-o", tmp_path / "pairs.o", tmp_path / "pairs.c",
        )  # fmt: skip
        with (tmp_path / "pairs.o").open("rb") as file:
            text.append(ELFFile(file).get_section_by_name(".text").data())
    assert text[0] == text[1]
    assert len(text[0]) > 0


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_counter_of_another_size_is_refused(compiler: str, tmp_path: Path) -> None:
    require(compiler, [])
    (tmp_path / "wide.c").write_text(
        '#include "refleak.h"\nstruct wide { long refs; };\nvoid f(struct wide *w) { refcnt__get(w, refs); }\n'
    )
    command = [compiler, "-x", COMPILERS[compiler], f"-I{HEADERS}", "-fsyntax-only", tmp_path / "wide.c"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert "negative" in result.stderr
