"""BeamAsm's images, by which Erlang tells gdb of functions and lines of a module, in a format of its own.

Source: erts/emulator/beam/jit/beam_jit_metadata.cpp of Erlang/OTP: struct debug_info, then for each function a struct
range_info, each with its struct line_info; names with a NUL stand behind the struct that they belong to.
"""

from __future__ import annotations

import struct

from tracer.jit.code_log import Place
from tracer.late_dataclasses import dataclass

_EMULATOR, _MODULE = 0, 1
_INFO = struct.Struct("<I4xQIIH")
_INFO_BYTES = 32
_RANGE = struct.Struct("<IIIH")
_RANGE_BYTES = 16
_LINE = struct.Struct("<IIH")
_LINE_BYTES = 12


@dataclass(frozen=True)
class BeamFunction:
    """Code from `start` to `end`; `name` is None where it is no longer there. `places` ascend by address."""

    start: int
    end: int
    name: str | None
    places: tuple[Place, ...]


def read_beam_image(data: bytes) -> tuple[BeamFunction, ...] | None:
    """Return the functions of a module, none for what tells of the emulator itself; None where it is something else."""
    try:
        if len(data) == _INFO_BYTES and struct.unpack_from("<I", data)[0] == _EMULATOR:
            return ()
        kind, base, count, size, name_bytes = _INFO.unpack_from(data)
        if kind != _MODULE:
            return None
        at, found = _INFO_BYTES + name_bytes, []
        for _ in range(count):
            start, end, lines, name_bytes = _RANGE.unpack_from(data, at)
            name = _text(data, at + _RANGE.size, name_bytes)
            at += _RANGE_BYTES + name_bytes
            places = []
            for _ in range(lines):
                place, line, name_bytes = _LINE.unpack_from(data, at)
                places.append((base + place, _text(data, at + _LINE.size, name_bytes), line))
                at += _LINE_BYTES + name_bytes
            if not start <= end <= size:
                return None
            if start < end:
                found.append(BeamFunction(base + start, base + end, name, tuple(sorted(places))))
        return tuple(found) if at == len(data) else None
    except (struct.error, ValueError):
        return None


def _text(data: bytes, at: int, size: int) -> str:
    """Return a text of so many bytes with its NUL. Raises ValueError."""
    text = data[at : at + size]
    if len(text) < size or text[-1:] != b"\0":
        raise ValueError("no text")
    return text[:-1].decode("utf-8", "replace")
