"""Suppressions to copy: one for each entry, in LeakSanitizer's or valgrind's syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from tracer.model.findings import Findings, Leak
from tracer.model.frames import Frame
from tracer.report.amount_words import amount
from tracer.report.sanitizer_pattern import CLONE, lsan_lines

_ALLOCATOR = re.compile(r"alloc|memalign|^_Zn[wa]|^operator new")
_DEEPEST = 24
"""Callers that valgrind reads of a suppression at most."""


def write_suppressions(findings: Findings, stream: TextIO, syntax: str) -> None:
    """Write a suppression for each entry that is not inherited. `syntax`: "lsan" or "valgrind"."""
    done: set[tuple[str, ...]] = set()
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
        return f"fun:{CLONE.sub('*', frame.function)}"
    return f"obj:{frame.path}" if frame.path else "obj:*"
