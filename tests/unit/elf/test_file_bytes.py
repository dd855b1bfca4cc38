"""Files that others change while they are read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tracer.elf.file_bytes import FileBytes
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table

DATA = bytes(range(256)) * 300


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return path


@pytest.mark.parametrize(
    "part", [slice(0, 4), slice(16380, 16390), slice(100, 70000), slice(-10, None), slice(80000, 90000), slice(9, 3)]
)
def test_slices_are_those_of_the_bytes(file: Path, part: slice) -> None:
    data = FileBytes(os.open(file, os.O_RDONLY))
    assert len(data) == len(DATA)
    assert [bytes(data[part]) for _ in range(2)] == [DATA[part]] * 2
    data.close()


def test_what_was_cut_off_is_zeros(file: Path) -> None:
    data = FileBytes(os.open(file, os.O_RDONLY))
    os.truncate(file, 1000)
    assert bytes(data[996:1004]) == DATA[996:1000] + bytes(4)
    assert bytes(data[20000:40000]) == bytes(20000)
    data.close()


def test_an_image_whose_file_is_emptied(tmp_path: Path) -> None:
    path = Path(shutil.copy("/bin/true", tmp_path / "program"))
    with Image.open(path) as image:
        path.write_bytes(b"")
        assert read_symbol_table(image).find("main") == ()
