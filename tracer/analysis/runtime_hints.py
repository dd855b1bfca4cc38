"""Hints at what shows more of programs that an interpreter, or a compiler at run time, executes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from tracer.analysis.one_offs import is_of_python
from tracer.analysis.qualified_name import qualified_name
from tracer.analysis.runtime import ALLOCATOR_MODULE, is_allocator, is_heap
from tracer.late_patterns import late_pattern
from tracer.model.findings import INHERITED, FrameList, Leak

_ARENAS = (1 << 18, 1 << 20)
"""ARENA_SIZE of CPython (Objects/obmalloc.c, Include/internal/pycore_obmalloc.h): before 3.10, and since."""
_MANY_BYTES = 16 << 20
"""What a program that only starts does not reach."""
_ALIGNED = ("posix_memalign", "memalign")
"""By which GLib takes such a page (glib/gslice.c of 2.74, allocator_memalign)."""
_V8_INTERPRETER = "Builtins_InterpreterEntryTrampoline"
_JAVA_MACHINE = "libjvm.so"
_JAVA_HEAP = late_pattern(
    r"((G1)?HeapRegionManager|CardGeneration|DefNewGeneration|TenuredGeneration|PSOldGen|PSYoungGen|ZPageAllocator"
    r"|ShenandoahHeapRegion)::.*"
)
"""By which the collectors of HotSpot commit memory for objects (src/hotspot/share/gc)."""
_NUMBA_FUNCTION = late_pattern(r"(?!cpython::).*\[abi:v\d+\].*")
"""The first tag is the number of a compilation; what Python calls are wrappers, which have no lines
(numba/core/funcdesc.py)."""
_JAVA_START = late_pattern(r"JNI_CreateJavaVM|Threads::create_vm")


def runtime_hints(leaks: Sequence[Leak]) -> tuple[str, ...]:
    """Return a line for each interpreter whose code or objects these entries show only in part."""
    left = [leak for leak in leaks if leak.state != INHERITED]
    stacks = list({id(leak.stack): leak.stack for leak in left if leak.suppressed_by is None}.values())
    frames = {id(frame): frame for stack in stacks for frame in stack}.values()  # stacks have many in common
    return (
        *_arenas(left), *_slices(left), *_java_heap(left), *_held_by_books(left),
        *(_javascript(stacks) if any(frame.function == _V8_INTERPRETER for frame in frames) else ()),
        *(_java(stacks) if any(frame.module == _JAVA_MACHINE for frame in frames) else ()),
        *(_numba(stacks) if any(frame.kind == "jit" for frame in frames) else ()),
    )  # fmt: skip


def _held_by_books(leaks: Iterable[Leak]) -> Iterator[str]:
    """Of an allocator that takes malloc's place: its books of blocks that live, and of those that it gives out again,
    are in memory that is not told from a program's own."""
    found = [leak for leak in leaks if leak.suppressed_by is None and _is_replaced(leak.stack) and _is_in_books(leak)]
    if found:
        leaf = found[0].stack[0]
        library = leaf.module if _is_allocator_module(leaf.module or "") else f"jemalloc in {leaf.module}"
        yield (
            f"{sum(leak.count for leak in found):,} blocks, {_size(sum(leak.bytes or 0 for leak in found))}, are held"
            f" by nothing but memory of unknown making, as the books of {library} are, and may be lost: `--reachability"
            " off` lists all that was not freed"
        )


def _size(size_bytes: int) -> str:
    return f"{size_bytes >> 20:,} MiB" if size_bytes >= 1 << 20 else f"{size_bytes:,} bytes"


def _is_replaced(stack: FrameList) -> bool:
    return bool(stack) and (_is_allocator_module(stack[0].module or "") or _is_of_jemalloc(stack[0].function or ""))


@cache
def _is_allocator_module(module: str) -> bool:
    return ALLOCATOR_MODULE.fullmatch(module) is not None


def _is_of_jemalloc(function: str) -> bool:
    """Tell whether it is one of jemalloc's that was linked into a program: Redis and Rust have given it a prefix."""
    return function.startswith(("je_", "_rjem_"))


def _is_in_books(leak: Leak) -> bool:
    """Tell whether words of unknown memory, or of such as an allocator mapped, are all that holds these blocks: no
    variable, stack or block does."""
    return bool(leak.holders) and all(
        holder.kind == "mapping" and (not holder.stack or any(map(is_heap, holder.stack[:2])))
        for holder in leak.holders or ()
    )


