"""Where code objects end, in the Python that runs this test."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.interpreters.python.code_end import CODE_TYPE, python_code_end
from tracer.model.operations import Operation

_DEALLOC = 48


def _own_python() -> Path:
    """Return the file that has the interpreter: the program, or its library."""
    address = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, CODE_TYPE))
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, _, end = line.split()[0].partition("-")
        if int(start, 16) <= address < int(end, 16) and "/" in line:
            return Path(line[line.index("/") :])
    return Path(os.path.realpath("/proc/self/exe"))


def test_it_is_what_the_type_of_code_says_in_memory() -> None:
    there = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, CODE_TYPE))
    with Image.open(_own_python()) as image:
        site = python_code_end(image)
        [code_type] = read_symbol_table(image).find(CODE_TYPE)
    assert site is not None and site.function.operation is Operation.CODE_END
    assert site.link_address + there - code_type.address == ctypes.c_uint64.from_address(there + _DEALLOC).value


def test_a_program_without_python_has_none() -> None:
    with Image.open("/bin/true") as image:
        assert python_code_end(image) is None
