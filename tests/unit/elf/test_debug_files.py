"""Separate debug files: found where GDB finds them, and only the right ones."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from built_program import INLINED, build, run
from hypothesis import given
from hypothesis import strategies as st

from tracer.elf.debug_files import DebugFile, DebugFiles, DebugLink, has_dwarf, has_shared_dwarf, read_debug_link
from tracer.elf.image import Image


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A stripped program with a debug link; its debug file is `program.debug` in the folder `elsewhere`."""
    program = build(tmp_path, INLINED, "-O2", "-g")
    (tmp_path / "elsewhere").mkdir()
    debug = tmp_path / "elsewhere" / "program.debug"
    run("objcopy", "--only-keep-debug", program, debug)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)
    return program


def find(program: Path, *directories: Path) -> DebugFile | None:
    with Image.open(program) as image:
        return DebugFiles([str(d) for d in directories]).find(str(program), image.build_id, image)


def build_id_of(program: Path) -> str:
    with Image.open(program) as image:
        assert image.build_id is not None
        return image.build_id


def move_debug_file(program: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return (program.parent / "elsewhere" / "program.debug").rename(target)


def other_program(folder: Path) -> Path:
    folder.mkdir()
    return build(folder, INLINED.replace("n + 1", "n + 3"), "-O2", "-g")


def test_the_link_names_the_file_and_its_checksum(program: Path) -> None:
    debug = program.parent / "elsewhere" / "program.debug"
    with Image.open(program) as image:
        assert read_debug_link(image) == DebugLink("program.debug", zlib.crc32(debug.read_bytes()))


def test_nothing_is_found_where_nothing_is(program: Path) -> None:
    assert find(program) is None


@pytest.mark.parametrize("place", ["program.debug", ".debug/program.debug"])
def test_a_linked_file_near_the_binary_is_found(program: Path, place: str) -> None:
    target = move_debug_file(program, program.parent / place)
    assert find(program) == DebugFile(str(target), "debug link")


def test_a_linked_file_in_a_given_directory_is_found(program: Path) -> None:
    folder = program.parent / "elsewhere"
    assert find(program, folder) == DebugFile(str(folder / "program.debug"), "debug link")


def test_a_linked_file_is_found_under_the_path_of_the_binary(program: Path) -> None:
    root = program.parent / "root"
    target = move_debug_file(program, Path(f"{root}{program.parent}", "program.debug"))
    assert find(program, root) == DebugFile(str(target), "debug link")


def test_a_file_is_found_by_build_id_before_the_link(program: Path) -> None:
    (program.parent / "program.debug").write_bytes((program.parent / "elsewhere" / "program.debug").read_bytes())
    build_id = build_id_of(program)
    target = move_debug_file(program, program.parent / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug")
    assert find(program, program.parent / "root") == DebugFile(str(target), "build id")


def test_a_build_id_suffices_where_the_binary_is_gone(program: Path) -> None:
    build_id = build_id_of(program)
    target = move_debug_file(program, program.parent / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug")
    found = DebugFiles([str(program.parent / "root")]).find("/gone", build_id, None)
    assert found == DebugFile(str(target), "build id")


def test_another_build_at_the_place_of_the_build_id_is_refused(program: Path) -> None:
    build_id = build_id_of(program)
    target = program.parent / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    target.parent.mkdir(parents=True)
    other_program(program.parent / "other").rename(target)
    assert find(program, program.parent / "root") is None


def test_a_linked_file_of_another_build_is_refused(program: Path) -> None:
    other_program(program.parent / "other").rename(program.parent / "program.debug")
    assert find(program) is None


@pytest.mark.parametrize("damaged", [False, True])
def test_without_build_ids_the_checksum_decides(tmp_path: Path, damaged: bool) -> None:
    program = build(tmp_path, INLINED, "-O2", "-g", "-Wl,--build-id=none")
    debug = tmp_path / "program.debug"
    run("objcopy", "--only-keep-debug", program, debug)
    run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)
    if damaged:
        debug.write_bytes(debug.read_bytes() + b"\0")
    assert find(program) == (None if damaged else DebugFile(str(debug), "debug link"))


def test_a_pipe_in_the_place_of_a_debug_file_does_not_block(program: Path) -> None:
    os.mkfifo(program.parent / "program.debug")
    assert find(program) is None


def test_a_build_id_that_is_no_hex_number_leads_nowhere(tmp_path: Path) -> None:
    assert DebugFiles([str(tmp_path)]).find("/gone", "../../etc/passwd", None) is None


@pytest.mark.parametrize("flags", [["-g"], ["-gdwarf-4"], ["-g", "-gz"], ["-g", "-gz=zlib-gnu"]])
def test_dwarf_is_seen_compressed_or_not(tmp_path: Path, flags: list[str]) -> None:
    with Image.open(build(tmp_path, INLINED, *flags)) as image:
        assert has_dwarf(image) and not has_shared_dwarf(image)


def test_a_program_without_dwarf_has_none(program: Path) -> None:
    with Image.open(program) as image:
        assert not has_dwarf(image)


def fake_fetcher(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Put a `debuginfod-find` into PATH that logs its arguments and then runs `script`."""
    tool = folder / "debuginfod-find"
    tool.write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n{script}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder / "asked"


def test_debuginfod_is_asked_where_it_is_configured(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debug = program.parent / "elsewhere" / "program.debug"
    asked = fake_fetcher(program.parent, monkeypatch, f"echo {debug}")
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert find(program) is None
    assert not asked.exists()
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://localhost:1")
    assert find(program) == DebugFile(str(debug), "debuginfod")
    assert asked.read_text() == f"debuginfo {build_id_of(program)}\n"


def test_debuginfod_that_gives_another_build_is_not_believed(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = other_program(program.parent / "other")
    fake_fetcher(program.parent, monkeypatch, f"echo {other}")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://localhost:1")
    assert find(program) is None


def test_debuginfod_that_hangs_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_fetcher(tmp_path, monkeypatch, "exec tail -f /dev/null")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://localhost:1")
    files = DebugFiles(fetch_timeout_s=0.5)
    assert files.find("/gone", "ab" * 20, None) is None
    assert files.find("/gone", "cd" * 20, None) is None
    assert asked.read_text() == f"debuginfo {'ab' * 20}\n"


class LinkedImage(Image):
    """An image of nothing but a .gnu_debuglink section."""

    def __init__(self, contents: bytes) -> None:
        self._contents = contents

    def section(self, name: str) -> object:  # type: ignore[override]
        return object()

    def contents(self, section: object) -> memoryview:  # type: ignore[override]
        return memoryview(self._contents)


@pytest.mark.parametrize(
    "contents",
    [b"", b"\0", b"a.debug", b"a.debug\0", b"a.debug\0\1\2\3", b"../a\0\0\0\0\1\2\3\4", b"..\0\0\1\2\3\4"],
)
def test_a_damaged_link_reads_as_none(contents: bytes) -> None:
    assert read_debug_link(LinkedImage(contents)) is None


def test_a_whole_link_is_read() -> None:
    assert read_debug_link(LinkedImage(b"a.debug\0\1\2\3\4")) == DebugLink("a.debug", 0x04030201)


@given(st.binary(max_size=64))
def test_any_bytes_in_a_link_are_survived(contents: bytes) -> None:
    link = read_debug_link(LinkedImage(contents))
    assert link is None or (link.name and "/" not in link.name)
