"""Epilogues by bpf/x86_64.h, the very code that the kernel runs: what eight bytes of code say of the way back."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path

import capstone
import pytest
from built_program import build

CODE = Path(__file__).parents[3] / "bpf" / "x86_64.h"
PROGRAM = f"""
#include <inttypes.h>
#include <stdio.h>
#include "{CODE}"
int main(void)
{{
	u64 code;

	while (fread(&code, sizeof(code), 1, stdin) == 1) {{
		struct epilogue epilogue = read_epilogue(code);

		printf("%d %d %d %d ", (int)epilogue.kind, (int)epilogue.size, (int)epilogue.pops_bp,
			(int)(epilogue.pops_bp ? epilogue.bp_at : 0));
		printf("%d\\n", (int)ends_with_call(code));
	}}
	return 0;
}}
"""
NONE, RSP, LEAVE = range(3)
RET, LEAVES, POP_RBP = b"\xc3", b"\xc9", b"\x5d"
POPS = [bytes([0x58 + n]) for n in range(8) if n != 4] + [bytes([0x41, 0x58 + n]) for n in range(8)]
Way = tuple[int, int, int, int]
"""Kind, bytes above rsp, whether rbp is popped, and from where."""
Read = Callable[[Iterable[bytes]], list[tuple[Way, bool]]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    flags = ("-O2", "-Wall", "-Werror", "-Wno-unknown-pragmas")
    program = build(tmp_path_factory.mktemp("code"), PROGRAM, *flags)

    def run(codes: Iterable[bytes]) -> list[tuple[Way, bool]]:
        out = subprocess.run([program], input=b"".join(codes), check=True, capture_output=True, text=False)
        rows = [tuple(map(int, line.split())) for line in out.stdout.splitlines()]
        return [((row[0], row[1], row[2], row[3]), bool(row[4])) for row in rows]

    return run


def add(size: int) -> bytes:
    return b"\x48\x83\xc4" + bytes([size])


def way(size: int, pops: Sequence[bytes], leaves: bool) -> Way:
    popped = [size + 8 * n for n, pop in enumerate(pops) if pop == POP_RBP]
    if leaves and popped:
        return NONE, 0, 0, 0
    return LEAVE if leaves else RSP, size + 8 * len(pops), int(bool(popped)), popped[-1] if popped else 0


def same(found: Way, expected: Way) -> bool:
    return found == expected or found[0] == expected[0] == NONE


def test_what_is_known(read: Read) -> None:
    generator = random.Random(20261122)
    tried = []
    for size, count, leaves in product((None, 0, 8, 24, 0x78, 127), range(6), (False, True)):
        for _ in range(40):
            pops = [generator.choice(POPS) for _ in range(count)]
            code = (b"" if size is None else add(size)) + b"".join(pops) + (LEAVES if leaves else b"") + RET
            if len(code) <= 8:
                filled = code + generator.randbytes(8 - len(code))
                tried.append((filled, way(size or 0, pops, leaves)))
    assert len(tried) > 1000 and {expected[0] for _, expected in tried} == {NONE, RSP, LEAVE}
    for (code, expected), (found, _) in zip(tried, read(code for code, _ in tried), strict=True):
        assert same(found, expected), code.hex(" ")


@pytest.mark.parametrize(
    "code",
    [
        b"\x48\x83\xc4\x88\xc3",  # add $-120, %rsp
        b"\x48\x83\xec\x08\xc3",  # sub
        b"\x83\xc4\x08\xc3",  # of %esp
        b"\x5c\xc3",  # pop %rsp
        b"\x41\xc3",
        b"\x41\xc9\xc3",
        b"\x90\xc3",
        b"\x5d\xc9\xc3",  # leave by what was just popped
        b"\xc9\x5d\xc3",
        b"\xc2\x08\x00",  # ret $8
        b"\x5d\xe9\x00\x00\x00\x00",
        b"\x58" * 7 + b"\xc3",
        b"\x58" * 8,
        b"",
    ],
)
def test_what_is_not(read: Read, code: bytes) -> None:
    [(found, _)] = read([code.ljust(8, b"\0")])
    assert found[0] == NONE


def simulated(code: bytes) -> Way | None:
    """Return what a disassembler makes of it."""
    size, at_bp, leaves = 0, None, False
    for step in capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64).disasm(code, 0):
        if step.mnemonic == "ret" and not step.op_str:
            return LEAVE if leaves else RSP, size, int(at_bp is not None), at_bp or 0
        if step.mnemonic == "leave":
            leaves = True
        elif step.mnemonic == "pop" and not leaves and step.op_str not in ("rsp", "sp"):
            at_bp = size if step.op_str == "rbp" else at_bp
            size += 8
        elif step.mnemonic == "add" and step.op_str.startswith("rsp, ") and not leaves:
            size += int(step.op_str[5:], 0)
        else:
            return None
    return None


def test_whatever_is_accepted_is_what_a_disassembler_says(read: Read) -> None:
    generator = random.Random(20261123)
    likely = [0x48, 0x83, 0xC4, 0x08, 0x41, 0x5D, 0x5B, 0x5C, 0xC9, 0xC3, 0x58, 0x66, 0xF3, 0xC2]
    codes = [bytes(generator.choice(likely) for _ in range(8)) for _ in range(60_000)]
    codes += [bytes(code) + b"\xc3" * 4 for code in product(likely, repeat=4)]
    accepted = 0
    for code, (found, _) in zip(codes, read(codes), strict=True):
        if found[0] != NONE:
            accepted += 1
            assert found == simulated(code), code.hex(" ")
    assert accepted > 3000


@pytest.mark.parametrize(
    ("call", "is_call"),
    [
        ("e8 11 22 33 44", True), ("ff d1", True), ("41 ff d3", True), ("ff 50 08", True), ("ff 54 24 08", True),
        ("ff 15 11 22 33 44", True), ("ff 94 24 11 22 33 44", True), ("ff 14 25 11 22 33 44", True),
        ("e9 11 22 33 44", False), ("ff e0", False), ("0f 0b", False), ("cc cc cc cc cc cc cc cc", False),
        ("ff 74 24 08", False),
    ],
)  # fmt: skip
def test_calls(read: Read, call: str, is_call: bool) -> None:
    [(_, found)] = read([bytes.fromhex(call).rjust(8, b"\x90")])
    assert found is is_call
