"""Entries kept on disk: the same as those that were read, and read anew where the file cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built_program import build

from tracer.dwarf import data_entries
from tracer.dwarf.data_entries import SUFFIX
from tracer.dwarf.data_types import DataTypes
from tracer.dwarf.die_scan import DataTag, read_units
from tracer.elf.image import Image
from tracer.files import cache_folder

SOURCE = """
struct item { char rest[80]; };
struct owner { long number; struct item *first, *second; char rest[3][5]; };
typedef struct { struct owner *owners[7]; } anonymous;
static anonymous hidden[3];
struct owner one;
int main(int count, char **a) { return (long)&hidden[count] + one.number; }
"""


@pytest.fixture
def cache(private_folders: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = private_folders() / "cache"
    monkeypatch.setenv(cache_folder.VARIABLE, str(folder))
    return folder


def told(path: Path) -> list[Any]:
    with Image.open(path) as image:
        types = DataTypes(image)
        entries = data_entries.data_entries(image)
        variables = [
            (entry.name, types.variable_at(entry.address + 8))
            for unit in read_units(image, data=True)
            for entry in unit.entries
            if entry.tag == DataTag.VARIABLE and entry.address
        ]
        of_types = [
            (entries.at(entry.offset), entries.parts_of(entry.offset))
            for unit in read_units(image, data=True)
            for entry in unit.entries
            if entry.tag not in (DataTag.MEMBER, DataTag.SUBRANGE)
        ]
    return [variables, types.structs_like(40, 16, 80), types.member("owner", 8), of_types, entries.definitions,
            entries.typedefs]  # fmt: skip


def test_what_is_kept_is_what_was_read(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(tmp_path, SOURCE, "-gdwarf-5")
    read = told(program)
    assert dict(read[0]) == {"hidden": ("hidden", "[].owners[]"), "one": ("one", ".first")}
    assert read[2] == "first" and len(list(cache.glob(f"*{SUFFIX}"))) == 1
    monkeypatch.setattr(data_entries, "_read", lambda _image: pytest.fail("read anew"))
    assert told(program) == read


def test_an_entry_has_all_that_is_read_of_it(tmp_path: Path, cache: Path) -> None:
    with Image.open(build(tmp_path, SOURCE, "-gdwarf-4")) as image:
        entries = data_entries.data_entries(image)
        read = [entry for unit in read_units(image, data=True) for entry in unit.entries]
    structs = [entry for entry in read if entry.tag == DataTag.STRUCTURE]
    kept = [entries.at(entry.offset) for entry in structs]
    assert kept == [entry._replace(depth=0, scope=0) for entry in structs] and len(kept) == 3
    arrays = [entry.offset for entry in read if entry.tag == DataTag.ARRAY]
    dimensions = [part.elements for array in arrays for part in entries.parts_of(array)]
    assert sorted(filter(None, dimensions)) == [3, 3, 5, 7, 80]


@pytest.mark.parametrize("damage", [b"", b"no digest, no entries", None])
def test_a_damaged_file_is_read_anew(tmp_path: Path, cache: Path, damage: bytes | None) -> None:
    program = build(tmp_path, SOURCE, "-g")
    read = told(program)
    (kept,) = cache.glob(f"*{SUFFIX}")
    kept.write_bytes(kept.read_bytes()[:-1] if damage is None else damage)
    assert told(program) == read


def test_without_a_cache_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(cache_folder, "refusals", {})
    assert told(build(tmp_path, SOURCE, "-g"))[2] == "first"


def test_another_program_has_another_file(tmp_path: Path, cache: Path) -> None:
    told(build(tmp_path, SOURCE, "-g"))
    (tmp_path / "b").mkdir()
    told(build(tmp_path / "b", SOURCE.replace("rest[80]", "rest[88]"), "-g"))
    assert len(list(cache.glob(f"*{SUFFIX}"))) == 2
