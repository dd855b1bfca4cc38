"""Find the functions of a binary that read the return addresses on the stack, or leave frames by them.

Return probes replace those addresses. Unwinders find no table for what stands there then, and end: an exception ends
the program, a cancelled thread's cleanup is skipped, a backtrace is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import Instruction
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, Symbol, read_symbol_table
from tracer.late_patterns import late_pattern
from tracer.model.operations import INTERPRETED, Placement, SiteFlag
from tracer.model.unwinding import Moment, UnwinderPlace
from tracer.sites.costs import NANOSECONDS, CostModel
from tracer.sites.placement import LARGEST_FUNCTION

LEAVE = ("_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow", "_Unwind_ForcedUnwind")
"""They never return (Itanium C++ ABI: Exception Handling, level 1)."""
SWITCH = ("setcontext", "swapcontext", "jump_fcontext", "ontop_fcontext")
"""They go to another stack, from where the kernel takes the return probes of this one for left behind."""
RETURN = ("_Unwind_Backtrace", "unw_backtrace", "unw_backtrace2")
"""They look at their own frame too: a return probe on them would be in their way."""
STEP = ("_ULx86_64_step", "_Ux86_64_step", "__unw_step")
"""They go on from the frame that they are given, in libunwind and in LLVM's."""
CATCH = ("__cxa_begin_catch",)
"""An exception has arrived: called at the start of each handler (level 2)."""
SANITIZED = ("__asan_init", "__hwasan_init", "__tsan_init", "__msan_init")
"""What instrumented code calls at its start (compiler-rt, libsanitizer)."""
_MARKS = ("_Unwind_", "unw_", "_step", "context", "__cxa_begin_catch")
_PERSONALITY = late_pattern(rb"\x01zP[LRSB]*\0")
"""A CIE's version, and its augmentation where its functions have handlers (LSB Core 5.0, "Exception Frames")."""
_UNWINDER = late_pattern(b"_Unwind_")
_LONGEST_START = 48
REGISTER_SP = int(ARCHITECTURE.stack_pointer)


def find_unwinders(image: Image, costs: CostModel) -> list[UnwinderPlace]:
    """Return where probes must be, in order of their places."""
    table = read_symbol_table(image)
    if image.machine != ARCHITECTURE.elf_machine or not any(map(table.mentions, _MARKS)):
        return []
    found: set[UnwinderPlace] = set()
    for names, find in (
        (LEAVE, _beginning), (SWITCH, _beginning), (RETURN, _around), (STEP, _around_with_return), (CATCH, _caught),
    ):  # fmt: skip
        for name in names:
            functions = (symbol for symbol in table.find(name) if symbol.kind == STT_FUNC)
            found.update(place for symbol in functions for place in find(image, symbol, costs))
    return sorted(found, key=lambda place: (place.file_offset, place.moment))


def refused_returns(image: Image, placements: Sequence[Placement]) -> dict[Placement, str]:
    """Return the placements that need a return probe where none may be, with the reason.

    Handlers in a binary that neither has nor asks for an unwinder by name: it has one without a symbol. A sanitizer
    follows frame pointers by itself, at each malloc and free.
    """
    with_return = [p for p in placements if p.site.function.operation not in INTERPRETED
                   and not p.site.function.flags & SiteFlag.ENTRY_RESULT]  # fmt: skip
    if not with_return:
        return {}
    if any(map(read_symbol_table(image).mentions, SANITIZED)):
        return dict.fromkeys(with_return, "a return probe would stand in the stacks of its sanitizer")
    if not _PERSONALITY.search(data := image.data[:]) or _UNWINDER.search(data):
        return {}
    return dict.fromkeys(with_return, "a return probe would end its exceptions: its unwinder has no symbols")


def _beginning(image: Image, symbol: Symbol, costs: CostModel) -> Iterator[UnwinderPlace]:
    yield from _first(image, symbol, costs, Moment.BEGINS)


def _caught(image: Image, symbol: Symbol, costs: CostModel) -> Iterator[UnwinderPlace]:
    """Where the return address is still at the stack pointer: it tells which frames are gone."""
    fit = []
    for instruction in _straight_start(image, symbol):
        fit.append(instruction)
        if REGISTER_SP in instruction.written:
            break
    yield from _cheapest(image, symbol, fit, costs, Moment.CAUGHT)


def _around(image: Image, symbol: Symbol, costs: CostModel) -> Iterator[UnwinderPlace]:
    yield from _first(image, symbol, costs, Moment.BEGINS)
    for line in ARCHITECTURE.lines_of(_code(image, symbol), symbol.address):
        if line.name == "ret" and (offset := image.file_offset_of(line.address)) is not None:
            yield UnwinderPlace(offset, Moment.ENDS)


def _around_with_return(image: Image, symbol: Symbol, costs: CostModel) -> Iterator[UnwinderPlace]:
    yield from _first(image, symbol, costs, Moment.BEGINS)
    starts = [i for i in _straight_start(image, symbol) if i.mnemonic not in ("nop", "endbr64")][:1]
    # Behind endbr64 the return address is still at the stack pointer, and a push is emulated.
    at = min([*starts, *ARCHITECTURE.decode(_code(image, symbol), symbol.address, 1)],
             key=lambda i: (NANOSECONDS[costs.cost_of(i.raw, i.address)], i.address), default=None)  # fmt: skip
    if at is not None and (offset := image.file_offset_of(at.address)) is not None:
        yield UnwinderPlace(offset, Moment.ENDS, at_return=True)


def _first(image: Image, symbol: Symbol, costs: CostModel, moment: Moment) -> Iterator[UnwinderPlace]:
    """Yield the cheapest of the instructions that each call executes before it does anything to the stack's frames."""
    yield from _cheapest(image, symbol, _straight_start(image, symbol), costs, moment)


def _cheapest(
    image: Image, symbol: Symbol, instructions: Iterable[Instruction], costs: CostModel, moment: Moment
) -> Iterator[UnwinderPlace]:
    fit = [i for i in instructions if not costs.refuses(i.raw)]
    best = min(fit, key=lambda i: (NANOSECONDS[costs.cost_of(i.raw, i.address)], i.address), default=None)
    offset = image.file_offset_of(symbol.address if best is None else best.address)
    if offset is not None:
        yield UnwinderPlace(offset, moment)


def _straight_start(image: Image, symbol: Symbol) -> Iterator[Instruction]:
    code = _code(image, symbol)
    flow = ARCHITECTURE.flow_of(code, symbol.address)
    for instruction in ARCHITECTURE.decode(code, symbol.address, _LONGEST_START):
        if any(symbol.address < target <= instruction.address for target in flow.targets):
            return
        yield instruction
        if instruction.name.startswith(("j", "call", "ret", "loop", "hlt", "ud")) or _changes_stack(instruction):
            return


def _changes_stack(instruction: Instruction) -> bool:
    """Tell whether the stack pointer is written other than by saving registers: it may be another stack's then."""
    return REGISTER_SP in instruction.written and instruction.name not in ("push", "sub", "endbr64")


def _code(image: Image, symbol: Symbol) -> bytes:
    offset = image.file_offset_of(symbol.address)
    return b"" if offset is None else bytes(image.data[offset : offset + (min(symbol.size, LARGEST_FUNCTION) or 16)])
