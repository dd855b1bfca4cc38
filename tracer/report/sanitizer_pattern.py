"""Suppressions of LeakSanitizer: patterns for the name that it gives to the frame at which a developer starts to read.

Where a function has no linkage name, because it is local to its file, the symbolizer of GCC's sanitizers (libbacktrace)
has only its bare name from the debug information; that of LLVM has its symbol.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.late_patterns import late_pattern
from tracer.model.findings import Leak
from tracer.model.frames import Frame
from tracer.report.amount_words import amount
from tracer.report.stack_lines import name

CLONE = late_pattern(r"(\.(isra|constprop|part|cold|lto_priv)(\.\d+)?)+$")
"""What a compiler adds to a name, and changes with the next build."""
_REPLACED = late_pattern(r"(m|c|re|v|pv|aligned_)alloc|(posix_)?memalign|reallocarray|operator new.*|_Zn[wa].*")
"""What LeakSanitizer has in its own place: what such a function called is in no stack of its."""
_LONGEST = 4096
_CALL = "operator()"
_PLAIN = late_pattern(r"(?:\(anonymous namespace\)::)?(\w+)\(.*\)$")
"""A function of C++ that is in no namespace with a name, nor in a class."""
_QUALIFIED = late_pattern(r".*[\w)}>]::(operator\(\)|~?\w+)\(.*\)(?: const)?$")


def lsan_lines(leak: Leak) -> Iterator[str]:
    """A line on what it is, then the patterns, bound at both ends."""
    yield f"# {leak.state}: {amount([leak])}{f' ({leak.type})' if leak.type else ''}, id {leak.id}"
    own = leak.stack[leak.own_frame or 0 :]
    named = [frame for frame in own if _tells(frame)]
    if named and named[0].function == "main":
        yield "# main is in every stack: --gen-suppressions valgrind can tell this one from the others"
    elif named:
        if leak.kind == "allocation" and leak.callers and leak.callers[0] not in own:
            yield from _on_frame_pointers(leak.callers[0])
        yield from _patterns(named[0])
    elif leak.kind == "reference" and leak.type:
        yield f"ref:{leak.type}"
    else:
        yield "# nothing in its stack has a name"


def _tells(frame: Frame) -> bool:
    """All closures of C++ are called by the same bare name, which inlined ones have alone."""
    return bool(frame.function or frame.module) and frame.function != _CALL


def _on_frame_pointers(maker: Frame) -> Iterator[str]:
    if maker.function is None or not _REPLACED.fullmatch(maker.function):
        yield f"# where {name(maker)} has no frame pointer: LSAN_OPTIONS=fast_unwind_on_malloc=0"


def _patterns(frame: Frame) -> Iterator[str]:
    if frame.function is None:
        yield f"leak:{'/' if frame.path else '^'}{literal(frame.module or '')}$"
        return
    yield f"leak:^{literal(CLONE.sub('*', frame.function))}$"
    plain, qualified = _PLAIN.fullmatch(frame.function), _QUALIFIED.fullmatch(frame.function)
    if plain:
        yield f"leak:^{plain[1]}$"
    elif qualified:
        yield "# where GCC built it and it is local to its file, it has a name that others may have too:"
        yield f"# leak:^{qualified[1]}$"


def literal(text: str) -> str:
    """`$` is the end wherever it stands in a pattern, and clang has it in the names of closures."""
    return text.replace("$", "*") if len(text) < _LONGEST else text.replace("$", "*")[: _LONGEST - 9] + "*"
