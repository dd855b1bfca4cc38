"""Call frame information: the records of .eh_frame and .debug_frame.

DWARF 5, section 6.4.1; LSB Core 5.0, "Exception Frames", for .eh_frame and the pointer encodings. Functions
of a binary repeat each other's programs, so each distinct one is run once.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from tracer.cfi.rows import RETURN_ADDRESS, UNSET, CfiRows, State
from tracer.dwarf import leb128
from tracer.late_dataclasses import dataclass

_MAX_ADDRESS = 1 << 56
_MASK = (1 << 64) - 1
_PAIRS = {
    0x00: "<QQ", 0x02: "<HH", 0x03: "<II", 0x04: "<QQ",
    0x08: "<qQ", 0x0A: "<hH", 0x0B: "<iI", 0x0C: "<qQ",
}  # fmt: skip
_NUMBER = struct.Struct("<I")
_LONG_NUMBER = struct.Struct("<Q")


@dataclass(frozen=True)
class FrameSource:
    """Bytes of call frame information and what its encodings refer to.

    `address` is the address of `data`. `debug` says that it is laid out as .debug_frame; `ends_at_zero` that a record
    of no length is its end, as in memory, where the size is unknown. `text` and `table` are the bases
    of the encodings that are relative to them, None where there is none.
    """

    data: bytes | memoryview
    address: int
    debug: bool = False
    ends_at_zero: bool = False
    text: int | None = None
    table: int | None = None


@dataclass(frozen=True)
class CallFrames:
    """The functions of a binary and the programs that describe them.

    Equally long, in the order of the records: `starts` and `ends` (int64, addresses), `programs` (uint32, numbers of
    `rows`' programs; 0 is unreadable).
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    programs: NDArray[np.uint32]
    rows: CfiRows


@dataclass(frozen=True)
class Fde:
    """A function's range and the instructions that describe its frame: those of its CIE, then its own."""

    start: int
    end: int
    common: bytes
    instructions: bytes
    code_factor: int
    data_factor: int
    signal: bool


@dataclass(frozen=True)
class _Cie:
    """A common information entry (CIE)."""

    instructions: bytes
    pair: struct.Struct
    base: int
    relative: bool
    augmented: bool
    signal: bool
    code_factor: int
    data_factor: int
    initial: State
    known: dict[bytes, int] = field(default_factory=dict)


def decode(source: FrameSource, rows: CfiRows | None = None) -> CallFrames:
    """Decode all functions of `source`; never raises. New programs are added to `rows`.

    A function whose program is damaged or not understood keeps its range and has program 0; one whose common
    entry or range is, is left out.
    """
    reader = _Reader(source, rows or CfiRows())
    reader.read()
    return CallFrames(
        np.array(reader.starts, np.int64),
        np.array(reader.ends, np.int64),
        np.array(reader.programs, np.uint32),
        reader.rows,
    )


def read_programs(source: FrameSource) -> list[Fde]:
    """Return the instructions of all functions of `source`, not run, in the order of the records; never raises."""
    reader = ProgramReader(source)
    reader.read()
    return reader.found


class _Reader:
    def __init__(self, source: FrameSource, rows: CfiRows) -> None:
        self._source = source
        self._data = bytes(source.data)
        self._commons: dict[int, _Cie | None] = {}
        self.starts, self.ends, self.programs = array("q"), array("q"), array("I")
        self.rows = rows

    def read(self) -> None:
        data, debug, size = self._data, self._source.debug, len(self._data)
        at = 0
        while at + 4 <= size:
            length = _NUMBER.unpack_from(data, at)[0]
            body, pointer = at + 4, _NUMBER
            if length == 0:
                if self._source.ends_at_zero:
                    return
                at = body
                continue
            if length == 0xFFFFFFFF:  # 64-bit DWARF; .eh_frame keeps a short CIE pointer there
                if at + 12 > size:
                    return
                length, body = _LONG_NUMBER.unpack_from(data, body)[0], at + 12
                pointer = _LONG_NUMBER if debug else _NUMBER
            end = body + length
            if end > size:
                return  # the next record cannot be found
            if length >= pointer.size:
                self._record(body, end, pointer)
            at = end

    def _record(self, body: int, end: int, pointer: struct.Struct) -> None:
        number: int = pointer.unpack_from(self._data, body)[0]
        if number == (_mask(pointer) if self._source.debug else 0):
            return  # a CIE is read when a function needs it
        offset = number if self._source.debug else body - number
        try:
            common = self._commons[offset]
        except KeyError:
            common = self._commons[offset] = self._common(offset)
        if common is not None:
            self._function(common, body + pointer.size, end)

    def _function(self, common: _Cie, at: int, end: int) -> None:
        data, pair = self._data, common.pair
        program_at = at + pair.size
        if program_at > end:
            return
        start, length = pair.unpack_from(data, at)
        if length == 0 or (start == 0 and common.base == 0):  # the linker removed the function
            return
        start += common.base
        if common.relative:
            start += self._source.address + at
        start &= _MASK
        if start + length > _MAX_ADDRESS:
            return
        if common.augmented:
            try:
                size, program_at = leb128.unsigned(data, program_at)
            except (IndexError, ValueError):
                return
            program_at += size
        self._keep(common, start, start + length, data[program_at:end] if program_at <= end else None)

    def _keep(self, common: _Cie, start: int, end: int, program: bytes | None) -> None:
        """Keep a function; `program` is None where its record is damaged."""
        number = 0 if program is None else common.known.get(program)
        if number is None and program is not None:
            number = common.known[program] = self.rows.add(
                program, common.code_factor, common.data_factor, common.initial, common.signal
            )
        self.starts.append(start)
        self.ends.append(end)
        self.programs.append(number or 0)

    def _common(self, offset: int) -> _Cie | None:
        """Read the CIE at an offset; None where there is none, or one that is damaged or not understood."""
        try:
            return self._parse_common(offset)
        except (IndexError, ValueError, struct.error):
            return None

    def _parse_common(self, offset: int) -> _Cie | None:
        data, debug = self._data, self._source.debug
        if not 0 <= offset <= len(data) - 4:
            return None
        length, at, pointer = _NUMBER.unpack_from(data, offset)[0], offset + 4, _NUMBER
        if length == 0xFFFFFFFF:
            length, at = _LONG_NUMBER.unpack_from(data, at)[0], at + 8
            pointer = _LONG_NUMBER if debug else _NUMBER
        end = at + length
        if end > len(data) or pointer.unpack_from(data, at)[0] != (_mask(pointer) if debug else 0):
            return None
        at += pointer.size
        version, at = data[at], at + 1
        name_end = data.index(0, at, end)
        augmentation, at = data[at:name_end], name_end + 1
        if version == 4:  # sizes of an address and of a segment selector
            if data[at : at + 2] != b"\x08\x00":
                return None
            at += 2
        code_factor, at = leb128.unsigned(data, at)
        data_factor, at = leb128.signed(data, at)
        register, at = (data[at], at + 1) if version == 1 else leb128.unsigned(data, at)
        if version not in (1, 3, 4) or register != RETURN_ADDRESS or not 1 <= code_factor <= 16:
            return None
        encoding = 0
        if augmentation[:1] == b"z":
            size, at = leb128.unsigned(data, at)
            encoding = _pointer_encoding(augmentation[1:], data[at : at + size])
            at += size
        elif augmentation not in (b"", b"S"):
            return None
        base = {0x00: 0, 0x10: 0, 0x20: self._source.text, 0x30: self._source.table}.get(encoding & 0xF0)
        pair = _PAIRS.get(encoding & 0x0F)
        if base is None or pair is None or at > end:
            return None
        signal = b"S" in augmentation
        number = self.rows.add(data[at:end], code_factor, data_factor, UNSET, signal)
        if number == 0:
            return None
        return _Cie(
            data[at:end], struct.Struct(pair), base, encoding & 0xF0 == 0x10, augmentation[:1] == b"z", signal,
            code_factor, data_factor, self.rows.last_state(number),
        )  # fmt: skip


class ProgramReader(_Reader):
    """Reads the instructions of functions, and does not run them."""

    def __init__(self, source: FrameSource) -> None:
        super().__init__(source, CfiRows())
        self.found: list[Fde] = []

    def at(self, address: int) -> Fde | None:
        """Return the function whose record is at an address; None where it is damaged, or there is none. Records in
        the format of 64-bit DWARF are not read: no linker makes them."""
        at = address - self._source.address
        if not 0 <= at <= len(self._data) - 8:
            return None
        length: int = _NUMBER.unpack_from(self._data, at)[0]
        if length < _NUMBER.size or at + 4 + length > len(self._data):
            return None
        self.found.clear()
        self._record(at + 4, at + 4 + length, _NUMBER)
        return self.found[0] if self.found else None

    def _keep(self, common: _Cie, start: int, end: int, program: bytes | None) -> None:
        if program is not None:
            self.found.append(
                Fde(
                    start, end, common.instructions, program, common.code_factor, common.data_factor, common.signal
                )
            )


def _mask(pointer: struct.Struct) -> int:
    """Return what marks a CIE in .debug_frame."""
    return (1 << 8 * pointer.size) - 1


def _pointer_encoding(letters: bytes, data: bytes) -> int:
    """Return how a CIE's functions encode addresses (letter R of its augmentation)."""
    encoding = at = 0
    for letter in letters:
        if letter == ord("R"):
            encoding, at = data[at], at + 1
        elif letter == ord("P"):  # the personality routine, of which only the size matters
            form, at = data[at], at + 1
            if form & 0x70 == 0x50 or form & 0x0F not in _PAIRS:
                raise ValueError("the personality routine's encoding is not understood")
            at += struct.calcsize(_PAIRS[form & 0x0F]) // 2
        elif letter == ord("L"):
            at += 1
        elif letter != ord("S"):
            raise ValueError("a letter of the augmentation is not understood")
    return encoding
