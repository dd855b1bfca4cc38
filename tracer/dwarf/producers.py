"""Producers of code, as DWARF names them with their options: whether functions may have been folded.

GCC makes one function of two whose code is the same (-fipa-icf, from -O2 on), and of two that differ in nothing but
which of such two they call. Documents: DWARF 5, section 3.1.1 (DW_AT_producer); GCC's manual, -fipa-icf and
-grecord-gcc-switches.
"""

from __future__ import annotations

import re

from tracer.elf.image import Image

_STRINGS = (".debug_str", ".debug_line_str")
_GNU = re.compile(rb"(?:^|\0)(GNU [^\0]*)")
_OTHER = re.compile(rb"(?:^|\0)[^\0]*clang version ")
_LEVEL = re.compile(rb" -O(\S*)")
_UNFOLDED = (b"", b"0", b"1", b"g")


def may_be_folded(image: Image | None) -> bool:
    """Tell whether a compiler may have made one function of several; yes where nothing says with what options it ran.

    `image`: the file with DWARF.
    """
    sections = [image.section(name) for name in _STRINGS] if image is not None else []
    texts = [bytes(image.contents(section)) for section in sections if section is not None and image is not None]
    by_gcc = [match[1] for text in texts for match in _GNU.finditer(text)]
    if not by_gcc:
        return not any(_OTHER.search(text) for text in texts)
    return any(map(_folds, by_gcc))


def _folds(producer: bytes) -> bool:
    """Tell it of one run of GCC. Assemblers fold nothing."""
    if producer.startswith(b"GNU AS"):
        return False
    if b" -m" not in producer or b" -fipa-icf" in producer:  # its options were not recorded, or it was asked to
        return True
    if b" -fno-ipa-icf" in producer:
        return False
    levels = _LEVEL.findall(producer)
    return bool(levels) and levels[-1] not in _UNFOLDED
