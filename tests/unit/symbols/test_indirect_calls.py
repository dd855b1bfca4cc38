"""Indirect calls: by which instructions the address comes, where that is certain."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.symbols.indirect_calls import path_of_call

START = 0x1000
FRAME = "push rbp; mov rbp,rsp; sub rsp,32;"


def path_of(folder: Path, text: str) -> str | None:
    """Return what is told of the call before the label `back`."""
    code = f".intel_syntax noprefix\n{text};\n".replace("back:", ".globl back; back:").replace(";", "\n")
    (folder / "a.s").write_text(code)
    subprocess.run(["as", "a.s", "-o", "a.o"], cwd=folder, check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "a.o", "a.bin"], cwd=folder, check=True)
    names = subprocess.run(["nm", "a.o"], cwd=folder, check=True, capture_output=True, text=True).stdout
    (back,) = (int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" back"))
    return path_of_call((folder / "a.bin").read_bytes(), START, START + back)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("call rbx; back: ret", "%2"),
        ("call r12; back: ret", "%3"),
        ("mov rax,rbx; call rbp; back: ret", "%2"),
        ("mov rdx,[rbx+8]; mov rdi,[rbx]; call rdx; back: ret", "*902"),
        ("mov r9,[r12+8]; call r9; back: ret", "*803"),
        ("mov rdx,[rip+64]; call rdx; back: ret", "*902"),
        (f"{FRAME} mov rax,[rbp-16]; mov rdx,[rax+8]; mov rax,[rbp-8]; mov rdi,rax; call rdx; back: ret",
         "*110d02"),
        (f"{FRAME} mov rdx,[rbp-8]; mov rax,[rbp-16]; mov rdi,rax; call rdx; back: ret", "%d02"),
        (f"{FRAME} mov rax,[rbp-8]; call rax; back: lea rdi,[rbp-4]; ret", "%602"),
    ],
)  # fmt: skip
def test_what_leads_to_registers_that_calls_preserve(tmp_path: Path, text: str, path: str) -> None:
    assert path_of(tmp_path, text) == path


@pytest.mark.parametrize(
    "text",
    [
        "call .+64; back: ret",
        "call rax; back: ret",
        "call [rbx+8]; back: ret",
        "call [rip+64]; back: ret",
        "mov rdx,[rdi]; call rdx; back: ret",
        "mov rdx,[rbx+rax*8]; call rdx; back: ret",
        "mov rdx,fs:[rbx]; call rdx; back: ret",
        "mov rdx,[rbx]; mov edx,esi; call rdx; back: ret",
        "mov rdx,[rbx]; add rdx,16; call rdx; back: ret",
        "mov rdx,[rbx]; cmovne rdx,rcx; call rdx; back: ret",
        "mov rdx,[rbx]; lea rbx,[rbx+8]; call rdx; back: ret",
        "mov rdx,[rsp+8]; push rdx; call rdx; back: ret",
        "mov rax,[rbx]; test rax,rax; call rax; back: ret",
        "mov rdx,[rbx]; call .+64; call rdx; back: ret",
        "mov rdx,[rbx]; je 1f; nop; 1: call rdx; back: ret",
        "mov rdx,[rbx]; 1: nop; call rdx; back: jmp 1b",
        "mov rdx,[rbx]; call rdx; back: jmp rax",
        "mov rdx,[rbx]; .rept 40; nop; .endr; call rdx; back: ret",
        "mov rdx,[rdx]; mov rdx,[rdx]; mov rdx,[rdx]; mov rdx,[rdx]; call rdx; back: ret",
    ],
)
def test_what_is_not_certain(tmp_path: Path, text: str) -> None:
    assert path_of(tmp_path, text) is None


@pytest.mark.parametrize(
    "more",
    ["lea rdi,[rbp-8]", "lea rdi,[rbp-32]", "lea rdi,[rsp+8]", "lea rdi,[rbp+rax-64]", "mov rdi,rbp", "mov rsi,rsp"],
)
def test_a_variable_whose_address_is_taken_is_a_word_like_any(tmp_path: Path, more: str) -> None:
    text = f"{FRAME} mov rdx,[rbp-8]; call rdx; back: {more}; ret"
    assert path_of(tmp_path, text) == "*602"
    assert path_of(tmp_path, text.replace("rdx", "rax")) is None


def test_without_a_frame_a_slot_is_a_word_like_any(tmp_path: Path) -> None:
    assert path_of(tmp_path, "mov rdx,[rbp-8]; call rdx; back: ret") == "*602"


def test_beyond_the_function_nothing_is_told() -> None:
    code = bytes.fromhex("ffd3c3")
    assert path_of_call(code, START, START + 2) == "%2"
    assert path_of_call(code, START, START) is None
    assert path_of_call(code, START, START + 4) is None
    assert path_of_call(b"", START, START + 2) is None
    assert path_of_call(code, START, START + 3) is None
