"""Tests of tracer.binaries.known_names: a kept answer is what the file says, or it is asked again."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tracer.binaries import known_names
from tracer.binaries.file_version import FileVersion, version_of
from tracer.binaries.known_names import KnownNames
from tracer.elf.image import Image
from tracer.elf.symbol_table import SymbolTable, read_symbol_table
from tracer.files.cache_folder import evict_crowded

LONG_AGO = 10**18
SOURCE = "int kept(void) { return %d; }\nint here;\nvoid *malloc(unsigned long);\nvoid *f(void) { return malloc(1); }\n"


@pytest.fixture
def tmp_path(private_folders: Callable[[], Path]) -> Path:
    return private_folders()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose symbols were read, each time that they were."""
    found: list[str] = []

    def read(image: Image) -> SymbolTable:
        found.append(image.path)
        return read_symbol_table(image)

    monkeypatch.setattr(known_names, "read_symbol_table", read)
    return found


def build(folder: Path, name: str, number: int) -> Path:
    (folder / "a.c").write_text(SOURCE % number)
    command = ["gcc", "-shared", "-fPIC", "-o", folder / name, folder / "a.c"]
    subprocess.run(command, check=True, timeout=100)
    return folder / name


def old(path: Path) -> FileVersion:
    """The version of a file as if it were old."""
    with open(path, "rb") as file:
        return replace(version_of(file.fileno()), mtime_ns=LONG_AGO, ctime_ns=LONG_AGO)


def answers(path: Path, cache: Path, version: FileVersion) -> tuple[object, ...]:
    with Image.open(str(path)) as image:
        names = KnownNames(image)
        names.keep(cache, version)
        found = (
            names.find("kept"), names.find("here"), names.find("nowhere"), names.mentions("kep"),
            names.mentions("nowh"), names.lacks("malloc"), names.lacks("kept"),
        )  # fmt: skip
        names.save()
    evict_crowded()
    return found


def test_what_was_asked_is_not_read_again(tmp_path: Path, asked: list[str]) -> None:
    path = build(tmp_path, "a.so", 1)
    first = answers(path, tmp_path / "cache", old(path))
    assert [symbol.name for symbol in first[0]] == ["kept"]  # type: ignore[attr-defined]
    assert first[2:] == ((), True, False, True, False)
    assert len(asked) == 7
    assert answers(path, tmp_path / "cache", old(path)) == first
    assert len(asked) == 7


def test_a_new_question_is_kept_too(tmp_path: Path, asked: list[str]) -> None:
    path, cache = build(tmp_path, "a.so", 1), tmp_path / "cache"
    answers(path, cache, old(path))
    for reads in (8, 8):
        with Image.open(str(path)) as image:
            names = KnownNames(image)
            names.keep(cache, old(path))
            assert names.find("f")
            names.save()
        assert len(asked) == reads
    assert answers(path, cache, old(path))
    assert len(asked) == 8


def test_another_state_of_the_file_is_asked(tmp_path: Path, asked: list[str]) -> None:
    path = build(tmp_path, "a.so", 1)
    answers(path, tmp_path / "cache", old(path))
    build(tmp_path, "a.so", 2)
    answers(path, tmp_path / "cache", replace(old(path), mtime_ns=LONG_AGO + 1))
    assert len(asked) == 14


def test_other_code_at_the_functions_is_asked(tmp_path: Path, asked: list[str]) -> None:
    """As of a file system whose clock stands still."""
    path, version = build(tmp_path, "a.so", 1), old(build(tmp_path, "a.so", 1))
    answers(path, tmp_path / "cache", version)
    build(tmp_path, "a.so", 2)
    answers(path, tmp_path / "cache", version)
    assert len(asked) == 14


def test_a_damaged_file_is_asked_anew(tmp_path: Path, asked: list[str]) -> None:
    path, cache = build(tmp_path, "a.so", 1), tmp_path / "cache"
    answers(path, cache, old(path))
    (kept,) = cache.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    answers(path, cache, old(path))
    assert len(asked) == 14


def test_a_file_that_has_just_changed_is_not_kept(tmp_path: Path) -> None:
    path = build(tmp_path, "a.so", 1)
    with open(path, "rb") as file:
        answers(path, tmp_path / "cache", version_of(file.fileno()))
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_others_can_write_costs_time_alone(tmp_path: Path, asked: list[str]) -> None:
    path, cache = build(tmp_path, "a.so", 1), tmp_path / "cache"
    first = answers(path, cache, old(path))
    cache.chmod(0o777)
    assert answers(path, cache, old(path)) == first
    assert len(asked) == 14
    shutil.rmtree(cache)
