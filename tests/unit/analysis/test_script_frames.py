"""Frames of scripts in the analysis: whose code they are, and what identifies them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracer.analysis.identity import keys_of, stable_id
from tracer.analysis.one_offs import one_off
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.own_frame import own_frame
from tracer.analysis.runtime_hints import runtime_hints
from tracer.analysis.setting_aside import set_aside
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.findings import FrameList, Holder, Leak
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


def in_javascript(function: str, file: str) -> Frame:
    return Frame(function, "[jit]", file=file, kind="jit", language="JavaScript", address=0x7000)


NODE = Frame("node::NodeArrayBufferAllocator::Allocate", "node", "/usr/bin/node", address=0x11)
TRAMPOLINE = Frame("Builtins_InterpreterEntryTrampoline", "node", "/usr/bin/node", address=0x12)


def test_a_script_of_javascript_is_own_before_node_and_what_is_part_of_it() -> None:
    inside = in_javascript("alloc", "node:buffer")
    assert own_frame((NODE, inside, in_javascript("keep", "/home/s.js"), TRAMPOLINE)) == 2
    assert own_frame((NODE, inside, TRAMPOLINE)) == 0
    assert own_frame((NATIVE, NODE, in_javascript("keep", "/home/s.js"))) == 0


def test_hints_where_javascript_is_nameless() -> None:
    hint = ("functions of JavaScript that V8 interprets have no names: run it with --perf-basic-prof and"
            " --interpreted-frames-native-stack",)  # fmt: skip
    named = in_javascript("keep", "/home/s.js")
    assert runtime_hints([leak(NODE, TRAMPOLINE, named, TRAMPOLINE)]) == hint
    assert runtime_hints([leak(NODE, TRAMPOLINE, named, named)]) == ()
    assert runtime_hints([replace(leak(NODE, TRAMPOLINE), state="inherited")]) == ()


@pytest.mark.parametrize("holders", [
    (Holder(3, "mapping"), Holder(2, "mapping", interior=True)), (Holder(3, "mapping"), Holder(1, "global", "kept")),
    (Holder(1, "mapping", stack=(NODE,)),), (Holder(3, "mapping"), Holder(9, "other")), (), None,
])  # fmt: skip
def test_hints_where_only_an_allocators_books_may_hold(holders: tuple[Holder, ...] | None) -> None:
    """Those of glibc's malloc are told from a program's memory."""
    found = leak(Frame("malloc", "libjemalloc.so.2"), NATIVE)
    (hint,) = runtime_hints([replace(found, holders=(Holder(1, "mapping"),), count=3, bytes=5 << 20)])
    assert hint == (
        "3 blocks, 5 MiB, are held by nothing but memory of unknown making, as the books of libjemalloc.so.2 are, and"
        " may be lost: `--reachability off` lists all that was not freed"
    )
    is_told = bool(holders) and all(holder.kind == "mapping" and not holder.stack for holder in holders or ())
    assert len(runtime_hints([replace(found, holders=holders)])) == is_told
    assert runtime_hints([replace(leak(Frame("malloc", "libc.so.6"), NATIVE), holders=(Holder(1, "mapping"),))]) == ()


def test_hints_where_java_is_nameless() -> None:
    machine, method = Frame("os::malloc", "libjvm.so"), Frame(None, address=0x7000)
    (hint,) = runtime_hints([leak(machine, method)])
    assert hint.startswith("methods of Java have no names: `jcmd PID Compiler.perfmap`")
    assert runtime_hints([leak(machine, replace(method, function="run", module="[jit]"))]) == ()


def test_hints_where_numba_s_functions_have_no_lines() -> None:
    """What gdb's interface registers has names; the way to the rest was not said."""
    (hint,) = runtime_hints([leak(*numba("__main__::keep[abi:v3][abi:c8tJTIeF](long long)"))])
    assert hint.startswith("functions that numba compiled have no lines") and "NUMBA_DEBUGINFO=1" in hint
    assert runtime_hints([leak(*numba("__main__::keep[abi:v3](long long)", line=9))]) == ()
    assert runtime_hints([leak(*numba("std::__cxx11::to_string[abi:cxx11](int)"))]) == ()
    assert own_frame(numba("__main__::keep[abi:v3](long long)")) == 2, "not numba's allocator"


