"""Programs that run another program's code by translating it: valgrind's tools and QEMU's user mode.

They read the code as data, breakpoints included, and what they make of a breakpoint kills the program. A library that
the translated program maps is the same file as everybody's, so that probes must be kept out of the whole process.
"""

from __future__ import annotations

from pathlib import PurePath

from tracer.elf.image import ET_EXEC, PT_LOAD, Image

_VALGRIND_ADDRESS = 0x58000000
"""Where valgrind links its tools (valt_load_address_pri in its configure.ac), so that programs keep their places."""
_VALGRIND_WORD, _QEMU_WORD = b"VALGRIND_LAUNCHER", b"QEMU_LD_PREFIX"
"""Variables that only they read."""
_QEMU_NAME = "qemu-"
_LAUNCHERS = ("valgrind", "valgrind.bin")
"""A script on some systems, and the program that executes a tool."""
_PART = 1 << 20


def starts_translator(path: str) -> bool:
    """Tell whether a command does nothing but become a program that translates another."""
    return PurePath(path).name in _LAUNCHERS


def is_translator(image: Image, path: str) -> bool:
    """Tell whether a program translates another, or only executes one that does.

    Cheap for nearly all: few are read beyond their headers.
    """
    name = PurePath(path).name
    if name.startswith(_QEMU_NAME):
        return _mentions(image, _QEMU_WORD)
    if name in _LAUNCHERS:
        return _mentions(image, _VALGRIND_WORD)
    loaded = [segment.link_address for segment in image.segments if segment.type == PT_LOAD]
    return image.type == ET_EXEC and loaded[:1] == [_VALGRIND_ADDRESS] and _mentions(image, _VALGRIND_WORD)


def _mentions(image: Image, word: bytes) -> bool:
    return any(
        word in bytes(image.data[at : at + _PART + len(word)]) for at in range(0, len(image.data), _PART)
    )
