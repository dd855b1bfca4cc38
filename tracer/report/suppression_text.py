"""Suppressions to copy: one for each entry and broken rule, in LeakSanitizer's or valgrind's syntax."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TextIO

from tracer.late_patterns import late_pattern
from tracer.model.c_library_names import BELOW_MAIN, STARTS
from tracer.model.findings import BAD_FREES, ErrorFinding, Findings, FrameList, Leak
from tracer.model.frames import Frame, LinkedNames, place_of
from tracer.report.amount_words import amount, times
from tracer.report.sanitizer_pattern import CLONE, literal, lsan_lines

_ALLOCATOR = late_pattern(r"([mc]|re|v|pv|aligned_)alloc|(posix_)?memalign")
"""What valgrind replaces. A function of the program that calls itself so (xmalloc) is a frame of its own."""
_NEW = late_pattern(r"_Zn[wa]|operator new\b")
_OUTERMOST = ("main", "start_thread")
_NONE: LinkedNames = {}
_DEEPEST = 24
"""Callers that valgrind reads of a suppression at most."""


def write_suppressions(
    findings: Findings, stream: TextIO, syntax: str, linked: LinkedNames = _NONE
) -> None:  # fmt: skip
    """Write a suppression for each entry that is not inherited, and each error. `syntax`: "lsan" or "valgrind"."""
    done: set[tuple[str, ...]] = set()
    leaks = [one for one in findings.leaks if one.state != "inherited" and not one.is_held and one.owner is None]
    stacks = [*(leak.callers for leak in leaks), *(error.stack for error in findings.errors)]
    if syntax == "valgrind" and any("(" in _linked(frame, linked) for stack in stacks for frame in stack):
        stream.write("# valgrind compares names of C++ as linked, not known here: make these where the program is\n")
    texts = [lsan_lines(leak) if syntax == "lsan" else _valgrind(leak, linked) for leak in leaks]
    texts += [_of_error(error, syntax, linked) for error in findings.errors]
    for text in map(tuple, texts):
        patterns = tuple(line for line in text if line[0] != "#")
        said = patterns[2:] if syntax == "valgrind" else patterns or text[-1:]  # without the name, which is the entry's
        if said in done:
            continue
        done.add(said)
        stream.write("\n".join(text) + "\n")


def _of_error(error: ErrorFinding, syntax: str, linked: LinkedNames) -> Iterator[str]:
    """Only bad frees have a kind in valgrind, and nothing of this in LeakSanitizer."""
    named = next((frame.function for frame in error.stack if frame.function), None)
    yield f"# {error.kind}{f' ({error.type})' if error.type else ''}, {times(error)}"
    if syntax == "valgrind" and error.kind in BAD_FREES:
        yield "{"
        yield f"   refleak-{error.kind}{f'-{named}' if named else ''}"
        yield "   Memcheck:Free"
        yield "   fun:*"
        yield from _ways(error.stack[: _DEEPEST - 1], linked)
        yield "}"
    else:
        pattern = f":^{literal(CLONE.sub('*', named))}$" if named else ""
        yield f"# for refleak alone, without the `# `: {'LeakSanitizer' if syntax == 'lsan' else 'valgrind'} refuses it"
        yield f"# error:{error.kind}{pattern}"


def _valgrind(leak: Leak, linked: LinkedNames) -> Iterator[str]:
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
        if made_by_new or not (frames and _ALLOCATOR.fullmatch(frames[0].function or "")):
            yield from _allocator(leak.type or "", made_by_new)
    yield from _ways(frames, linked)
    yield "}"


def _ways(frames: FrameList, linked: LinkedNames) -> Iterator[str]:
    for frame in frames:
        if frame.function in STARTS:  # no main: the program has no symbols
            yield f"   fun:{BELOW_MAIN}"
            break
        yield f"   {_line(frame, _linked(frame, linked))}"
        if frame.function in _OUTERMOST:
            break


def _allocator(type_: str, made_by_new: bool) -> Iterator[str]:
    if made_by_new or type_.startswith("new"):
        yield "   fun:_Zn*"
    elif "align" in type_:
        yield "   fun:*align*"
        if type_ == "posix_memalign":
            yield "   ..."
    else:
        yield "   fun:*alloc*"


def _linked(frame: Frame, linked: LinkedNames) -> str:
    return linked.get(place_of(frame), frame.function or "")


def _line(frame: Frame, linked: str) -> str:
    """An inlined function has its bare name in valgrind, which the linked one does not tell. A library's pattern goes
    without folder and version: valgrind knows its last name, and the next system has others."""
    if frame.function is not None:
        return "fun:*" if frame.inlined and linked.startswith("_Z") else f"fun:{CLONE.sub('*', linked)}"
    if frame.path is None:
        return "obj:*"
    name, library, _ = PurePath(frame.path).name.partition(".so")
    return f"obj:*/{name}{library and '.so*'}"
