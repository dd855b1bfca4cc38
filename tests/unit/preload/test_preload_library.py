"""The library of --preload: made once, kept where others may read it and nobody else writes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.errors import CannotWrite, UsageError
from tracer.kernel.sources import bpf_directory
from tracer.model.preload_names import SONAME, WRAPPED, PreloadLibrary
from tracer.preload.library import is_open_to_all, preload_library
from tracer.sites.costs import default_costs
from tracer.sites.placement import place
from tracer.sites.resolve import resolve
from tracer.specs.wrappers import WRAPPERS

SOURCE = Path(__file__).parents[3] / "tracer" / "preload"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def kept() -> Path:
    """Return a folder that only this user could have written to, all the way up."""
    folder = Path(f"/var/tmp/refleak-test-{os.getpid()}") if os.geteuid() else Path(f"/var/refleak-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def library(kept: Path) -> PreloadLibrary:
    return preload_library(kept / "cache", SOURCE, bpf_directory(), 0)


def _run(library: PreloadLibrary, *code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", ";".join(code)], env={**os.environ, "LD_PRELOAD": library.name}, capture_output=True,
        text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout


def test_it_is_made_once_and_open_to_all(library: PreloadLibrary, kept: Path) -> None:
    before = Path(library.path).stat()
    assert preload_library(kept / "cache", SOURCE, bpf_directory(), 0) == library
    assert Path(library.path).stat().st_mtime_ns == before.st_mtime_ns
    assert stat.S_IMODE(before.st_mode) == 0o644
    assert is_open_to_all(library.path)
    assert library.name.endswith(f"/$LIB/{SONAME}")
    Path(library.path).parent.chmod(0o700)
    assert not is_open_to_all(library.path)
    Path(library.path).parent.chmod(0o755)


def test_each_place_is_found_and_costs_as_little_as_can_be(library: PreloadLibrary) -> None:
    with Image.open(library.path) as image:
        sites, unresolved = resolve(image, [WRAPPERS], allocator=False)
        placed = {site.function.function: place(site, image, default_costs()) for site in sites}
        instructions = {place(site, image, default_costs(optimises_nop5=True)).instruction for site in sites}
        exported = {name for name in WRAPPED if read_symbol_table(image).find(name)}
    assert unresolved == []
    dropped = {name for name in (f.function for f in WRAPPERS.functions) if name.startswith("refleak_dropped")}
    assert set(placed) == {function.function for function in WRAPPERS.functions} - dropped
    assert ({p.cost for p in placed.values()}, instructions) == ({"trap"}, {"nop"})
    assert {p.return_distance for p in placed.values()} == {0}
    assert exported == WRAPPED


def test_a_program_runs_with_it(library: PreloadLibrary) -> None:
    assert _run(library, "print(sum(len(str(n)) for n in range(10**5)))") == "488890\n"


def test_a_handle_has_the_wrappers_too(library: PreloadLibrary) -> None:
    code = (
        "import ctypes", "of = lambda at: ctypes.cast(at, ctypes.c_void_p).value",
        "libc = ctypes.CDLL('libc.so.6')",
        f"line = next(line for line in open('/proc/self/maps') if '{SONAME}' in line and 'r-x' in line)",
        "start, end = (int(word, 16) for word in line.split()[0].split('-'))",
        f"print(all(start <= of(getattr(libc, n)) < end for n in {sorted(WRAPPED)}))",
        "print(of(libc.qsort) != of(libc.malloc), hasattr(libc, 'no_such_function'))",
    )  # fmt: skip
    assert _run(library, *code) == "True\nTrue False\n"


def test_its_functions_do_what_the_real_ones_do(library: PreloadLibrary) -> None:
    code = (
        "import ctypes, os", "c = ctypes.CDLL('libc.so.6', use_errno=True)",
        "[setattr(getattr(c, n), 'restype', ctypes.c_void_p) for n in ('malloc', 'calloc', 'realloc', 'reallocarray', "
        "'memalign', 'aligned_alloc', 'valloc')]", "z, P = ctypes.c_size_t, ctypes.c_void_p",
        "p = c.calloc(z(3), z(5))", "print(ctypes.string_at(p, 15) == bytes(15))",
        "ctypes.memmove(p, b'refleak', 8)", "p = c.realloc(P(p), z(1 << 20))", "print(ctypes.string_at(p))",
        "p = c.reallocarray(P(p), z(1 << 12), z(1 << 12))", "print(ctypes.string_at(p))",
        "print(c.reallocarray(P(p), z(1 << 40), z(1 << 40)), ctypes.get_errno())", "c.free(P(p))",
        "print(c.memalign(z(256), z(9)) % 256, c.aligned_alloc(z(512), z(512)) % 512, c.valloc(z(1)) % 4096)",
        "out = P()", "print(c.posix_memalign(ctypes.byref(out), z(128), z(1)), out.value % 128)",
        "print(c.posix_memalign(ctypes.byref(out), z(3), z(1)), c.malloc(z(1 << 62)), c.free(None) and 1)",
    )  # fmt: skip
    assert _run(library, *code) == "True\nb'refleak'\nb'refleak'\nNone 12\n0 0 0\n0 0\n22 None 0\n"


def test_without_a_compiler_it_is_a_line(kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs a C compiler") as caught:
        preload_library(kept / "another", SOURCE, bpf_directory(), 0)
    assert "install gcc or clang" in caught.value.hint


def test_a_compiler_that_fails_is_one_too(kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(UsageError, match="cannot make the library of --preload: no such thing"):
        preload_library(kept / "another", SOURCE, bpf_directory(), 0)


def test_a_folder_of_others_is_refused(kept: Path) -> None:
    folder = kept / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(CannotWrite, match="cannot keep the library"):
        preload_library(folder / "cache", SOURCE, bpf_directory(), 0)
