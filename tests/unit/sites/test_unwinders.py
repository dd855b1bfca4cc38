"""Where unwinders are probed, in functions that are assembled here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.architecture.current import argument
from tracer.elf.image import Image
from tracer.model.operations import RETURN_VALUE, FunctionSpec, Operation, Site, SiteFlag, place_at_entry
from tracer.model.unwinding import Moment
from tracer.sites.costs import default_costs
from tracer.sites.unwinders import find_unwinders, refused_returns

THROWS = """
void f(void);
extern "C" int make(int n) { try { f(); } catch (...) { return 0; } return n; }
"""


def places(folder: Path, name: str, code: str) -> list[tuple[int, Moment, bool]]:
    """Return (offset in the function, moment, at its return) of each place in a library with this function only."""
    text = f".globl {name}\n.type {name},@function\n{name}:\n{code}\n.size {name},.-{name}\n"
    (folder / "a.s").write_text(text + '.section .note.GNU-stack,"",@progbits\n')
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", "a.so", "a.s"], cwd=folder, check=True)
    image = Image.open(folder / "a.so")
    found = find_unwinders(image, default_costs())
    symbols = subprocess.run(["nm", "a.so"], cwd=folder, capture_output=True, text=True, check=True).stdout
    start = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {name}"))
    offset = image.file_offset_of(start)
    assert offset is not None
    return [(place.file_offset - offset, place.moment, place.at_return) for place in found]


def test_what_never_returns_is_probed_where_that_is_cheap(tmp_path: Path) -> None:
    code = "endbr64\npush %rbp\nmov %rsp,%rbp\npush %r15\nret"
    assert places(tmp_path, "_Unwind_RaiseException", code) == [(4, Moment.BEGINS, False)]


def test_nothing_is_probed_behind_a_switch_of_the_stack(tmp_path: Path) -> None:
    code = "mov %rbx,(%rdi)\nmov (%rsi),%rsp\npush %rcx\nret"
    assert places(tmp_path, "setcontext", code) == [(0, Moment.BEGINS, False)]


def test_nothing_is_probed_where_a_branch_lands(tmp_path: Path) -> None:
    code = "mov %rbx,(%rdi)\n1: push %rbp\npop %rbp\njne 1b\nret"
    assert places(tmp_path, "_Unwind_Resume", code) == [(0, Moment.BEGINS, False)]


def test_each_return_of_a_backtrace_is_an_end(tmp_path: Path) -> None:
    code = "push %rbp\ntest %rdi,%rdi\njne 1f\npop %rbp\nret\n1: xor %eax,%eax\npop %rbp\nret"
    found = places(tmp_path, "_Unwind_Backtrace", code)
    assert found == [(0, Moment.BEGINS, False), (7, Moment.ENDS, False), (11, Moment.ENDS, False)]


@pytest.mark.parametrize("name", ["_ULx86_64_step", "__unw_step"])
def test_a_step_ends_at_its_return(tmp_path: Path, name: str) -> None:
    found = places(tmp_path, name, "endbr64\npush %rbp\npop %rbp\nret")
    assert found == [(4, Moment.BEGINS, False), (4, Moment.ENDS, True)]


def test_a_handler_begins_where_its_return_address_is_at_rsp(tmp_path: Path) -> None:
    code = "mov %rdi,%rax\nsub $8,%rsp\npush %rbx\nret"
    assert places(tmp_path, "__cxa_begin_catch", code) == [(0, Moment.CAUGHT, False)]
    code = "endbr64\npush %rbx\npush %rbp\nret"
    assert places(tmp_path, "__cxa_begin_catch", code) == [(4, Moment.CAUGHT, False)]


def test_other_functions_are_left_alone(tmp_path: Path) -> None:
    assert places(tmp_path, "getcontext", "push %rbp\npop %rbp\nret") == []


@pytest.mark.parametrize("strip", [False, True])
def test_no_return_probe_where_an_unwinder_is_linked_in_without_its_name(tmp_path: Path, strip: bool) -> None:
    (tmp_path / "a.cc").write_text(THROWS + "void f(void) { throw 1; }\nint main() { return make(1); }\n")
    options = ["-static-libgcc", "-static-libstdc++", "-rdynamic", *(["-s"] if strip else [])]
    subprocess.run(["g++", "-O1", "-o", "a", *options, "a.cc"], cwd=tmp_path, check=True)
    image = Image.open(tmp_path / "a")
    made = FunctionSpec("make", Operation.CREATE, group=1, object=RETURN_VALUE)
    put = FunctionSpec("make", Operation.PUT, group=1, flags=SiteFlag.ENTRY_RESULT, object=argument(0))
    placements = [place_at_entry(Site(function, image.path, 0x1000, 0x1000)) for function in (made, put)]
    refused = refused_returns(image, placements)
    reason = "a return probe would end its exceptions: its unwinder has no symbols"
    assert refused == ({placements[0]: reason} if strip else {})


@pytest.mark.parametrize("sanitizer", ["address", "thread", ""])
def test_no_return_probe_where_a_sanitizer_follows_the_frames(tmp_path: Path, sanitizer: str) -> None:
    (tmp_path / "a.c").write_text("int make(void) { return 7; }\nint main(void) { return make(); }\n")
    flags = [f"-fsanitize={sanitizer}"] if sanitizer else []
    subprocess.run(["gcc", "-O1", "-o", "a", *flags, "a.c"], cwd=tmp_path, check=True)
    image = Image.open(tmp_path / "a")
    made = FunctionSpec("make", Operation.CREATE, group=1, object=RETURN_VALUE)
    put = FunctionSpec("make", Operation.PUT, group=1, flags=SiteFlag.ENTRY_RESULT, object=argument(0))
    placements = [place_at_entry(Site(function, image.path, 0x1000, 0x1000)) for function in (made, put)]
    reason = "a return probe would stand in the stacks of its sanitizer"
    assert refused_returns(image, placements) == ({placements[0]: reason} if sanitizer else {})
