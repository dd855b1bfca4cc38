"""Forms of DWARF's attributes: that each is as long as pyelftools reads it, and single entries are what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from built_program import INLINED, build
from elftools.elf.elffile import ELFFile

from tracer.dwarf.attribute_forms import FIXED, number_at, skip_form
from tracer.dwarf.die_reader import Sections, UnitDetails
from tracer.dwarf.die_scan import Tag, read_units
from tracer.elf.image import Image
from tracer.jit.code_extents import joined


def parameters_told_by_pyelftools(path: Path) -> Iterator[tuple[int, int, int]]:
    """Yield offset, end, and the number of parameters of each inlined copy."""
    with path.open("rb") as file:
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            for entry in unit.iter_DIEs():
                if entry.tag == "DW_TAG_inlined_subroutine":
                    children = [child.tag for child in entry.iter_children()]
                    yield entry.offset, entry.offset + entry.size, children.count("DW_TAG_formal_parameter")


@pytest.mark.parametrize("version", ["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"])
def test_entries_are_those_of_pyelftools(tmp_path: Path, version: str) -> None:
    path = build(tmp_path, INLINED, "-O2", "-g", version)
    with Image.open(str(path)) as image:
        details = Sections(image)
        found = []
        for unit in read_units(image):
            reader = UnitDetails(details, unit.offset)
            for entry in unit.entries:
                if entry.tag == Tag.INLINED:
                    told = reader.entry(entry.offset)
                    found.append((told.offset, told.end, len(reader.parameters(told))))
    expected = list(parameters_told_by_pyelftools(path))
    assert found == expected and len(found) >= 2


@pytest.mark.parametrize(
    ("form", "data", "size"),
    [
        (0x08, b"ab\0", 3), (0x09, b"\2ab", 3), (0x18, b"\0", 1), (0x0A, b"\3abc", 4), (0x03, b"\1\0a", 3),
        (0x04, b"\1\0\0\0a", 5), (0x0D, b"\x80\1", 2), (0x22, b"\5", 1), (0x17, bytes(4), 4), (0x10, bytes(4), 4),
        *((form, bytes(16), size) for form, size in FIXED.items()),
    ],
)  # fmt: skip
def test_a_form_is_as_long_as_it_is(form: int, data: bytes, size: int) -> None:
    assert skip_form(data, form, 0, 4) == size


def test_a_form_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="form 0x7f is not known"):
        skip_form(bytes(16), 0x7F, 0, 4)


def test_numbers() -> None:
    assert number_at(b"\1\2\3\4", 1, 2) == (0x302, 3)
    assert number_at(b"\xff\x7f", 0, 0) == (0x3FFF, 2)


def test_ranges_that_nearly_touch_are_one() -> None:
    assert joined([(1, 4), (2, 3), (6, 9), (20, 30)], 2) == [(1, 9), (20, 30)]
    assert joined([], 2) == []
