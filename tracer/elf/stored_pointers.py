"""The pointers that a binary's data hold once the loader has relocated them."""

from __future__ import annotations

import numpy as np

from tracer.elf.image import Image
from tracer.elf.imported_slots import SHT_RELA, relocations

_RELATIVE = 8
_WORD_BYTES = 8


def stored_pointer(image: Image, link_address: int) -> int | None:
    """Return the link address that the word at `link_address` points to; None where it has no pointer in the file.

    R_X86_64_RELATIVE has it in the relocation, and a program without relocations, or with those of SHT_RELR, in the
    word itself (System V ABI, AMD64 supplement, chapter 4; generic ABI, chapter 4, "Relative relocation table").
    """
    for section in image.sections:
        if section.type == SHT_RELA:
            rows = relocations(image, section)
            found = rows[(rows["type"] == _RELATIVE) & (rows["offset"] == np.uint64(link_address))]
            if len(found):
                return int(found["addend"][0])
    offset = image.file_offset_of(link_address)
    word = b"" if offset is None else bytes(image.data[offset : offset + _WORD_BYTES])
    return int.from_bytes(word, "little") or None if len(word) == _WORD_BYTES else None
