"""Where programs make processes themselves, and where they end, in functions that are assembled here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.elf.image import Image
from tracer.sites.raw_calls import find_raw_calls

CALL = "call syscall@plt"
SLOT = "call *syscall@gotpcrel(%rip)"


def raw_calls(folder: Path, code: str, *, size: str = ".-make") -> tuple[list[int], list[int]]:
    """Return the places of forks and of ends by their distance from the function's start, in a library with this
    function only."""
    text = f".globl make\n.type make,@function\nmake:\n{code}\n.size make,{size}\n"
    (folder / "a.s").write_text(text + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", "a.so", "a.s"], cwd=folder, check=True)
    symbols = subprocess.run(["nm", "a.so"], cwd=folder, capture_output=True, text=True, check=True).stdout
    start = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" make"))
    image = Image.open(folder / "a.so")
    offset = image.file_offset_of(start)
    assert offset is not None
    found = find_raw_calls(image)
    return [place - offset for place in found.forks], [place - offset for place in found.ends]


def offsets(folder: Path, code: str, *, size: str = ".-make") -> list[int]:
    return raw_calls(folder, code, size=size)[0]


def ends(folder: Path, code: str, *, size: str = ".-make") -> list[int]:
    return raw_calls(folder, code, size=size)[1]


@pytest.mark.parametrize(("call", "size"), [(CALL, 5), (SLOT, 6)])
@pytest.mark.parametrize("number", [56, 435])
def test_a_child_begins_behind_a_call_of_syscall(tmp_path: Path, call: str, size: int, number: int) -> None:
    code = f"push %rbx\nmov ${number},%edi\nxor %eax,%eax\n{call}\nmov %eax,%ebx\npop %rbx\nret"
    assert offsets(tmp_path, code) == [1 + 5 + 2 + size]


def test_or_behind_the_instruction(tmp_path: Path) -> None:
    assert offsets(tmp_path, "mov $56,%eax\nmov $17,%edi\nsyscall\ncmp $-4096,%rax\nret") == [12]


@pytest.mark.parametrize("code", [
    f"mov $39,%edi\n{CALL}\nret",  # another system call
    "mov $56,%edi\ncall other@plt\nret",  # another function
    f"mov $56,%edi\ncall other@plt\n{CALL}\nret",
    f"mov $56,%edi\nmov %esi,%edi\n{CALL}\nret",  # another number
    f"mov $56,%edi\npop %rdi\n{CALL}\nret",
    f"mov $56,%edi\ntest %esi,%esi\nje 1f\nmov $39,%edi\n1: {CALL}\nret",
    "mov $56,%eax\nxor %eax,%eax\nsyscall\nret",
    "mov $56,%eax\ncall other@plt\nsyscall\nret",
    f"mov $56,%edi\n{CALL}\nnopl 0(%rax)\nret",  # a nop of whose probes children may die
])  # fmt: skip
def test_what_may_be_another_call_is_none(tmp_path: Path, code: str) -> None:
    assert offsets(tmp_path, code) == []


def test_nothing_begins_in_the_midst_of_an_instruction(tmp_path: Path) -> None:
    """The instruction's bytes are the end of a constant."""
    assert offsets(tmp_path, "movabs $0x9090050f00000038,%rbx\nmov $0x38b8,%ecx\n.byte 0x48,0xb9\n"
                             ".byte 0xb8,0x38,0,0,0,0x0f,0x05,0x90\nmov %rax,%rbx\nret") == []  # fmt: skip


def test_where_no_function_is_known_a_call_counts_and_an_instruction_does_not(tmp_path: Path) -> None:
    code = f"mov $56,%edi\n{CALL}\nmov %eax,%ebx\nmov $56,%eax\nsyscall\nret"
    assert offsets(tmp_path, code) == [10, 19]
    assert offsets(tmp_path, code, size="0") == [10]


@pytest.mark.parametrize("code", [
    "push %rbx\nmov $231,%eax\nsyscall\nhlt", f"push %rbx\nmov $231,%edi\nxor %eax,%eax\n{CALL}\nhlt",
])  # fmt: skip
def test_a_process_ends_where_the_number_is_loaded(tmp_path: Path, code: str) -> None:
    assert raw_calls(tmp_path, code) == ([], [1])


@pytest.mark.parametrize("code", [
    "mov $60,%eax\nsyscall\nhlt",  # of a thread
    "mov $231,%eax\nmov %edi,%eax\nsyscall\nhlt",
    "mov $231,%edi\ncall other@plt\nhlt",
    "movabs $0x90050f000000e7b8,%rbx\nret",  # in the midst of an instruction
])  # fmt: skip
def test_what_may_be_no_end_is_none(tmp_path: Path, code: str) -> None:
    assert ends(tmp_path, code) == []


GO = "mov 8(%rsp),%edi\nmov $231,%eax\nsyscall\nret"


@pytest.mark.parametrize(("code", "places"), [
    (GO, [4]), (f".balign 16\nnop\n.balign 16\n{GO}", [20]), (f".balign 16\nnop\n{GO}", []), (GO[:-3] + "hlt", []),
])  # fmt: skip
def test_the_end_of_go_is_known_without_its_name(tmp_path: Path, code: str, places: list[int]) -> None:
    """`go build -ldflags=-s` leaves no symbol, but the function itself, at a multiple of 16."""
    assert ends(tmp_path, f".balign 16\nmake2:{code}", size="0") == places
