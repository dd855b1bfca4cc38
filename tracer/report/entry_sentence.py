"""One entry in a sentence, for formats that list findings."""

from __future__ import annotations

from pathlib import PurePath

from tracer.model.findings import BAD_FREES, ErrorFinding, Leak
from tracer.model.frames import Frame
from tracer.report.amount_words import NOUNS, times
from tracer.report.amounts import counted, exact_size
from tracer.report.class_words import state_word
from tracer.report.names import innermost
from tracer.report.selection_words import sampled_count, sampled_size
from tracer.report.source_location import first_named, main_frame
from tracer.report.stack_lines import name


def leak_sentence(leak: Leak) -> str:
    """Return "28.0 KiB (28,672 bytes) leaked in 7 blocks (malloc) from parse_body (body.c:118)"."""
    state = state_word(leak)
    if leak.kind == "reference":
        what = f"{counted(leak.count, 'object')} of type {leak.type or 'unknown'} {state}"
    else:
        by = f" ({leak.type})" if leak.type else ""
        if leak.sample is not None:
            blocks = sampled_count(leak.count, NOUNS[leak.kind], leak.sample)
            what = f"{sampled_size(leak.bytes or 0, leak.sample)} {state} in {blocks}, sampled{by}"
        else:
            what = f"{exact_size(leak.bytes or 0)} {state} in {counted(leak.count, NOUNS[leak.kind])}{by}"
    return f"{what} from {short_place(main_frame(leak))}"


def error_sentence(error: ErrorFinding) -> str:
    """Return "over-put of dso, 2 times, in thread__exit (thread.c:99)"."""
    of = f" of {error.type}" if error.type else ""
    how_often = f", {times(error)}," if error.count != 1 else ""
    what = f" ({error.reason})" if error.reason and error.kind in BAD_FREES else ""
    return f"{error.kind}{of}{how_often} in {short_place(offender(error))}{what}"


def offender(error: ErrorFinding) -> Frame | None:
    """Return the caller of the leaf, which broke the rule, or the leaf if it has no caller."""
    of_caller = first_named(error.stack) if error.kind in BAD_FREES else None  # free itself is not in its stack
    return of_caller or first_named(error.stack[1:]) or first_named(error.stack)


def short_place(frame: Frame | None) -> str:
    """Return "parse_body (body.c:118)", or "git+0x1234", or that the stack was not kept."""
    if frame is None:
        return "an unknown place (stack not kept)"
    if not frame.file:
        return f"{name(frame)} [{frame.module}]" if frame.function and frame.module else name(frame)
    line = "" if frame.line is None else f":{frame.line}"
    return f"{name(frame)} ({PurePath(frame.file).name}{line})"


def fitted_place(frame: Frame | None, room: int) -> str:
    """Return what short_place does, with its function's name so short that `room` columns hold most of it.

    Where they cannot hold both, the place goes before the function does; what remains may still be longer.
    """
    whole = short_place(frame)
    if len(whole) <= room or frame is None or not frame.function:
        return whole
    said = name(frame)
    behind = whole[len(said) :]
    both = f"{innermost(said, room - len(behind))}{behind}"
    return both if len(both) <= room else f"{innermost(said, room)}{behind}"


def stack_text(stack: tuple[Frame, ...]) -> list[str]:
    """Return a whole stack, leaf first, one line a frame, with full paths."""
    lines = []
    for frame in stack:
        line = "" if frame.line is None else f":{frame.line}"
        where = f"{frame.file}{line}" if frame.file else f"[{frame.module}]" if frame.function and frame.module else ""
        lines.append(f"{name(frame)}  {where}".rstrip() + ("  (inlined)" if frame.inlined else ""))
    return lines or ["(stack not kept)"]