def _arenas(leaks: Iterable[Leak]) -> Iterator[str]:
    if many := _many(filter(_is_arena, leaks)):
        yield (
            f"{many}, are by their size arenas of Python's own allocator, which holds its objects: PYTHONMALLOC=malloc"
            " in its environment shows each"
        )


def _slices(leaks: Iterable[Leak]) -> Iterator[str]:
    """Of GLib up to 2.74: whoever points at a struct in a page holds all that is in it."""
    pages = [leak for leak in leaks if leak.suppressed_by is None and _is_slice_page(leak.stack)]
    if pages:
        count = sum(leak.count for leak in pages)
        yield (
            f"{count:,} {'block' if count == 1 else 'blocks'}, {_size(sum(leak.bytes or 0 for leak in pages))},"
            f" {'is a page' if count == 1 else 'are pages'} of GLib's slices, each held as a whole:"
            " G_SLICE=always-malloc in its environment shows each struct"
        )


def _is_slice_page(stack: FrameList) -> bool:
    """Tell whether g_slice_alloc took it from the allocator, in a function of GLib's own that may have no name."""
    if not stack or stack[0].function not in _ALIGNED:
        return False
    return any(frame.function == "g_slice_alloc" for frame in stack[1:4])


def _many(mappings: Iterable[Leak]) -> str:
    """Say how much these mappings are; nothing where that is little."""
    found = list(mappings)
    size = sum(leak.bytes or 0 for leak in found)
    return f"{sum(leak.count for leak in found):,} mappings, {size >> 20:,} MiB in all" if size >= _MANY_BYTES else ""


def _is_arena(leak: Leak) -> bool:
    if leak.kind != "mapping" or leak.size_min != leak.size_max or leak.size_min not in _ARENAS:
        return False
    caller = next((frame for frame in leak.stack if not is_allocator(frame)), None)
    return caller is not None and is_of_python(caller)


def _java_heap(leaks: Iterable[Leak]) -> Iterator[str]:
    if many := _many(leak for leak in leaks if leak.kind == "mapping" and _grows_java_heap(leak.stack)):
        yield (
            f"{many}, were made as the heap of Java's virtual machine grew, which holds its objects: `jcmd PID"
            " GC.class_histogram` counts them by class"
        )


def _grows_java_heap(stack: FrameList) -> bool:
    """Tell whether a collector took memory, after the start, when it has its first."""
    names = [qualified_name(frame.function) for frame in stack if frame.function and frame.module == _JAVA_MACHINE]
    return any(map(_JAVA_HEAP.fullmatch, names)) and not any(map(_JAVA_START.fullmatch, names))


def _javascript(stacks: Iterable[FrameList]) -> Iterator[str]:
    nameless = named = 0
    for stack in stacks:
        nameless += sum(frame.function == _V8_INTERPRETER for frame in stack)
        named += sum(frame.language == "JavaScript" for frame in stack)
    if nameless > named:
        yield (
            "functions of JavaScript that V8 interprets have no names: run it with --perf-basic-prof and"
            " --interpreted-frames-native-stack"
        )


def _java(stacks: Iterable[FrameList]) -> Iterator[str]:
    of_java = (stack for stack in stacks if any(frame.module == _JAVA_MACHINE for frame in stack))
    if any(frame.module is None and frame.function is None for stack in of_java for frame in stack):
        yield (
            "methods of Java have no names: `jcmd PID Compiler.perfmap` (Java 17 and later) or perf-map-agent writes"
            " those of the compiled ones to /tmp/perf-PID.map; -XX:+PreserveFramePointer keeps their stacks whole"
        )


def _numba(stacks: Iterable[FrameList]) -> Iterator[str]:
    bare = with_line = 0
    for stack in stacks:
        for frame in stack:
            if frame.kind == "jit" and frame.function and _NUMBA_FUNCTION.fullmatch(frame.function):
                bare, with_line = bare + (frame.line is None), with_line + (frame.line is not None)
    if bare > with_line:
        yield (
            "functions that numba compiled have no lines, and one that it inlined no frame of its own:"
            " NUMBA_DEBUGINFO=1 in its environment shows both"
        )
