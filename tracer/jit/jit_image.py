"""An ELF image that a JIT keeps in memory and tells gdb of: its code, its unwind table, and a file for symbolizers.

GDB manual, "JIT Compilation Interface". The base rule for each ELF type is gdb's: the section headers hold run-time
addresses. An executable or library whose headers do not is taken to stand where the image itself was registered.
"""

from __future__ import annotations

from collections.abc import Callable

from tracer.cfi.call_frames import FrameSource
from tracer.cfi.unwind_table import UnwindTable, table_of_sources
from tracer.elf.image import ET_REL, PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, Image, Section, Segment
from tracer.elf.symbol_table import read_symbol_table
from tracer.errors import UnsuitableTarget
from tracer.jit.code_extents import joined
from tracer.jit.relocation import relocated
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Range, ReadMemory

_END_OF_USER_SPACE = 1 << 47
_PADDING = 15
"""So much between two sections of an image holds no other image's code."""
_LARGEST_FRAMES = 1 << 26
_LARGEST_CODE = 1 << 30
_ADDRESS_MASK = (1 << 64) - 1

IsMapped = Callable[[int, int], bool]
"""Tells whether the process has memory from start to end."""


@dataclass(frozen=True)
class JitImage:
    """`code`: ranges of the process, ascending. `bias`: address minus link address. `image`: linked, as a file is."""

    name: str
    image: Image
    code: tuple[Range, ...]
    bias: int
    table: UnwindTable | None


def read_jit_image(data: bytes, address: int, read_memory: ReadMemory, is_mapped: IsMapped) -> JitImage | None:
    """Make sense of an image that was registered at `address`; None for one that is data only, as numba's first is.

    Raises UnsuitableTarget with what is wrong with it.
    """
    image = Image(data, "[jit]")
    if _is_empty(image):
        return None
    distrusted: frozenset[str] = frozenset()
    is_object = image.type == ET_REL
    if is_object:
        moved, distrusted = relocated(image)
        image = Image(moved, "[jit]")
    linked = _code(image)
    bias = _bias(image, linked, address, is_mapped)
    code = tuple((start + bias, end + bias) for start, end in linked)
    sources = _frame_sources(image, bias, distrusted, read_memory, from_image=is_object)
    segments = [Segment(PT_LOAD, PF_X, 0, start, end - start, end - start) for start, end in linked]
    return JitImage(_name(image, linked[0][0], code[0][0]), image, code, bias, table_of_sources(sources, segments))


def _is_empty(image: Image) -> bool:
    wanted = SHF_ALLOC | SHF_EXECINSTR
    sizes = [section.size for section in image.sections if section.flags & wanted == wanted]
    return bool(sizes) and not any(sizes)


def _code(image: Image) -> list[Range]:
    """Return the link addresses of executable sections, or else segments; those that were not loaded left out."""
    wanted = SHF_ALLOC | SHF_EXECINSTR
    found = [(s.link_address, s.link_address + s.size) for s in image.sections if s.flags & wanted == wanted]
    if not found:
        loaded = (s for s in image.segments if s.type == PT_LOAD and s.flags & PF_X)
        found = [(s.link_address, s.link_address + s.memory_size) for s in loaded]
    merged = joined(sorted(r for r in found if 0 < r[0] < r[1] <= _END_OF_USER_SPACE), _PADDING)
    if not merged:
        raise UnsuitableTarget("it has no code at an address")
    if sum(end - start for start, end in merged) > _LARGEST_CODE:
        raise UnsuitableTarget("it has more code than an image can")
    return merged


def _bias(image: Image, code: list[Range], address: int, is_mapped: IsMapped) -> int:
    if all(is_mapped(start, end) for start, end in code):
        return 0
    loaded = [s.link_address - s.file_offset for s in image.segments if s.type == PT_LOAD]
    bias = address - min(loaded) if loaded else 0
    if not loaded or not all(is_mapped(start + bias, end + bias) for start, end in code):
        raise UnsuitableTarget("its code is at no address of the process")
    return bias


def _frame_sources(
    image: Image, bias: int, distrusted: frozenset[str], read_memory: ReadMemory, *, from_image: bool
) -> list[FrameSource]:
    """Return the call frames. Those of an object file with relocations are taken from the image, since a JIT may
    register before it relocates what it has loaded; all others from the process."""
    section, found = image.section(".eh_frame"), []
    text = next((s.link_address for s in image.sections if s.name == ".text"), None)
    if section is not None and section.link_address and section.name not in distrusted:
        data = bytes(image.contents(section)) if from_image and _was_relocated(image, section) else None
        if data is None and section.size <= _LARGEST_FRAMES:
            data = read_memory(section.link_address + bias, section.size)
        found.append(FrameSource(data or b"", section.link_address, text=text))
    debug = image.section(".debug_frame")
    if debug is not None and debug.name not in distrusted:
        found.append(FrameSource(image.contents(debug), 0, debug=True, text=text))
    return found


def _was_relocated(image: Image, section: Section) -> bool:
    return any(s.name == f".rela{section.name}" for s in image.sections)


def _name(image: Image, link_address: int, address: int) -> str:
    """Name it for the function that its code begins with, or else for where it is."""
    first = read_symbol_table(image).covering(link_address)
    return f"[jit] {first.name if first else f'{address:#x}'}"
