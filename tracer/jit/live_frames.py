"""Call frames that a program registers with its C++ runtime while it runs: `__register_frame` of libgcc and libunwind.

libgcc, unwind-dw2-fde.c: the argument is where an .eh_frame begins, which a record of no length ends. libunwind's
(src/UnwindLevel1-gcc-ext.c) is given each function's record (FDE) by itself.
"""

from __future__ import annotations

import struct

import numpy as np

from tracer.cfi.call_frames import CallFrames, FrameSource, decode
from tracer.cfi.unwind_table import MAX_PADDING_BYTES, UnwindTable, table_of_frames
from tracer.errors import UnsuitableTarget
from tracer.jit.code_extents import joined
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Range, ReadMemory
from tracer.model.records import RuleKind

_AT_ONCE = 1 << 16
_LARGEST = 1 << 26
_LARGEST_CODE = 1 << 28
_MOST_CODE = 1 << 30
_END_OF_USER_SPACE = 1 << 47
_NUMBER = struct.Struct("<I")
_PAIR = struct.Struct("<II")
_64_BIT = 0xFFFFFFFF
_NO_RULES = (RuleKind.NONE, RuleKind.UNSUPPORTED)
"""All that LuaJIT's tables say: they only name who handles an exception."""



@dataclass(frozen=True, eq=False)
class LiveFrames:
    """`code`: ranges of the process, ascending. `data` is what was read; link addresses in `table` are addresses."""

    data: bytes
    code: tuple[Range, ...]
    table: UnwindTable


def read_live_frames(address: int, read: ReadMemory) -> LiveFrames | None:
    """Read what was registered at an address; None where it describes nothing.

    Raises UnsuitableTarget with what is wrong with it.
    """
    reader = _Memory(address, read)
    length, common = _PAIR.unpack(reader.take(0, _PAIR.size)) if reader.number(0) else (0, 0)
    if not length:
        return None
    if common:
        data, address = _one_function(address, length, common, read)
    else:
        data = _section(reader)
    frames = decode(FrameSource(data, address, ends_at_zero=not common))
    code, table = _code(frames), table_of_frames(frames)
    if table is None or not np.any(~np.isin(table.rules["kind"], _NO_RULES)):
        return None
    return LiveFrames(data, code, table)


class _Memory:
    """Memory from an address on, read as far as it is asked for."""

    def __init__(self, address: int, read: ReadMemory) -> None:
        self._address, self._read, self._data = address, read, bytearray()

    def take(self, at: int, size: int) -> bytes:
        while len(self._data) < at + size:
            more = self._read(self._address + len(self._data), _AT_ONCE)
            if not more:
                raise UnsuitableTarget("its call frames could not be read")
            self._data += more
        return bytes(self._data[at : at + size])

    def number(self, at: int) -> int:
        return int(_NUMBER.unpack(self.take(at, _NUMBER.size))[0])


def _section(memory: _Memory) -> bytes:
    """Return all records up to the one of no length."""
    at = 0
    while length := memory.number(at):
        at += _NUMBER.size + length
        if length == _64_BIT or at > _LARGEST:
            raise UnsuitableTarget("its call frames have no end")
    return memory.take(0, at + _NUMBER.size)


def _one_function(address: int, length: int, to_common: int, read: ReadMemory) -> tuple[bytes, int]:
    """Return a function's record behind its common one (CIE), and the address of that; what is between is blanked."""
    common_at = address + _NUMBER.size - to_common
    between = address - common_at
    if length > _LARGEST or between < _PAIR.size or between > _LARGEST:
        raise UnsuitableTarget("its call frames are malformed")
    common = _Memory(common_at, read)
    size = _NUMBER.size + common.number(0)
    if size > between:
        raise UnsuitableTarget("its call frames are malformed")
    gap = between - size
    blank = _PAIR.pack(gap - _NUMBER.size, 0).ljust(gap, b"\0") if gap >= _PAIR.size else bytes(gap)
    return common.take(0, size) + blank + _Memory(address, read).take(0, _NUMBER.size + length), common_at


def _code(frames: CallFrames) -> tuple[Range, ...]:
    """Return the ranges of functions; those with no more than padding between them are one."""
    order = np.argsort(frames.starts, kind="stable")
    ranges = list(zip(frames.starts[order].tolist(), frames.ends[order].tolist(), strict=True))
    if any(not 0 < start < end <= _END_OF_USER_SPACE or end - start > _LARGEST_CODE for start, end in ranges):
        raise UnsuitableTarget("its call frames are of impossible code")
    merged = joined(ranges, MAX_PADDING_BYTES)
    if sum(end - start for start, end in merged) > _MOST_CODE:
        raise UnsuitableTarget("its call frames are of impossible code")
    return tuple(merged)
