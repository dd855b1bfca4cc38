"""Pointers that a binary's data hold once the loader has relocated them, and offsets of its thread-local storage."""

from __future__ import annotations

import numpy as np

from tracer.elf.image import PT_TLS, Image
from tracer.elf.imported_slots import SHT_RELA, relocations
from tracer.late_dataclasses import dataclass

_RELATIVE, _THREAD_OFFSET = 8, 18
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


@dataclass(frozen=True)
class StorageWord:
    """A word of a library that tells where its thread-local storage is: the word's link address; what is to be taken
    from it to have the offset of the storage from the thread pointer; and the size of the storage in bytes."""

    link_address: int
    addend: int
    size: int


def storage_word(image: Image) -> StorageWord | None:
    """Return one such word; None where the library takes its storage by other means, or has none.

    R_X86_64_TPOFF64 without a symbol (System V ABI, AMD64 supplement, chapter 4; Drepper, "ELF Handling For
    Thread-Local Storage", 4.4.6), as allocators have it, which cannot ask the loader for memory.
    """
    size = next((segment.memory_size for segment in image.segments if segment.type == PT_TLS), 0)
    for section in image.sections if size else ():
        if section.type == SHT_RELA:
            rows = relocations(image, section)
            rows = rows[(rows["type"] == _THREAD_OFFSET) & (rows["symbol"] == 0)]
            if len(rows):
                return StorageWord(int(rows["offset"][0]), int(rows["addend"][0]), size)
    return None
