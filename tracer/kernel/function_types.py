"""The types of a program's functions, as BTF: the kernel wants them of each program that has more than one function.

Format: Documentation/bpf/btf.rst. BCC's own BTF has no types for functions that were linked behind a program.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

_MAGIC, _VERSION, _HEADER_BYTES = 0xEB9F, 1, 24
_INT, _POINTER, _FUNCTION, _PROTOTYPE = 1, 2, 12, 13
_SIGNED_32_BITS, _64_BITS = 1 << 24 | 32, 64
_STATIC, _GLOBAL = 0, 1
_FIRST_FUNCTION = 6
"""Type id of the first function; those before are what functions take and return."""


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def _type(name: int, kind: int, count: int, size_or_type: int, *extra: int) -> bytes:
    return struct.pack(f"<III{len(extra)}I", name, kind << 24 | count, size_or_type, *extra)


def function_types(names: Sequence[str]) -> bytes:
    """Return a BTF blob: a program that takes its context, and functions that take a turn's number and a context."""
    strings = _Strings()
    context, index = strings.add("context"), strings.add("index")
    types = [
        _type(strings.add("int"), _INT, 0, 4, _SIGNED_32_BITS),
        _type(strings.add("u64"), _INT, 0, 8, _64_BITS),
        _type(0, _POINTER, 0, 0),
        _type(0, _PROTOTYPE, 1, 1, context, 3),
        _type(0, _PROTOTYPE, 2, 1, index, 2, context, 3),
    ]
    for number, name in enumerate(names):
        linkage, prototype = (_STATIC, 5) if number else (_GLOBAL, 4)
        types.append(_type(strings.add(name), _FUNCTION, linkage, prototype))
    body = b"".join(types)
    header = struct.pack(
        "<HBBIIIII", _MAGIC, _VERSION, 0, _HEADER_BYTES, 0, len(body), len(body), len(strings.data)
    )  # fmt: skip
    return header + body + bytes(strings.data)


def function_records(starts: Sequence[int]) -> bytes:
    """Return a `struct bpf_func_info` for each function: its first instruction and its type in `function_types`."""
    return b"".join(struct.pack("<II", start, _FIRST_FUNCTION + number) for number, start in enumerate(starts))
