"""Tests of tracer.probing.found_sites: what is kept on disk is what would be found, or is looked for again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tracer.binaries.file_version import FileVersion, version_of
from tracer.elf.image import Image
from tracer.files.cache_folder import evict_crowded
from tracer.model.snapshot import UncoveredInstances
from tracer.probing.found_sites import FoundSites, KeptSites
from tracer.probing.site_finder import SiteFinder
from tracer.sites.costs import default_costs

LONG_AGO = 10**18


@pytest.fixture(scope="module")
def libc() -> Iterator[Image]:
    path = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
    with Image.open(path) as image:
        yield image


@pytest.fixture
def tmp_path(private_folders: Callable[[], Path]) -> Path:
    return private_folders()


def finder(folder: Path | None) -> SiteFinder:
    return SiteFinder(default_costs(), references=True, heap=True, mappings=True, interpreters=True, cache=folder)


def version(image: Image) -> FileVersion:
    with open(image.path, "rb") as file:
        return replace(version_of(file.fileno()), mtime_ns=LONG_AGO, ctime_ns=LONG_AGO)


class Counted:
    """Looks for what it is given, and counts how often."""

    def __init__(self, found: FoundSites) -> None:
        self.found, self.looks = found, 0

    def __call__(self) -> FoundSites:
        self.looks += 1
        return self.found


def test_what_is_kept_of_libc_is_what_is_found(tmp_path: Path, libc: Image) -> None:
    found = finder(None).find(libc)
    assert len(found.placements) > 8
    assert found.unwinders
    kept = finder(tmp_path)
    for _ in range(2):
        again = kept.find(libc, version(libc))
        assert (list(again.placements), list(again.unresolved)) == (list(found.placements), list(found.unresolved))
        assert list(again.unwinders) == list(found.unwinders)
    assert len(list(tmp_path.glob("*.sites"))) == 1


def test_nothing_is_looked_for_twice(tmp_path: Path, libc: Image) -> None:
    look = Counted(finder(None).find(libc))
    for _ in range(3):
        KeptSites(tmp_path, "all").find(libc, version(libc), look)
    assert look.looks == 1


@pytest.mark.parametrize("field", ["device", "inode", "size", "mtime_ns", "ctime_ns"])
def test_another_version_of_the_file_is_looked_at(tmp_path: Path, libc: Image, field: str) -> None:
    look, first = Counted(finder(None).find(libc)), version(libc)
    for one in (first, replace(first, **{field: getattr(first, field) + 1})):
        KeptSites(tmp_path, "all").find(libc, one, look)
    assert look.looks == 2


def test_another_choice_is_looked_for(tmp_path: Path, libc: Image) -> None:
    look = Counted(finder(None).find(libc))
    for choice in ("heap", "mappings"):
        KeptSites(tmp_path, choice).find(libc, version(libc), look)
    assert look.looks == 2


def test_other_code_at_a_place_is_looked_at_whatever_the_version_says(tmp_path: Path, libc: Image) -> None:
    found, one = finder(None).find(libc), version(libc)
    look, kept = Counted(found), KeptSites(tmp_path, "all")
    kept.find(libc, one, look)
    data = bytearray(Path(libc.path).read_bytes())
    data[found.placements[-1].file_offset] ^= 1
    kept.find(Image(bytes(data), libc.path), one, look)
    assert look.looks == 2


@pytest.mark.parametrize("damage", [slice(0, 1), slice(20, 21), slice(10, None)])
def test_a_damaged_file_is_no_failure(tmp_path: Path, libc: Image, damage: slice) -> None:
    look, kept = Counted(finder(None).find(libc)), KeptSites(tmp_path, "all")
    kept.find(libc, version(libc), look)
    (path,) = tmp_path.glob("*.sites")
    data = bytearray(path.read_bytes())
    data[damage] = b"\xff" if damage.stop else b""
    path.write_bytes(bytes(data))
    assert kept.find(libc, version(libc), look) is look.found
    assert kept.find(libc, version(libc), look).unwinders == tuple(look.found.unwinders)
    assert look.looks == 2


def test_a_file_that_just_changed_may_change_again(tmp_path: Path, libc: Image) -> None:
    look, young = Counted(finder(None).find(libc)), replace(version(libc), ctime_ns=time.time_ns())
    for _ in range(2):
        KeptSites(tmp_path, "all").find(libc, young, look)
    assert look.looks == 2
    assert not list(tmp_path.iterdir())


def test_copies_that_no_probe_covers_are_told_each_time(tmp_path: Path, libc: Image) -> None:
    uncovered = UncoveredInstances("get", "map", "map__get", 2, "none can be probed")
    look = Counted(replace(finder(None).find(libc), uncovered=(uncovered,)))
    for _ in range(2):
        assert KeptSites(tmp_path, "all").find(libc, version(libc), look).uncovered == (uncovered,)


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path, libc: Image) -> None:
    look = Counted(finder(None).find(libc))
    (tmp_path / "cache").write_bytes(b"")
    assert KeptSites(tmp_path / "cache", "all").find(libc, version(libc), look) is look.found


def test_files_of_this_run_stay_and_the_oldest_go(tmp_path: Path, libc: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Counted(finder(None).find(libc))
    KeptSites(tmp_path, "first").find(libc, version(libc), look)
    (first,) = tmp_path.glob("*.sites")
    os.utime(first, (1, 1))
    monkeypatch.setattr("tracer.probing.found_sites.LIMIT_BYTES", first.stat().st_size + 1)
    KeptSites(tmp_path, "second").find(libc, version(libc), look)
    evict_crowded()
    assert not first.exists()
    assert len(list(tmp_path.glob("*.sites"))) == 1


def test_a_copy_of_a_library_has_its_own_path(tmp_path: Path, libc: Image) -> None:
    copy = tmp_path / "copied.so"
    shutil.copy(libc.path, copy)
    kept = finder(tmp_path / "cache")
    kept.find(libc, version(libc))
    with Image.open(copy) as image:
        assert {placement.site.path for placement in kept.find(image, version(libc)).placements} == {str(copy)}
