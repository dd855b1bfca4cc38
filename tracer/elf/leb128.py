"""Numbers of variable length (DWARF 5, section 7.6)."""

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
