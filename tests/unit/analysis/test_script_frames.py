"""Frames of scripts in the analysis: whose code they are, and what identifies them."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.identity import keys_of, stable_id
from tracer.analysis.one_offs import one_off
from tracer.analysis.own_frame import own_frame
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.findings import FrameList, Leak
from tracer.model.frames import Frame
from tracer.model.records import StackStatus
from tracer.model.snapshot import Stack
from tracer.report.stack_lines import chain

SCRIPT = Frame("load", "s.py", file="/home/s.py", line=12, kind="guest", language="Python")
FROZEN = Frame("_load", "<frozen importlib._bootstrap>", file="<frozen importlib._bootstrap>", line=3,
               kind="guest", language="Python")  # fmt: skip
INSIDE = Frame(None, "python3.11", "/usr/bin/python3.11", address=0x500)
RAW = Frame("_PyMem_RawMalloc", "python3.11", "/usr/bin/python3.11", address=0x400)
CALL = Frame("ffi_call", "libffi.so.8.1.2", "/lib/libffi.so.8.1.2", address=0x700)
NATIVE = Frame("leak", "libleak.so", "/home/libleak.so", address=0x10)
START = Frame("Py_InitializeFromConfig", "python3.11", "/usr/bin/python3.11", address=0x900)


def leak(*stack: Frame) -> Leak:
    return Leak("", "allocation", "malloc", 1, "leaked", 1, 8, stack, True, "complete")


def test_the_library_that_a_script_calls_is_own() -> None:
    assert own_frame((NATIVE, CALL, INSIDE, SCRIPT)) == 0


def test_a_script_is_own_before_its_interpreter() -> None:
    assert own_frame((RAW, INSIDE, CALL, FROZEN, SCRIPT, INSIDE)) == 4


def test_without_a_script_the_interpreter_is_own_code() -> None:
    assert own_frame((RAW, INSIDE, CALL)) == 1


def test_the_name_of_a_script_s_function_makes_it_no_allocator() -> None:
    own: FrameList = (INSIDE, replace(SCRIPT, function="malloc"), INSIDE)
    assert own_frame(own) == 1


def test_an_id_has_the_functions_of_the_script_and_not_their_lines() -> None:
    def identity(frame: Frame) -> str:
        return stable_id("allocation", "malloc", keys_of((NATIVE, frame)))

    assert identity(SCRIPT) == identity(replace(SCRIPT, line=99))
    assert identity(SCRIPT) != identity(replace(SCRIPT, function="save"))
    assert identity(SCRIPT) != identity(replace(SCRIPT, module="t.py"))


def test_what_the_interpreter_keeps_is_known_with_a_script_s_frames_between() -> None:
    for stack in ((INSIDE, FROZEN, INSIDE, START), (FROZEN, INSIDE, START)):
        rule = one_off(leak(*stack))
        assert rule is not None and rule.name == "python-start"
    assert one_off(leak(NATIVE, FROZEN, INSIDE, START)) is None
    assert one_off(leak(INSIDE, replace(SCRIPT, function="Py_Initialize"), INSIDE)) is None


def test_the_text_names_file_and_line() -> None:
    assert chain((NATIVE, SCRIPT), 80) == ["leak [libleak.so] < load s.py:12"]


def test_the_trampoline_of_a_script_s_function_is_left_out_beside_it() -> None:
    """python3 -X perf: the frame of the function says the same and the line."""
    trampoline = Frame("load", "[jit]", file="/home/s.py", kind="jit", language="Python", address=0x40)
    another = replace(trampoline, function="save")
    symbols = {1: (NATIVE,), 2: (SCRIPT,), 3: (trampoline,), 4: (another,), 5: (INSIDE,)}
    frames = [(1, 2, 3, 5), (1, 2, 4, 5), (1, 3, 2)]
    stacks = {number: Stack(keys, StackStatus.COMPLETE) for number, keys in enumerate(frames)}
    book = SymbolizedStacks(stacks, (), symbols)
    assert book.get(0).frames == (NATIVE, SCRIPT, INSIDE) and len(book.get(0).keys) == 3
    assert book.get(1).frames == (NATIVE, SCRIPT, another, INSIDE)
    assert book.get(2).frames == (NATIVE, trampoline, SCRIPT)
