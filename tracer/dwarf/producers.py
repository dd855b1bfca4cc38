"""Producers of code, as DWARF names them with their options: whether code may have been folded.

GCC makes one function of two whose code is the same (-fipa-icf, from -O2 on), and of two that differ in nothing but
which of such two they call. Within a function it makes one of two ways that end the same (-ftree-tail-merge,
-fcrossjumping), and says of one of the two only that something was inlined there. So does clang, which gives what it
makes of two the line 0, but from 17 on their line, if they are on the same (DILocation::getMergedLocation); with what
options it ran it does not say. Documents: DWARF 5, section 3.1.1
(DW_AT_producer); GCC's manual, of these options and of -grecord-gcc-switches.
"""

from __future__ import annotations

from tracer.elf.image import Image
from tracer.late_patterns import late_pattern

_STRINGS = (".debug_str", ".debug_line_str")
_GNU = late_pattern(rb"(?:^|\0)(GNU [^\0]*)")
_CLANG = late_pattern(rb"(?:^|\0)[^\0]*clang version (\d+)")
_FIRST_FOLDING_CLANG = 17
_LEVEL = late_pattern(rb" -O(\S*)")
_UNFOLDED = (b"", b"0", b"1", b"g")
_FOLDING = tuple(late_pattern(rb" -f(no-)?" + name + rb"(?![\w-])") for name in (
    b"ipa-icf(?:-functions)?", b"tree-tail-merge", b"crossjumping",
))  # fmt: skip


def may_be_folded(image: Image | None) -> bool:
    """Tell whether a compiler may have made one of several functions or ways; yes where nothing says with what options
    it ran.

    `image`: the file with DWARF.
    """
    sections = [image.section(name) for name in _STRINGS] if image is not None else []
    texts = [bytes(image.contents(section)) for section in sections if section is not None and image is not None]
    by_gcc = [match[1] for text in texts for match in _GNU.finditer(text)]
    by_clang = [int(match[1]) >= _FIRST_FOLDING_CLANG for text in texts for match in _CLANG.finditer(text)]
    return not (by_gcc or by_clang) or any(by_clang) or any(map(_folds, by_gcc))


def _folds(producer: bytes) -> bool:
    """Tell it of one run of GCC. Assemblers fold nothing."""
    if producer.startswith(b"GNU AS"):
        return False
    if b" -m" not in producer:  # its options were not recorded
        return True
    levels = _LEVEL.findall(producer)
    by_default = bool(levels) and levels[-1] not in _UNFOLDED
    asked = [option.findall(producer)[-1:] for option in _FOLDING]
    return any(not last[0] if last else by_default for last in asked)
