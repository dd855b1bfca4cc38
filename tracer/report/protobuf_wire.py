"""Protocol Buffers' wire format, as far as a profile needs it.

Source: the "Encoding" chapter of the Protocol Buffers documentation. Fields of value 0 are left out, as proto3 has it.
"""

from __future__ import annotations

from collections.abc import Iterable

_VARINT, _LENGTH_DELIMITED = 0, 2
_MASK = (1 << 64) - 1


def varint(number: int) -> bytes:
    """Encode an int64 or uint64: seven bits a byte, the lowest first; negative ones as two's complement."""
    number &= _MASK
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class Message:
    """The bytes of one message, field by field."""

    def __init__(self) -> None:
        self.data = bytearray()

    def number(self, field: int, value: int) -> None:
        if value:
            self.data += varint(field << 3 | _VARINT) + varint(value)

    def numbers(self, field: int, values: Iterable[int]) -> None:
        """Add a packed repeated field."""
        self.block(field, b"".join(map(varint, values)))

    def block(self, field: int, data: bytes | bytearray) -> None:
        """Add a string, bytes, or the bytes of a message; those of a repeated field even where they are empty."""
        self.data += varint(field << 3 | _LENGTH_DELIMITED) + varint(len(data)) + data
