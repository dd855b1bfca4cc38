"""Placements in assembled functions, instruction by instruction."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.architecture.current import argument
from tracer.architecture.instruction import InstructionClass
from tracer.architecture.x86_64.registers import Register
from tracer.elf.image import Image
from tracer.model.operations import FunctionSpec, Location, LocationKind, Operation, Placement, Site, SiteFlag
from tracer.sites.costs import Cost, CostModel, default_costs
from tracer.sites.placement import place
from tracer.sites.resolve import resolve
from tracer.specs.allocators import HEAP, MAPPINGS

CODE_AT = 0x1000
NOP5 = ".byte 0x0f,0x1f,0x44,0x00,0x00"
NOP10 = ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0"
FREE = FunctionSpec("free", Operation.FREE, flags=SiteFlag.ENTRY_RESULT, object=argument(0))
MALLOC = FunctionSpec("malloc", Operation.ALLOC, size=argument(0))
PUT = FunctionSpec(
    "put",
    Operation.PUT,
    flags=SiteFlag.ENTRY_RESULT | SiteFlag.COUNTER | SiteFlag.NAMED,
    counter=argument(0),
    object=argument(1),
    name=argument(2),
)
INIT = replace(PUT, operation=Operation.CREATE, counter=argument(0), count=argument(1, 4), object=argument(2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def image_of(code: bytes, machine: int = 62) -> Image:
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, *[0] * 10)
    return Image(header.ljust(CODE_AT, b"\0") + code)


def assemble(folder: Path, text: str) -> bytes:
    (folder / "a.s").write_text(".intel_syntax noprefix\n" + text.replace(";", "\n") + "\n")
    subprocess.run(["as", "a.s", "-o", "a.o"], cwd=folder, check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "a.o", "a.bin"], cwd=folder, check=True)
    return (folder / "a.bin").read_bytes()


def placed(
    folder: Path, text: str, function: FunctionSpec, costs: CostModel | None = None, address: int = CODE_AT
) -> Placement:
    code = assemble(folder, text)
    site = Site(function, "", CODE_AT, address, len(code))
    return place(site, image_of(code), costs or default_costs(optimises_nop5=True))


def where(placement: Placement) -> tuple[int, str, str, int]:
    return (placement.file_offset - CODE_AT, placement.instruction, placement.cost, placement.return_distance)


def register(number: Register, width: int = 8) -> Location:
    return Location(LocationKind.REGISTER, number, width=width)


def stack(offset: int, width: int = 8) -> Location:
    return Location(LocationKind.STACK, offset=offset, width=width)


def test_malloc_of_glibc_is_probed_at_its_first_push(folder: Path) -> None:
    placement = placed(folder, "push r12; push rbp; mov rbp, rdi; ret", MALLOC)
    assert where(placement) == (0, "push r12", "trap", 0)
    assert placement.size == argument(0)
    assert (placement.return_file_offset, placement.reason) == (None, "")


@pytest.mark.parametrize(("prefix", "at"), [("", 9), ("endbr64;", 13)])
def test_free_of_glibc_is_probed_past_its_test_for_null(folder: Path, prefix: str, at: int) -> None:
    text = prefix + "test rdi,rdi; .byte 0x0f,0x84; .long out-.-4; push rbp; pop rbp; out: ret"
    placement = placed(folder, text, FREE)
    assert where(placement) == (at, "push rbp", "trap", 0)
    assert placement.object == argument(0)


def test_free_that_saves_first_is_probed_at_the_save(folder: Path) -> None:
    assert where(placed(folder, "sub rsp,24; cmp rdi,0; je out; mov [rsp+8],rdi; call .+64; out: ret", FREE)) == (
        15, "call 0x104f", "trap", 24,
    )  # fmt: skip


def test_a_test_of_another_value_is_not_crossed(folder: Path) -> None:
    for text in (
        "test rsi,rsi; je out; push rbp; out: ret",
        "test edi,edi; je out; push rbp; out: ret",
        "test rdi,rdi; jne out; push rbp; out: ret",
        "test rdi,rdi; add rax,1; je out; push rbp; out: ret",
        "test rdi,rdi; mov rdi,[rip]; je out; push rbp; out: ret",
    ):
        placement = placed(folder, text, FREE)
        assert placement.instruction != "push rbp", text


def test_null_is_not_crossed_by_an_operation_that_returns(folder: Path) -> None:
    placement = placed(folder, "test rdi,rdi; je out; push rbp; pop rbp; out: ret", MALLOC)
    assert where(placement) == (3, "je 0x1007", "trap", 0)


def test_endbr64_is_skipped_for_the_return_probe_too(folder: Path) -> None:
    placement = placed(folder, "endbr64; push rbp; mov rbp,rsp; pop rbp; ret", MALLOC)
    assert where(placement) == (4, "push rbp", "trap", 0)
    assert placement.return_file_offset is None
    assert placement.return_offset == placement.file_offset == CODE_AT + 4


def test_a_nop_of_five_bytes_is_cheapest(folder: Path) -> None:
    text = f"endbr64; push rbx; mov rbx,rdi; {NOP5}; call .+64; ret"
    placement = placed(folder, text, PUT)
    assert where(placement) == (8, "nop dword ptr [rax + rax]", "call", 8)
    assert placement.counter == argument(0)
    assert where(placed(folder, text, PUT, default_costs())) == (4, "push rbx", "trap", 0)


TAKES_NOP10 = {InstructionClass.NOP10: Cost.CALL, InstructionClass.NOP5: Cost.TRAP}


@pytest.mark.parametrize(
    ("costs", "at", "cost"),
    [
        (default_costs(optimises_nop5=True), 0, "call"),
        (default_costs(), 0, "step"),
        (CostModel({InstructionClass.NOP5: Cost.TRAP}), 0, "trap"),
        (CostModel(TAKES_NOP10), 5, "call"),
        (CostModel(TAKES_NOP10 | {InstructionClass.NOP5: Cost.CALL}), 0, "call"),
        (CostModel({InstructionClass.NOP10: Cost.TRAP, InstructionClass.NOP5: Cost.STEP}), 5, "trap"),
        (CostModel({InstructionClass.NOP10: Cost.STEP, InstructionClass.NOP5: Cost.STEP}), 0, "step"),
    ],
)
def test_a_stub_is_probed_at_the_nop_that_the_kernel_makes_cheaper(
    costs: CostModel, at: int, cost: str, folder: Path
) -> None:
    placement = placed(folder, f"{NOP5}; {NOP10}; xor eax,eax; lock dec dword ptr [rdi]; sete al; ret", PUT, costs)
    assert (placement.file_offset - CODE_AT, placement.cost, placement.return_distance) == (at, cost, 0)
    assert (placement.counter, placement.object, placement.name) == (argument(0), argument(1), argument(2))


GET = replace(PUT, function="get", operation=Operation.GET)
NO_NOP5 = CostModel({InstructionClass.NOP: Cost.TRAP}, frozenset({InstructionClass.NOP5}))


def test_a_stub_whose_nops_must_not_be_probed_is_probed_behind_its_change(folder: Path) -> None:
    """Those that were built with stubs of before, on a kernel whose calls forked children do not survive."""
    get = placed(folder, f"{NOP5}; {NOP10}; lock inc dword ptr [rdi]; ret", GET, NO_NOP5)
    assert (get.file_offset - CODE_AT, get.instruction, get.size.offset) == (18, "ret", 1)
    put = placed(folder, f"{NOP5}; {NOP10}; xor eax,eax; lock dec dword ptr [rdi]; sete al; ret", PUT, NO_NOP5)
    assert (put.file_offset - CODE_AT, put.cost) == (15, "step")
    now = placed(folder, f"nop; {NOP5}; {NOP10}; lock inc dword ptr [rdi]; ret", GET, NO_NOP5)
    assert (now.file_offset - CODE_AT, now.cost) == (0, "trap")


def test_no_nop_is_taken_that_is_rewritten_above_values_below_the_stack(folder: Path) -> None:
    costs = CostModel({InstructionClass.NOP10: Cost.CALL, InstructionClass.NOP5: Cost.CALL})
    assert placed(folder, f"mov [rsp-8],rsi; {NOP10}; {NOP5}; ret", PUT, costs).file_offset == CODE_AT
    assert placed(folder, f"mov rax,rsi; {NOP10}; {NOP5}; ret", PUT, costs).file_offset == CODE_AT + 3


def test_a_nop_across_two_pages_only_traps(folder: Path) -> None:
    text = f"{NOP5}; ret"
    assert placed(folder, text, PUT, address=CODE_AT + 4096 - 5).cost == "call"
    assert placed(folder, text, PUT, address=CODE_AT + 4096 - 4).cost == "trap"


def test_a_nop_over_a_red_zone_in_use_is_left_alone(folder: Path) -> None:
    placement = placed(folder, f"mov [rsp-8],rdi; {NOP5}; jmp .+64", PUT)
    assert where(placement) == (10, "jmp 0x104a", "trap", 0)


def test_an_overwritten_argument_ends_the_search(folder: Path) -> None:
    placement = placed(folder, "lea rax,[rdi+8]; mov edx,5; push rbx; ret", PUT)
    assert where(placement) == (0, "lea rax, [rdi + 8]", "step", 0)
    assert placement.reason == "an argument is gone before `push rbx`"


def test_an_argument_may_be_overwritten_without_being_named(folder: Path) -> None:
    for writer in ("cqo", "mul rcx"):
        placement = placed(folder, f"{writer}; push rbx; ret", PUT)
        assert placement.reason == "an argument is gone before `push rbx`", writer


def test_arguments_are_followed_into_registers(folder: Path) -> None:
    text = "mov rbx,rdi; mov r12,rsi; mov r13d,esi; xor edi,edi; xor esi,esi; push 1; jmp .+64"
    placement = placed(folder, text, INIT)
    assert where(placement) == (15, "jmp 0x104f", "trap", 8)
    assert placement.counter == register(Register.RBX)
    assert placement.count == register(Register.R12, 4)
    assert placement.object == placement.name == argument(2)


def test_half_a_pointer_is_none_but_half_will_do_for_a_count(folder: Path) -> None:
    assert placed(folder, "mov r12d,esi; xor esi,esi; call .+64; ret", INIT).count == register(Register.R12, 4)
    lost = placed(folder, "mov r12d,edi; xor edi,edi; call .+64; ret", INIT)
    assert where(lost) == (0, "mov r12d, edi", "step", 0)
    assert lost.reason == "an argument is gone before `call 0x1045`"


def test_arguments_are_followed_onto_the_stack(folder: Path) -> None:
    text = "sub rsp,40; mov [rsp+16],rdi; mov [rsp+12],esi; xor edi,edi; xor esi,esi; call .+64; ret"
    placement = placed(folder, text, INIT)
    assert where(placement) == (17, "call 0x1051", "trap", 40)
    assert placement.counter == stack(16)
    assert placement.count == stack(12, 4)


def test_arguments_are_followed_back_from_the_stack(folder: Path) -> None:
    text = "sub rsp,8; mov [rsp],rdi; mov rdi,rsi; mov rcx,[rsp]; mov qword ptr [rsp],0; call .+64; ret"
    placement = placed(folder, text, PUT)
    assert placement.counter == register(Register.RCX)
    assert placement.object == argument(1)


def test_an_overwritten_slot_is_no_copy(folder: Path) -> None:
    text = "sub rsp,24; mov [rsp+8],rdi; xor edi,edi; mov dword ptr [rsp+12],0; call .+64; ret"
    assert placed(folder, text, PUT).cost == "step"


def test_stack_arguments_move_with_the_stack_pointer(folder: Path) -> None:
    function = replace(PUT, name=argument(6))
    placement = placed(folder, f"sub rsp,16; lea rsp,[rsp-16]; {NOP5}; ret", function)
    assert placement.return_distance == 32
    assert placement.name == stack(8 + 32)


def test_a_loop_back_to_the_place_forbids_it(folder: Path) -> None:
    on = placed(folder, f"test rdi,rdi; again: {NOP5}; inc eax; jne again; ret", PUT)
    assert where(on) == (0, "test rdi, rdi", "step", 0)
    assert on.reason == "a branch lands at or before `nop dword ptr [rax + rax]`"
    between = placed(folder, f"mov eax,1; again: inc eax; {NOP5}; jne again; ret", PUT)
    assert where(between)[0] == 0
    behind = placed(folder, f"mov eax,1; {NOP5}; again: inc eax; jne again; ret", PUT)
    assert where(behind) == (5, "nop dword ptr [rax + rax]", "call", 0)


def test_a_jump_table_leaves_only_pushes(folder: Path) -> None:
    placement = placed(folder, f"mov eax,1; {NOP5}; push rbx; jmp [rax*8+0x2000]", PUT)
    assert where(placement) == (10, "push rbx", "trap", 0)
    at_entry = placed(folder, f"endbr64; {NOP5}; push rbx; jmp [rax*8+0x2000]", PUT)
    assert where(at_entry)[2] == "call"


def test_a_conditional_jump_may_be_the_place_but_is_not_crossed(folder: Path) -> None:
    placement = placed(folder, f"cmp esi,3; ja out; {NOP5}; out: ret", PUT)
    assert where(placement) == (3, "ja 0x100a", "trap", 0)


def test_free_is_probed_before_it_changes_what_its_caller_keeps_in_registers(folder: Path) -> None:
    text, moved = f"test rdi,rdi; mov rbx,rdi; {NOP5}; ret", (6, "nop dword ptr [rax + rax]", "call", 0)
    assert where(placed(folder, text, FREE))[:2] == (0, "test rdi, rdi")
    assert where(placed(folder, text.replace("rbx", "rax"), FREE)) == moved
    assert where(placed(folder, text, replace(FREE, operation=Operation.PUT))) == moved


def test_the_frame_pointer_is_not_changed_before_the_place(folder: Path) -> None:
    placement = placed(folder, f"push rbp; mov rbp,rsp; {NOP5}; pop rbp; ret", PUT)
    assert where(placement) == (0, "push rbp", "trap", 0)
    stepped = placed(folder, f"mov rbp,rsi; {NOP5}; ret", PUT)
    assert where(stepped)[:3] == (0, "mov rbp, rsi", "step")
    assert stepped.reason == "`mov rbp, rsi` changes rbp, by which stacks are unwound"


def test_nothing_is_crossed_that_leaves_the_function(folder: Path) -> None:
    for leaver in ("call [rax]", "ret", "syscall", "ud2", "rep stosb", "rdtsc", "and rsp,-16", "leave", "pop rcx"):
        placement = placed(folder, f"lea rax,[rdi]; {leaver}; {NOP5}; push rbx; ret", PUT)
        assert placement.file_offset == CODE_AT, leaver
        assert placement.cost == "step", leaver


def test_a_counter_is_read_before_it_changes(folder: Path) -> None:
    text = "mov eax,1; sub dword ptr [rdi],1; push rbx; ret"
    placement = placed(folder, text, PUT)
    assert where(placement) == (0, "mov eax, 1", "step", 0)
    assert placement.reason == "an argument is gone before `push rbx`"
    assert where(placed(folder, text, FREE)) == (8, "push rbx", "trap", 0)


def test_prefixes_that_the_kernel_refuses_are_avoided(folder: Path) -> None:
    refused = placed(folder, "lock dec dword ptr [rdi]; ret", FREE)
    assert where(refused) == (0, "", "", 0)
    assert refused.reason == "the kernel probes no instruction with such a prefix"
    assert where(placed(folder, "mov eax,1; lock xadd [rdi],eax; ret", PUT)) == (0, "mov eax, 1", "step", 0)


@pytest.mark.parametrize(
    ("operation", "text", "at", "instruction", "change"),
    [
        (Operation.GET, "lock inc dword ptr [rdi]; ret", 3, "ret", 1),
        (Operation.GET, "lock add dword ptr [rdi],1; ret", 4, "ret", 1),
        (Operation.PUT, "lock dec dword ptr [rdi]; sete al; movzx eax,al; ret", 3, "sete al", -1),
        (Operation.PUT, "lock sub dword ptr [rdi],1; sete al; ret", 4, "sete al", -1),
    ],
)
def test_a_stub_that_begins_with_its_change_is_probed_behind_it(
    folder: Path, operation: Operation, text: str, at: int, instruction: str, change: int
) -> None:
    placement = placed(folder, text, replace(PUT, operation=operation))
    assert where(placement) == (at, instruction, "step", 0)
    assert placement.size == Location(LocationKind.CONSTANT, offset=change)
    assert (placement.counter, placement.object, placement.name) == (argument(0), argument(1), argument(2))


@pytest.mark.parametrize(
    "text",
    [
        "lock dec dword ptr [rsi]; ret",  # not the counter
        "lock dec dword ptr [rdi+4]; ret",
        "lock dec dword ptr [rdi+rax]; ret",
        "lock cmpxchg dword ptr [rdi],esi; ret",
        "lock dec dword ptr [rdi]; lock dec dword ptr [rdi]; ret",
        "lock dec dword ptr [rdi]; again: nop; jne again; ret",  # the place behind is passed more than once
        "lock dec dword ptr [rdi]; jmp rax",
    ],
)
def test_behind_no_other_locked_instruction(folder: Path, text: str) -> None:
    placement = placed(folder, text, PUT)
    assert (placement.cost, placement.reason) == ("", "the kernel probes no instruction with such a prefix")


def test_return_probe_stays_where_the_stack_has_not_moved(folder: Path) -> None:
    text = "mov eax,3; sub rsp,8; mov rcx,rdi; jne out; out: ret"
    placement = placed(folder, text, MALLOC)
    assert where(placement) == (0, "mov eax, 3", "step", 0)
    assert placement.return_file_offset is None
    assert placement.reason == "the return probe must sit where the stack has not moved yet"


def test_entry_and_return_probes_part_where_that_is_cheaper(folder: Path) -> None:
    text = "sub rsp,8; push rbx; pop rcx; add rsp,8; xor edi,edi; push r12; ret"
    placement = placed(folder, text, MALLOC)
    assert where(placement) == (4, "push rbx", "trap", 8)
    assert placement.return_file_offset == CODE_AT + 12
    assert placement.reason == ""


def test_a_function_without_size_is_probed_at_its_entry(folder: Path) -> None:
    code = assemble(folder, "endbr64; push rbx; ret")
    placement = place(Site(PUT, "", CODE_AT, CODE_AT, 0), image_of(code), default_costs())
    assert where(placement) == (0, "endbr64", "step", 0)
    assert placement.reason == "its size is not known"


def test_another_architecture_is_probed_at_the_entry(folder: Path) -> None:
    site = Site(PUT, "", CODE_AT, CODE_AT, 4)
    placement = place(site, image_of(b"\xfd\x7b\xbf\xa9", machine=183), default_costs())
    assert (placement.file_offset, placement.counter, placement.cost) == (CODE_AT, argument(0), "")
    assert placement.reason == "the architecture's instructions are not known"


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_give_a_placement_within_the_function(code: bytes) -> None:
    placement = place(Site(PUT, "", CODE_AT, CODE_AT, len(code)), image_of(code), default_costs(True))
    assert CODE_AT <= placement.file_offset < CODE_AT + len(code)
    assert placement.return_distance >= 0


def test_the_allocator_of_this_machine_is_cheap_or_says_why() -> None:
    library = Path("/lib/x86_64-linux-gnu/libc.so.6")
    if not library.exists():
        pytest.skip("no glibc at its Debian path")
    image = Image.open(library)
    sites, unresolved = resolve(image, [HEAP, MAPPINGS], allocator=False)
    assert unresolved == []
    placements = {site.function.function: place(site, image, default_costs(True)) for site in sites}
    assert {"malloc", "calloc", "realloc", "posix_memalign", "free", "mmap", "munmap"} <= set(placements)
    for name, placement in placements.items():
        assert placement.cost in ("call", "trap") or placement.reason, name
    assert {placements[name].cost for name in ("malloc", "calloc", "realloc", "free")} <= {"call", "trap"}
