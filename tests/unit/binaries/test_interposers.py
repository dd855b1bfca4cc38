"""Libraries whose malloc a program's loader finds before the C library's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from built_program import build

from tracer.binaries.interposers import judge_mapped
from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.binaries.start_up import start_up_binaries

FAMILY = "void *malloc(unsigned long n) { return 0; }\nvoid free(void *p) {}\n"
CALLS = "extern void *malloc(unsigned long); void *f(void) { return malloc(1); }\n"
PLAIN = ("-w", "-fno-builtin", "-Wl,--no-as-needed")
MAIN = "extern void *malloc(unsigned long); int main(void) { return malloc(1) == 0; }\n"


def library(folder: Path, name: str, source: str, *flags: str) -> Path:
    return build(folder, source, *PLAIN, "-shared", "-fPIC", f"-Wl,-soname,{name}", *flags, name=name)


@pytest.fixture
def binaries() -> Iterator[Binaries]:
    opened = Binaries()
    yield opened
    opened.close()


def interposers(found: list[OpenBinary]) -> list[str]:
    return [Path(binary.path).name for binary in found if binary.interposes]


def start(binaries: Binaries, program: Path, **environment: object) -> list[OpenBinary]:
    variables = {name: str(value) for name, value in environment.items()}
    return start_up_binaries(binaries, str(program), str(program), environment=variables)


def test_a_preloaded_one_interposes(binaries: Binaries, tmp_path: Path) -> None:
    program, whole = build(tmp_path, MAIN, *PLAIN), library(tmp_path, "libown.so", FAMILY)
    half = library(tmp_path, "libhalf.so", FAMILY.splitlines()[0])
    hidden = library(tmp_path, "libhidden.so", FAMILY, "-fvisibility=hidden")
    assert interposers(start(binaries, program)) == []
    assert interposers(start(binaries, program, LD_PRELOAD=f"{hidden}:{half}:{whole}")) == ["libown.so"]


@pytest.mark.parametrize("is_before", [True, False])
def test_the_order_of_what_is_needed_decides(binaries: Binaries, tmp_path: Path, is_before: bool) -> None:
    """Breadth first: what a library needs comes behind libc, which the program needs."""
    own = library(tmp_path, "libown.so", FAMILY)
    calls = library(tmp_path, "libcalls.so", CALLS, str(own), f"-Wl,-rpath,{tmp_path}")
    needed = own if is_before else calls
    program = build(tmp_path, MAIN, *PLAIN, str(needed), f"-Wl,-rpath,{tmp_path}")
    found = start(binaries, program)
    assert any(Path(binary.path).name == "libown.so" for binary in found)
    assert interposers(found) == (["libown.so"] if is_before else [])


def test_what_is_mapped_is_judged_by_its_program(binaries: Binaries, tmp_path: Path) -> None:
    preloaded, loaded = library(tmp_path, "libown.so", FAMILY), library(tmp_path, "libplug.so", FAMILY)
    sleep = Path("/bin/sleep").resolve()
    with subprocess.Popen([sleep, "60"], env={"LD_PRELOAD": str(preloaded)}) as process:
        try:
            paths = (sleep, preloaded, loaded)
            mapped = [binary for path in paths if (binary := binaries.open([str(path)], str(path))) is not None]
            judge_mapped(binaries, process.pid, mapped)
        finally:
            process.kill()
    assert [binary.interposes for binary in mapped] == [False, True, False]
    assert list(binaries.losses) == []


def test_one_that_was_looked_at_as_another_library_is_a_loss(binaries: Binaries, tmp_path: Path) -> None:
    program, own = build(tmp_path, MAIN, *PLAIN), library(tmp_path, "libown.so", FAMILY)
    binary = binaries.open([str(own)], str(own))
    assert binary is not None
    binary.interposes = False
    start(binaries, program, LD_PRELOAD=own)
    [loss] = binaries.losses
    assert (loss.count, loss.remedy) == (1, f"--allocator {own}")
    assert "libown.so" in loss.reason
