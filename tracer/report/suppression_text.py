"""Suppressions to copy: one for each entry, in LeakSanitizer's or valgrind's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import TextIO

from tracer.model.findings import Findings, Leak
from tracer.model.frames import Frame
from tracer.report.amount_words import amount
from tracer.report.sanitizer_pattern import CLONE, lsan_lines

_ALLOCATOR = re.compile(r"alloc|memalign|^_Zn[wa]|^operator new")
_NEW = re.compile(r"_Zn[wa]|operator new\b")
_OUTERMOST = ("main", "start_thread")
_DEEPEST = 24
"""Callers that valgrind reads of a suppression at most."""


def write_suppressions(findings: Findings, stream: TextIO, syntax: str) -> None:
    """Write a suppression for each entry that is not inherited. `syntax`: "lsan" or "valgrind"."""
    done: set[tuple[str, ...]] = set()
    if syntax == "valgrind" and any("(" in (frame.function or "") for leak in findings.leaks for frame in leak.callers):
        stream.write("# valgrind itself compares names of C++ as linked: for it, make these with --no-demangle\n")
    for leak in findings.leaks:
        if leak.state == "inherited" or leak.is_held or leak.owner is not None:
            continue
        text = tuple(lsan_lines(leak) if syntax == "lsan" else _valgrind(leak))
        patterns = tuple(line for line in text if line[0] != "#")
        said = patterns[2:] if syntax == "valgrind" else patterns or text[-1:]  # without the name, which is the entry's
        if said in done:
            continue
        done.add(said)
        stream.write("\n".join(text) + "\n")


def _valgrind(leak: Leak) -> Iterator[str]:
    """A block (Valgrind manual, section 2.5): from the leaf to main or the thread's start.

    It begins with the allocator, by a pattern: valgrind has replaced malloc and operator new by its own, operator new[]
    too, which libstdc++ leaves before it allocates, and older ones make aligned blocks by another frame.
    """
    yield f"# {leak.state}: {amount([leak])}, id {leak.id}"
    yield "{"
    yield f"   refleak-{leak.id}"
    yield "   Memcheck:Leak"
    yield "   match-leak-kinds: all"
    frames = leak.callers[:_DEEPEST]
    if leak.kind == "allocation":
        made_by_new = bool(frames) and _NEW.match(frames[0].function or "") is not None
        if made_by_new:
            frames = frames[1:]
        if made_by_new or not (frames and _ALLOCATOR.search(frames[0].function or "")):
            yield from _allocator(leak.type or "", made_by_new)
    for frame in frames:
        yield f"   {_line(frame)}"
        if frame.function in _OUTERMOST:
            break
    yield "}"


def _allocator(type_: str, made_by_new: bool) -> Iterator[str]:
    if made_by_new or type_.startswith("new"):
        yield "   fun:_Zn*"
    elif "align" in type_:
        yield "   fun:*align*"
        if type_ == "posix_memalign":
            yield "   ..."
    else:
        yield "   fun:*alloc*"


def _line(frame: Frame) -> str:
    """An inlined function has its bare name in valgrind, which the linked one does not tell. A library's pattern goes
    without folder and version: valgrind knows its last name, and the next system has others."""
    if frame.function is not None:
        return "fun:*" if frame.inlined and frame.function.startswith("_Z") else f"fun:{CLONE.sub('*', frame.function)}"
    if frame.path is None:
        return "obj:*"
    name, library, _ = PurePath(frame.path).name.partition(".so")
    return f"obj:*/{name}{library and '.so*'}"
