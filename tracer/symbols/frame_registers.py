"""Registers by which the code of one binary finds its variables, and where in a frame they point.

Call frame information says by which register, and how far from it, the canonical frame address (CFA) is. Compilers that
describe variables from the stack pointer (LLVM's, where no frame pointer is kept: `DW_AT_frame_base` is that register)
mean what it is between a function's prologue and its end. While arguments of a call are pushed it is deeper, and their
DWARF does not say so (X86FrameLowering::getFrameIndexReference heeds no such pushes in variables' places).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from tracer.architecture.current import ARCHITECTURE
from tracer.cfi.unwind_table import UnwindTable, build_table, lookup
from tracer.elf.image import Image
from tracer.model.records import RuleKind

_STACK = ARCHITECTURE.stack_pointer
_REGISTERS = {RuleKind.STACK_POINTER: _STACK, RuleKind.FRAME_POINTER: ARCHITECTURE.frame_pointer}
_MOVES = ("add", "sub", "lea")
_LEAVES = ("call", "hlt", "int3", "j", "nop", "ret", "ud")
"""What begins so leaves the stack as it is, or another block follows, of any depth."""
_LARGEST = 1 << 20
_UNKNOWN = -1


class _Step(NamedTuple):
    """An instruction that changes how deep the stack is: bytes from the stack pointer to the CFA, before and after."""

    name: str
    operands: str
    before: int
    after: int


class FrameRegisters:
    """Looks into the code and the call frame information of one binary."""

    def __init__(self, image: Image | None) -> None:
        self._image = image
        self._depths: dict[tuple[int, int], int | None] = {}

    def at(self, address: int) -> tuple[int, int] | None:
        """Return a register, and where it points at a link address, in bytes from the CFA; None where the CFA is found
        in another way."""
        rule = lookup(self._table, address) if self._table is not None else None
        register = _REGISTERS.get(rule.kind) if rule is not None else None
        return (register, -rule.offset) if rule is not None and register is not None else None

    def in_body(self, address: int, function: tuple[int, int]) -> tuple[int, int] | None:
        """Return the stack pointer and where it points between the prologue of a function and its end, if `address` is
        there; None where that is not certain. `function`: its first address, and the one behind it."""
        depth, known = self._depth_of(function), self.at(address)
        is_there = depth is not None and known is not None and known[0] == _STACK and -known[1] >= depth
        return (_STACK, -depth) if depth is not None and is_there else None

    def _depth_of(self, function: tuple[int, int]) -> int | None:
        if function not in self._depths:
            self._depths[function] = _depth_after_prologue(list(self._steps(*function)))
        return self._depths[function]

    @cached_property
    def _table(self) -> UnwindTable | None:
        return build_table(self._image) if self._image is not None else None

    def _steps(self, start: int, end: int) -> Iterator[_Step]:
        offset = self._image.file_offset_of(start) if self._image is not None else None
        if self._image is None or offset is None or end - start > _LARGEST:
            return
        before, at = self._depth_at(start), start
        for line in ARCHITECTURE.lines_of(bytes(self._image.data[offset : offset + end - start]), start):
            at = line.end
            after = self._depth_at(at) if at < end else before
            if before != after and not line.name.startswith(_LEAVES):
                yield _Step(line.name, line.operands, before, after)
            before = after
        if at != end:  # what follows does not decode
            yield _Step("", "", before, _UNKNOWN)

    def _depth_at(self, address: int) -> int:
        known = self.at(address)
        return -known[1] if known is not None and known[0] == _STACK else _UNKNOWN


def _depth_after_prologue(steps: list[_Step]) -> int | None:
    """Return how deep the stack is once a function has made room for its variables; None where that is not certain.

    A prologue saves registers, each by a push, then makes room in one step. Pushes of arguments begin below that, and
    behind the call the stack is as deep again: by that they differ from a prologue that makes room in several steps.
    """
    deeper = [step for step in steps if step.after > step.before]
    if any(_UNKNOWN in step[2:] for step in steps) or not all(map(_changes_stack, deeper)):
        return None
    makes_room = [step for step in deeper if not _saves_register(step)]
    if not makes_room:
        return None
    first = min(makes_room, key=lambda step: step.before)
    if sum(step.before < first.after for step in makes_room) > 1:
        return None
    if any(first.before < step.after and step.before < first.after for step in deeper if step is not first):
        return None
    is_left = any(step.before >= first.after for step in deeper)
    comes_back = any(step.before > step.after == first.after for step in steps)
    return first.after if comes_back or not is_left else None


def _changes_stack(step: _Step) -> bool:
    first = step.operands.partition(",")[0]
    return step.name == "push" or (step.name in _MOVES and ARCHITECTURE.register_of(first) == _STACK)


def _saves_register(step: _Step) -> bool:
    return step.name == "push" and ARCHITECTURE.register_of(step.operands) in ARCHITECTURE.preserved_registers
