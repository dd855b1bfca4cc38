"""References of code and data to functions of the same binary."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_program import build

from tracer.elf.code_references import refers_to
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table

SOURCE = """
#define F(name) __attribute__((noinline, noclone)) int name(int n) { __asm__(""); return n + 1; }
F(called) F(jumped_to) F(in_a_table) F(taken) F(unused)
int (*const volatile table[])(int) = { 0, in_a_table };
int (*volatile pointer)(int);
__attribute__((noinline)) int jumps(int n) { return jumped_to(n); }
int main(int n, char **v) { pointer = taken; return called(n) + table[1](n) + jumps(n) + pointer(n); }
"""


@pytest.mark.parametrize("options", [("-fPIE", "-pie"), ("-fno-pie", "-no-pie")], ids=["pie", "no-pie"])
@pytest.mark.parametrize("function", ["called", "jumped_to", "in_a_table", "taken", "unused"])
def test_what_is_used_is_referred_to(tmp_path: Path, function: str, options: tuple[str, ...]) -> None:
    program = build(tmp_path, SOURCE, "-O2", *options)
    with Image.open(program) as image:
        [symbol] = read_symbol_table(image).find(function)
        assert refers_to(image, [symbol.address]) == (function != "unused")
        assert not refers_to(image, [])


def test_what_others_may_look_up_is_referred_to(tmp_path: Path) -> None:
    library = build(tmp_path, "int shown(void) { return 1; }", "-shared", "-fPIC", name="lib.so")
    with Image.open(library) as image:
        [symbol] = read_symbol_table(image).find("shown")
        assert refers_to(image, [symbol.address])
