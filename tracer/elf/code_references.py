"""References of a binary's code and data to functions of its own, without a disassembler."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from tracer.elf.image import ET_EXEC, PF_X, PT_LOAD, Image, Segment
from tracer.model.distinct_values import is_any_of

_DISPLACEMENT = 4
_AT_ONCE = 1 << 20
_SHORT = 0x80
_SHORT_JUMPS = frozenset((0xEB, *range(0x70, 0x80)))
"""JMP rel8 and Jcc rel8."""


def refers_to(image: Image, link_addresses: Iterable[int]) -> bool:
    """Tell whether anything in a binary may call, jump to or load one of some functions: their link addresses.

    Any bytes of code that would be a displacement to one from the end of an instruction, of four bytes or, behind a
    short jump's opcode, one (Intel SDM, volume 2, 2.2.1.6, JMP, Jcc), or its address in a program that is not
    position-independent; and any eight bytes of data that hold it, as the addend of a relocation or a symbol for the
    loader does. That is too much rather than too little.
    """
    targets = sorted(link_addresses)
    return any(_segment_refers_to(image, segment, targets) for segment in image.segments if segment.type == PT_LOAD)


def _segment_refers_to(image: Image, segment: Segment, targets: Sequence[int]) -> bool:
    if not targets:
        return False
    data = bytes(image.data[segment.file_offset : segment.file_offset + segment.file_size])
    if not segment.flags & PF_X:
        return any(struct.pack("<Q", target) in data for target in targets)
    if image.type == ET_EXEC and any(struct.pack("<I", target) in data for target in targets if target < 1 << 32):
        return True
    near = any(_is_jumped_to(data, target - segment.link_address) for target in targets)
    return near or _is_displaced_to(data, segment.link_address, targets)


def _is_jumped_to(code: bytes, target: int) -> bool:
    places = range(max(1, target - _SHORT), min(len(code), target + _SHORT))
    return any(
        code[at - 1] in _SHORT_JUMPS and at + 1 + int.from_bytes(code[at : at + 1], "little", signed=True) == target
        for at in places
    )


def _is_displaced_to(code: bytes, link_address: int, targets: Sequence[int]) -> bool:
    for first in range(0, len(code), _AT_ONCE):
        size = min(_AT_ONCE + _DISPLACEMENT - 1, len(code) - first)
        for shift in range(min(_DISPLACEMENT, size - _DISPLACEMENT + 1)):
            count = (size - shift) // _DISPLACEMENT
            values = np.frombuffer(code, np.int32, count, first + shift).astype(np.int64)
            ends = link_address + first + shift + _DISPLACEMENT * np.arange(1, count + 1, dtype=np.int64)
            if is_any_of(values + ends, targets).any():
                return True
    return False