def numba(function: str, line: int | None = None) -> tuple[Frame, ...]:
    made, library = Frame(function, "[jit]", line=line, kind="jit", address=0x7000), "_nrt_python.cpython-311.so"
    allocator = Frame("NRT_Allocate_External", library), Frame("nrt_allocate_meminfo_and_data_align", library)
    return (*allocator, made, replace(made, function=f"cpython::{function}", line=None), SCRIPT)


@pytest.mark.parametrize(
    "grower",
    [
        "HeapRegionManager::expand_by(unsigned int, WorkGang*)", "PSOldGen::resize(unsigned long)",
        "TenuredGeneration::expand(unsigned long, unsigned long)",
        "ZPageAllocator::alloc_page(unsigned char, unsigned long, ZAllocationFlags)",
        "ShenandoahHeapRegion::do_commit()",
    ],
)
def test_hints_where_the_heap_of_java_grew(grower: str) -> None:
    """It is set aside, and the verdict was `clean` with no word of it, while the process grew by hundreds of MiB."""
    names = ("os::commit_memory(char*)", grower, "JNI_CreateJavaVM")
    commit, grow, start = (Frame(name, "libjvm.so") for name in names)
    hint = ("20 mappings, 20 MiB in all, were made as the heap of Java's virtual machine grew, which holds its objects:"
            " `jcmd PID GC.class_histogram` counts them by class",)  # fmt: skip
    assert runtime_hints([replace(arenas(commit, grow), suppressed_by="built-in:java")]) == hint
    for other in (arenas(commit, grow, start), arenas(commit), arenas(commit, grow, count=15)):
        assert runtime_hints([other]) == ()
    assert runtime_hints([arenas(commit, replace(grow, module="prog"))]) == ()


NEW = Frame("_PyObject_New", "python3.11", "/usr/bin/python3.11", address=0x410)


def arenas(*stack: Frame, count: int = 20, size: int = 1 << 20, state: str = "outstanding") -> Leak:
    made = replace(leak(Frame("mmap", "libc.so.6"), *stack), kind="mapping", type="mmap", state=state)
    return replace(made, count=count, bytes=count * size, size_min=size, size_max=size)


def test_hints_where_python_holds_its_objects_in_arenas() -> None:
    hint = ("20 mappings, 20 MiB in all, are by their size arenas of Python's own allocator, which holds its objects:"
            " PYTHONMALLOC=malloc in its environment shows each",)  # fmt: skip
    assert runtime_hints([arenas(INSIDE, SCRIPT)]) == hint
    assert runtime_hints([replace(arenas(INSIDE, SCRIPT), suppressed_by="built-in:python-arenas")]) == hint
    for other in (arenas(INSIDE, count=15), arenas(NATIVE), arenas(INSIDE, size=1 << 21)):
        assert runtime_hints([other]) == ()


def test_hints_where_glib_holds_structs_in_slice_pages() -> None:
    """What is lost in them is not told: a page is held as a whole by whoever points into it."""
    inside, slices, make = (Frame(name, "libglib-2.0.so.0") for name in (None, "g_slice_alloc", "g_list_prepend"))
    page = replace(leak(Frame("posix_memalign", "libc.so.6"), inside, slices, make), count=3, bytes=1488)
    hint = "3 blocks, 1,488 bytes, are pages of GLib's slices, each held as a whole: G_SLICE=always-malloc in its"
    assert runtime_hints([page]) == (f"{hint} environment shows each struct",)
    assert runtime_hints([replace(page, count=1)])[0].startswith("1 block, 1,488 bytes, is a page of")
    of_malloc = leak(Frame("malloc", "libc.so.6"), inside, slices, make)
    assert runtime_hints([of_malloc, replace(page, suppressed_by="built-in:glib-start")]) == ()


def test_arenas_that_a_script_fills_are_not_set_aside() -> None:
    def aside(entry: Leak) -> str | None:
        return set_aside([entry], AnalysisOptions())[0].suppressed_by

    filled = arenas(NEW, INSIDE, SCRIPT, INSIDE)
    assert aside(filled) is None
    assert aside(replace(filled, state="leaked", reachability="reachable")) is None
    assert aside(replace(filled, state="leaked")) == "built-in:python-arenas"
    assert aside(arenas(NEW, INSIDE, FROZEN, INSIDE)) == "built-in:python-arenas"
