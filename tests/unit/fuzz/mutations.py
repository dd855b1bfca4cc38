"""Damage, drawn from a seed: the same seed damages the same bytes in the same way."""

from __future__ import annotations

import random

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 47, 1 << 56, 1 << 62, (1 << 63) - 1, 1 << 63,
            (1 << 64) - 1)  # fmt: skip
_MOST_CHANGES = 8
_HEADERS = 4096


def mutated(data: bytes, seed: int) -> bytes:
    """Return the bytes with a few changes: bits, numbers that are the ends of ranges, cuts, repetitions, moves."""
    draw = random.Random(seed)
    out = bytearray(data)
    for _ in range(draw.randint(1, _MOST_CHANGES)):
        if not out:
            break
        at = _place(draw, len(out))
        match draw.randrange(8):
            case 0:
                out[at] ^= 1 << draw.randrange(8)
            case 1:
                out[at] = draw.randrange(256)
            case 2 | 3 | 4:
                size = draw.choice((1, 2, 4, 8))
                number = draw.choice(_NUMBERS) + draw.randint(-2, 2)
                out[at : at + size] = (number & (1 << 8 * size) - 1).to_bytes(size, "little")
            case 5:
                del out[at : at + draw.randint(1, 64)]
            case 6:
                out[at:at] = out[at : at + draw.randint(1, 64)]
            case 7:
                other = draw.randrange(len(out))
                out[at : at + 8] = out[other : other + 8]
    if draw.randrange(16) == 0:
        del out[draw.randrange(len(out) + 1) :]
    return bytes(out)


def _place(draw: random.Random, size: int) -> int:
    """Return where to change: near the beginning, where headers are, as often as anywhere."""
    return draw.randrange(min(size, _HEADERS)) if draw.randrange(2) else draw.randrange(size)


_WORDS = (b"*", b"?", b"{", b"}", b"\x1b[31m", b"\0", b"\n", b"\r", b"...", b"\xff\xfe", b"leak:", b"ref:", b"fun:",
          b"[[type]]", b'"', b"=", b",", b"9" * 400, b"\xe2\x80\xae", b"[" * 200, b"-", b"0x", b"e999")  # fmt: skip


def mutated_text(data: bytes, seed: int) -> bytes:
    """Return a text with changes of bytes, of lines, and with words that mean something in one of our languages."""
    draw = random.Random(seed)
    lines = (mutated(data, seed) if draw.randrange(2) else data).split(b"\n")
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines))
        match draw.randrange(4):
            case 0:
                lines[at:at] = lines[at : at + draw.randint(1, 3)] * draw.randint(1, 40)
            case 1:
                del lines[at : at + draw.randint(1, 3)]
                lines = lines or [b""]
            case _:
                where = draw.randint(0, len(lines[at]))
                word = draw.choice(_WORDS) * draw.choice((1, 1, 1, 30))
                lines[at] = lines[at][:where] + word + lines[at][where:]
    return b"\n".join(lines)
