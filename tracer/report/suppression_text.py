"""Suppressions to copy: one for each entry, in LeakSanitizer's or valgrind's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from tracer.model.findings import Findings, Leak
from tracer.model.frames import Frame
from tracer.report.amount_words import amount
from tracer.report.stack_lines import name

_ALLOCATOR = re.compile(r"alloc|memalign|^_Zn[wa]|^operator new")
_CLONE = re.compile(r"(\.(isra|constprop|part|cold|lto_priv)(\.\d+)?)+$")
"""What a compiler adds to a name, and changes with the next build."""
_DEEPEST = 24
"""Callers that valgrind reads of a suppression at most."""


def write_suppressions(findings: Findings, stream: TextIO, syntax: str) -> None:
    """Write a suppression for each entry that is not inherited. `syntax`: "lsan" or "valgrind"."""
    lines = _lsan if syntax == "lsan" else _valgrind
    done: set[tuple[str, ...]] = set()
    for leak in findings.leaks:
        text = tuple(lines(leak))
        said = text[-1:] if syntax == "lsan" else text[3:]  # without the name, which is the entry's
        if leak.state == "inherited" or leak.is_held or leak.owner is not None or said in done:
            continue
        done.add(said)
        stream.write("\n".join(text) + "\n")


def _lsan(leak: Leak) -> Iterator[str]:
    """A line on what it is, then the pattern: the frame at which a developer starts to read, bound at both ends."""
    yield f"# {leak.state}: {amount([leak])}{f' ({leak.type})' if leak.type else ''}, id {leak.id}"
    named = [frame for frame in leak.stack[leak.own_frame or 0 :] if frame.function or frame.module]
    if named and named[0].function == "main":
        yield "# main is in every stack: --gen-suppressions valgrind can tell this one from the others"
    elif named:
        if leak.kind == "allocation" and leak.callers and named[0] is not leak.callers[0]:
            yield f"# where {name(leak.callers[0])} has no frame pointer: LSAN_OPTIONS=fast_unwind_on_malloc=0"
        yield f"leak:^{_CLONE.sub('*', named[0].function or named[0].module or '')}$"
    elif leak.kind == "reference" and leak.type:
        yield f"ref:{leak.type}"
    else:
        yield "# nothing in its stack has a name"


def _valgrind(leak: Leak) -> Iterator[str]:
    """A block (Valgrind manual, section 2.5): from the leaf to main, the outermost that valgrind names.

    It begins with the allocator, by a pattern: valgrind has replaced malloc and operator new by its own.
    """
    yield f"# {leak.state}: {amount([leak])}, id {leak.id}"
    yield "{"
    yield f"   refleak-{leak.id}"
    yield "   Memcheck:Leak"
    yield "   match-leak-kinds: all"
    if leak.kind == "allocation" and not (leak.callers and _ALLOCATOR.search(leak.callers[0].function or "")):
        yield "   fun:_Zn*" if (leak.type or "").startswith("new") else "   fun:*alloc*"
    for frame in leak.callers[:_DEEPEST]:
        yield f"   {_line(frame)}"
        if frame.function == "main":
            break
    yield "}"


def _line(frame: Frame) -> str:
    if frame.function is not None:
        return f"fun:{_CLONE.sub('*', frame.function)}"
    return f"obj:{frame.path}" if frame.path else "obj:*"
