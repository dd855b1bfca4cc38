"""Numbers of variable length (DWARF 5, section 7.6), and what else DWARF's programs have for operands."""

from __future__ import annotations


def unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return the ULEB128 number at `at`, and where it ends.

    Raises IndexError where the bytes end first, ValueError where it needs more than 70 bits: a longer one is
    damage, and would cost quadratic time.
    """
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a LEB128 number is too long")


def signed(data: bytes, at: int) -> tuple[int, int]:
    """Return the SLEB128 number at `at`, and where it ends; raises as `unsigned` does."""
    start = at
    value, at = unsigned(data, at)
    if data[at - 1] & 0x40:
        value -= 1 << 7 * (at - start)
    return value, at


class Operands:
    """Reads operands out of a program, one after the other; each raises IndexError where the program ends first."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise IndexError("a program ends inside an operand")
        self.at += size
        return self.data[self.at - size : self.at]

    def unsigned(self) -> int:
        value, self.at = unsigned(self.data, self.at)
        return value

    def signed(self) -> int:
        value, self.at = signed(self.data, self.at)
        return value
