"""What of the heap a call leads to: directly, through the PLT or a slot, or by jumps of the function that is called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.model.frames import BY_JUMP, BY_REGISTER
from tracer.symbols.callees import Callees
from tracer.symbols.source import Source

PROGRAM = """
#include <cstdlib>
#define NOINLINE __attribute__((noinline))
NOINLINE void drop(int *block) { delete block; }
NOINLINE void drop_any(int *block, int how) { how ? delete block : free(block); }
NOINLINE void other(int *block) { asm volatile("" : : "r"(block) : "memory"); }
NOINLINE void drop_or_not(int *block, int how) { how ? delete block : other(block); }
NOINLINE void *make() { return new int[13]; }
void (*volatile by_pointer)(void *) = free;
extern "C" void direct() { free(malloc(7)); asm volatile(""); }
extern "C" void jumping() { drop((int *)make()); drop_any(nullptr, 3); asm volatile(""); }
extern "C" void unknown() { other(nullptr); drop_or_not(nullptr, 2); by_pointer(nullptr); asm volatile(""); }
extern "C" void held(void (*drop)(void *)) { drop(nullptr); drop(nullptr); asm volatile(""); }
int main() { direct(); jumping(); unknown(); asm volatile(""); return 0; }
asm(R"(
	.type padded, @function
padded:	test %rdi, %rdi
	je 1f
	jmp free@PLT
	.byte 0x66, 0x90  # behind the last byte of the jump, 0xff, it looks like another jump
1:	ret
	.size padded, . - padded
	.type with_data, @function
with_data:
	test %rdi, %rdi
	je 1f
	jmp free@PLT
	.byte 0x06  # no instruction
	.byte 0xff, 0x20
1:	ret
	.size with_data, . - with_data
	.type into_another, @function
into_another:
	test %rdi, %rdi
	je 1f
	jmp free@PLT
	.byte 0xb8  # what is jumped to lies in the operand
1:	jmp other_code
	.size into_another, . - into_another
	.type other_code, @function
other_code:
	ret
	.size other_code, . - other_code
)");
"""
BUILDS = {"plt": [], "slots": ["-fno-plt"], "fixed": ["-no-pie", "-fno-pie"], "marked": ["-fcf-protection=full"]}
DROPS = {"_ZdlPv", "_ZdlPvm"}


@pytest.fixture(scope="module", params=BUILDS, ids=str)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("callees")
    (folder / "program.cpp").write_text(PROGRAM)
    flags = ["-O2", "-fno-builtin", "-std=c++17", "-w", *BUILDS[request.param]]
    subprocess.run(["g++", *flags, "-o", "program", "program.cpp"], cwd=folder, check=True, timeout=120)
    return Image.open(Path(folder / "program"))


def called_in(image: Image, function: str) -> set[str]:
    """Return what is told of whatever could be a return address in a function."""
    (symbol,) = read_symbol_table(image).find(function)
    callees = Callees(Source((image,), None, image))
    return {told for at in range(5, symbol.size) if (told := callees.of(symbol.address + at))}


def test_direct_calls(image: Image) -> None:
    assert called_in(image, "direct") == {"malloc", "free"}


def test_functions_that_jump_on(image: Image) -> None:
    assert {name for told in called_in(image, "jumping") for name in told.split("|")} <= {"_Znam", "free", *DROPS}
    assert "_Znam" in called_in(image, "jumping")


def test_all_that_a_function_may_jump_to(image: Image) -> None:
    """Where a byte could be that of a jump elsewhere, nothing is told."""
    told = [told for told in called_in(image, "jumping") if "|" in told]
    assert all({"free"} < set(one.split("|")) <= {"free", *DROPS} for one in told)


def test_what_may_lead_elsewhere_is_not_told(image: Image) -> None:
    assert called_in(image, "unknown") == set()
    assert called_in(image, "main") == set()


def entered(image: Image, function: str) -> str | None:
    symbols = read_symbol_table(image).find(function)
    return Callees(Source((image,), None, image)).entered_at(symbols[0].address)


def test_functions_by_their_address(image: Image) -> None:
    names = entered(image, "_Z4dropPi")
    assert names is not None
    assert names.startswith(BY_JUMP)
    assert set(names[1:].split("|")) <= DROPS
    assert entered(image, "_Z11drop_or_notPii") is None
    assert entered(image, "direct") is None


def test_bytes_within_instructions_are_no_jumps(image: Image) -> None:
    assert entered(image, "padded") == f"{BY_JUMP}free"


@pytest.mark.parametrize("function", ["with_data", "into_another"])
def test_any_byte_may_begin_a_jump_in_code_that_is_not_all_instructions(image: Image, function: str) -> None:
    assert entered(image, function) is None


def test_calls_by_registers(image: Image) -> None:
    (symbol,) = read_symbol_table(image).find("held")
    callees = Callees(Source((image,), None, image))
    told = [callees.by_pointer(symbol.address + at) for at in range(symbol.size + 20)]
    assert [path for path in told if path] == [f"{BY_REGISTER}2"] * 2
    assert callees.by_pointer(symbol.address - 0x100000) is None


def test_without_the_file_that_ran_nothing_is_told(image: Image) -> None:
    assert Callees(Source((image,))).of(image.entry + 6) is None


@pytest.mark.parametrize(("code", "is_one"), [
    ("ffd0", True), ("41ffd4", True), ("ff5008", True), ("ff54c808", True), ("ff9080000000", True),
    ("ff1500100000", True), ("e800000000", False), ("ffe0", False), ("4889d0", False), ("ff7308", False),
])  # fmt: skip
def test_calls_through_pointers_where_nothing_has_a_name(tmp_path: Path, code: str, is_one: bool) -> None:
    path = tmp_path / "stripped"
    data = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex("90" * 16 + code))
    source = f'__asm__(".type back, @function; .byte {data}; back: nop"); int main(void) {{ return 0; }}'
    subprocess.run(["gcc", "-x", "c", "-", "-o", path], input=source, text=True, check=True, timeout=60)
    back = read_symbol_table(Image.open(path)).find("back")[0].address
    subprocess.run(["strip", path], check=True, timeout=60)
    with Image.open(path) as stripped:
        assert Callees(Source((stripped,), None, stripped)).goes_through_pointer(back) == is_one
