"""Calls by registers and loads by bpf/x86_64.h, the very code that the kernel runs, against capstone's decoder."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from built_program import build

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction

CODE = Path(__file__).parents[3] / "bpf" / "x86_64.h"
PROGRAM = f"""
#include <inttypes.h>
#include <stdio.h>
#include "{CODE}"
static void print(struct operand operand)
{{
	printf("%d %d %d %d\\n", (int)operand.kind, (int)operand.id, (int)operand.displacement, (int)operand.bytes);
}}
int main(void)
{{
	u64 code, id;

	while (fread(&code, sizeof(code), 1, stdin) == 1 && fread(&id, sizeof(id), 1, stdin) == 1)
		print(id < REGISTERS ? read_load(code, id) : read_call_by_register(code));
	return 0;
}}
"""
NONE, REGISTER, WORD, BESIDE = range(4)
ANY_CALL = 99
Read = Callable[[Iterable[tuple[bytes, int]]], list[tuple[int, ...]]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    flags = ("-O2", "-Wall", "-Werror", "-Wno-unknown-pragmas")
    program = build(tmp_path_factory.mktemp("code"), PROGRAM, *flags)

    def run(codes: Iterable[tuple[bytes, int]]) -> list[tuple[int, ...]]:
        given = b"".join(code.ljust(8, b"\x90") + id_.to_bytes(8, "little") for code, id_ in codes)
        out = subprocess.run([program], input=given, check=True, capture_output=True)
        return [tuple(map(int, line.split())) for line in out.stdout.splitlines()]

    return run


def load_of(code: bytes, register: int) -> tuple[int, ...] | None:
    """Return what the decoder says of the first instruction, if it loads the whole register."""
    first = decoded(code)
    if first is None or first.mnemonic != "mov" or first.operands[0].register != register:
        return None
    source = first.operands[1]
    if source.memory is None or not source.memory.plain or source.size != 8 or first.operands[0].size != 8:
        return None
    size = len(first.raw)
    if source.memory.base is not None:
        return WORD, source.memory.base, source.memory.displacement, size
    return None if ARCHITECTURE.is_same_anywhere(first) else (BESIDE, 0, source.memory.displacement, size)


def decoded(code: bytes) -> Instruction | None:
    return next(iter(ARCHITECTURE.decode(code, 0, 1)), None)


def test_loads(read: Read) -> None:
    draw = random.Random(7)
    codes = [
        bytes([rex, 0x8B, modrm, *([sib] if modrm & 7 == 4 and modrm < 0xC0 else []), *draw.randbytes(5)])[:8]
        for rex in range(0x48, 0x50) for modrm in range(256) for sib in (0x24, draw.randrange(256))
    ]  # fmt: skip
    asked = [(code, draw.choice((register_of(code), draw.randrange(16)))) for code in codes]
    for (code, register), found in zip(asked, read(asked), strict=True):
        expected = load_of(code, register)
        if found[0] == NONE:
            assert expected is None or not is_read(code), code.hex(" ")
        else:
            assert expected is not None, code.hex(" ")
            assert (found[0], found[2], found[3]) == (expected[0], expected[2], expected[3]), code.hex(" ")
            assert found[0] == BESIDE or found[1] == expected[1], code.hex(" ")


def register_of(code: bytes) -> int:
    first = decoded(code)
    register = first.operands[0].register if first is not None and first.operands else None
    return 0 if register is None else register


def is_read(code: bytes) -> bool:
    """Tell whether the kernel side means to read it: without REX.X, and of SIBs only the one without an index."""
    return not code[0] & 2 and (code[2] & 7 != 4 or code[3] == 0x24)


def test_calls(read: Read) -> None:
    calls = [bytes([prefix, 0xFF, 0xD0 | low]) for prefix in (0x41, 0x40, 0x48, 0x90) for low in range(8)]
    for code, found in zip(calls, read((code, ANY_CALL) for code in calls), strict=True):
        first = decoded(code if code[0] == 0x41 else code[1:])
        assert first is not None
        assert first.mnemonic == "call"
        assert found == (REGISTER, first.operands[0].register, 0, len(first.raw))
    others = [bytes([0x41, 0xFF, modrm]) for modrm in range(256) if modrm & 0xF8 != 0xD0] + [b"\xff\xd0\x90"]
    assert {found[0] for found in read((code, ANY_CALL) for code in others)} == {NONE}
