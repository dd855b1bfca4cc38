"""Text from outside, made fit to be shown: names of functions, files and types are the target's to choose."""

from __future__ import annotations

import re

from tracer.late_patterns import late_pattern

_HIDDEN = late_pattern(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Controls, ends of lines, what turns the direction of writing (Unicode TR 9), and what is in no character."""
_LONGEST = 300


def visible(text: str) -> str:
    """Return a text in which nothing commands a terminal, ends a line or turns what follows: \\xNN or \\uNNNN for each.

    A byte of a file's name that is no UTF-8 is its \\xNN.
    """
    return text if text.isprintable() else _HIDDEN.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    if 0xDC80 <= number <= 0xDCFF:  # surrogateescape (PEP 383)
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text that has been cut in its middle, if it is longer than a message can be."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}... ({len(text):,} characters) ...{text[-half:]}"
