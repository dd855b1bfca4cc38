"""Use of what glibc rounds the sizes of blocks up to: which binaries may keep pointers there."""

from __future__ import annotations

from contextlib import suppress

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.elf.image import Image

_USABLE_SIZE = "malloc_usable_size"


def asks_for_usable_size(binaries: Binaries, id_: int) -> bool:
    """Tell whether a binary calls malloc_usable_size(3), or may look it up by name; of a static program, which has it
    with malloc, and of what is not known or cannot be read, that it may."""
    binary = binaries.generated.get(id_) or next((b for b in binaries.all[id_ - 1 : id_] if id_ > 0), None)
    if binary is not None and not binary.is_stale:
        with suppress(OSError, ValueError):
            return binary.names.tells(f"asks for {_USABLE_SIZE}", lambda: _asks(binary))
    return True


def _asks(binary: OpenBinary) -> bool:
    symbols = binary.symbols
    is_static = not binary.image.needed and (len(symbols) == 0 or bool(symbols.find(_USABLE_SIZE)))
    return is_static or symbols.lacks(_USABLE_SIZE) or (symbols.lacks("dlsym") and _names_it(binary.image))


def _names_it(image: Image) -> bool:
    constants = image.section(".rodata")
    return constants is None or f"{_USABLE_SIZE}\0".encode() in bytes(image.contents(constants))
