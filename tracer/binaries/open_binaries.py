"""The binaries of the target: each opened once, when it is first seen, and kept open to the end.

A file that is later unlinked, replaced by an upgrade, or vanishes with its container can thus still be read. One that
is rewritten in place is another binary from then on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from tracer.binaries.file_version import FileVersion, is_settled, version_of
from tracer.binaries.known_names import KnownNames
from tracer.binaries.open_files import EXHAUSTED
from tracer.elf.image import PF_X, PT_LOAD, Image, Segment
from tracer.elf.symbol_table import STT_FUNC, SymbolTable, read_symbol_table
from tracer.elf.translator import is_translator
from tracer.errors import RefleakError
from tracer.files.plain_file import open_plain
from tracer.late_dataclasses import dataclass
from tracer.model.operations import Placement
from tracer.model.raw_calls import RawCalls
from tracer.model.snapshot import Binary, Loss
from tracer.model.unwinding import UnwinderPlace
from tracer.procfs.maps import MapsEntry

END_OF_IDS = 0xE000
VDSO = "[vdso]"
_LONGEST_INSTRUCTION = 15
_MOST_IMAGES = 64
_OPERATORS = ("_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")
_RUNTIMES = ("libstdc++.so*", "libc++.so*", "libc++abi.so*", "libjemalloc*.so*", "libtcmalloc*.so*", "libmimalloc*.so*")
"""Libraries whose C++ operators do what the standard says of them and no more."""


@dataclass
class OpenBinary:
    """A binary with its open file and what was found in it."""

    id: int
    path: str
    fd: int
    image: Image
    deleted: bool = False
    placements: list[tuple[int, Placement]] = field(default_factory=list)
    """With the index of each site."""
    unwinders: Sequence[UnwinderPlace] = ()
    raw_calls: RawCalls = RawCalls()
    """Where children begin that it makes past libc's fork and vfork, and where it ends past libc's _exit."""
    interposes: bool | None = None
    """Whether a loader finds its malloc before the C library's (interposers.py); None: not known yet."""
    is_late: bool = False
    """That was found when it had been looked at as another library."""
    start_up: dict[tuple[str, ...], list[OpenBinary]] = field(default_factory=dict)
    """Of a program: what its loader maps before it starts, by what that depends on."""
    has_table: bool = False
    first_page: int = 0
    page_count: int = 0
    first_link_page: int = 0
    kind: str = "native"
    """"jit": no file, but an image that a JIT made, in memory."""
    jit_descriptor: int | None = None
    """Link address of __jit_debug_descriptor, if it tells gdb of code that it makes."""
    version: FileVersion | None = None
    """Of its file when it was opened; None where it stands in no file."""
    is_stale: bool = False
    """Its file holds other bytes by now."""
    build_id: str | None = field(init=False)
    names: KnownNames = field(init=False)
    """What its symbols say of single names."""

    _first_bytes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.build_id = self.image.build_id  # now: the file may be rewritten
        self.names = KnownNames(self.image)

    @property
    def open_path(self) -> str:
        """A path for this process (and the kernel on its behalf) to the very file."""
        return f"/proc/self/fd/{self.fd}"

    @property
    def is_static(self) -> bool:
        """Whether it is a program that starts without a dynamic loader."""
        return self.image.interpreter is None and self.image.entry != 0 and not self.image.needed

    @cached_property
    def is_loader(self) -> bool:
        """Whether it tells debuggers of the libraries that it loads."""
        return self.file_offset("_dl_debug_state") is not None

    @cached_property
    def is_translator(self) -> bool:
        """Whether it is a program that runs another one's code by translating it."""
        return is_translator(self.image, self.path)

    @property
    def is_vdso(self) -> bool:
        return self.path == VDSO

    @property
    def symbols(self) -> SymbolTable:
        return read_symbol_table(self.image)

    def file_offset(self, symbol: str) -> int | None:
        """Return where in the file a function or object begins, or None where it is not defined here."""
        for found in self.names.find(symbol):
            offset = self.image.file_offset_of(found.address)
            if offset is not None:
                return offset
        return None

    def code_at(self, file_offset: int) -> bytes:
        """Return an instruction's bytes, and some more, as its image has them."""
        return bytes(self.image.data[file_offset : file_offset + _LONGEST_INSTRUCTION])

    def first_byte(self, file_offset: int) -> int:
        """Return the first byte of an instruction, as its image has it; -1 behind its end."""
        byte = self._first_bytes.get(file_offset)
        if byte is None:
            byte = self._first_bytes[file_offset] = next(iter(self.code_at(file_offset)), -1)
        return byte

    def code_now(self, file_offset: int) -> bytes:
        """Return the same as the file has them now."""
        return os.pread(self.fd, _LONGEST_INSTRUCTION, file_offset)

    @property
    def stamp(self) -> tuple[int, int] | None:
        """Return when its file was changed last (ns: its bytes, all of it); None where it could have been changed since
        without another time, or stands in no file."""
        status = os.fstat(self.fd) if self.version is not None else None
        return (status.st_mtime_ns, status.st_ctime_ns) if status is not None and is_settled(status) else None

    def link_address(self, symbol: str) -> int | None:
        return next((found.address for found in self.names.find(symbol)), None)

    def bias_of(self, start: int, end: int, file_offset: int) -> int | None:
        """Return address minus link address for a mapping of this file, or None if it maps no loaded segment."""
        for s in self._loaded_segments:
            if s.file_offset < file_offset + (end - start) and s.file_offset + s.file_size > file_offset:
                return (start - file_offset + s.file_offset - s.link_address) & (1 << 64) - 1
        return None

    @property
    def is_laid_out(self) -> bool:
        """Whether `bias_of` has nothing to work out any more."""
        return "_loaded_segments" in self.__dict__

    @cached_property
    def _loaded_segments(self) -> list[Segment]:
        """Those with code come first."""
        return sorted((s for s in self.image.segments if s.type == PT_LOAD), key=lambda s: not s.flags & PF_X)

    @property
    def record(self) -> Binary:
        if self.fd < 0:  # only now: a JIT may make more images than a process may have files
            self.fd = _in_memory("jit", self.image.data[:])
        path = f"/proc/{os.getpid()}/fd/{self.fd}"
        return Binary(
            self.id, self.path, self.build_id, None if self.is_stale else path, self.deleted or self.is_stale,
            self.kind, self._has_operators,
        )

    @property
    def _has_operators(self) -> bool:
        if self.is_stale or any(fnmatchcase(Path(self.path).name, pattern) for pattern in _RUNTIMES):
            return False
        return any(symbol.kind == STT_FUNC for name in _OPERATORS if self.names.mentions(name)
                   for symbol in self.names.find(name))


class Binaries:
    """All binaries of a trace by file identity; ids count from 1 and are never reused.

    Ids of code without a file are counted down from END_OF_IDS. Those above are for frames of other kinds.
    """

    def __init__(self, cache: Path | None = None) -> None:
        """`cache`: the folder where what their symbols say is kept for other traces."""
        self._cache = cache
        self._by_file: dict[tuple[int, int], OpenBinary | None] = {}
        self._by_entry: dict[tuple[str, int], OpenBinary | None] = {}
        self._images: dict[bytes, OpenBinary | None] = {}
        """Those that stand in no file, by their bytes."""
        self._no_binaries: dict[tuple[int, int], FileVersion] = {}
        """Files that are no 64-bit ELF file."""
        self.all: list[OpenBinary] = []
        """Those of files; the one with id N is at N - 1."""
        self.generated: dict[int, OpenBinary] = {}
        """Those that a JIT made, by id."""
        self._lowest_generated = END_OF_IDS
        self.on_stale: Callable[[OpenBinary], None] = lambda _: None
        """Hears of each binary whose file was rewritten, before the file's next version is opened."""

    @property
    def losses(self) -> Iterator[Loss]:
        for binary in self.all:
            if binary.is_late:
                reason = f"no probe on the malloc of {Path(binary.path).name}, which another program used otherwise"
                yield Loss(reason, 1, f"--allocator {binary.path}")

    def recheck(self) -> None:
        """Look at all files again: what was rewritten is stale."""
        for binary in self._by_file.values():
            if binary is not None:
                self._is_current(binary)

    def _is_current(self, binary: OpenBinary) -> bool:
        if binary.version is None or binary.is_stale:
            return not binary.is_stale
        now = binary.version.now(binary.fd)
        if now is None:
            binary.is_stale = True
            self.on_stale(binary)
            return False
        binary.version = now
        return True

    def known(self, entry: MapsEntry) -> OpenBinary | None:
        """Return the binary behind a line of /proc/PID/maps if neither `mapped` has anything to look up for it, nor
        `bias_of` to work out."""
        binary = self._by_entry.get((entry.device, entry.inode))
        is_worked_out = binary is not None and not binary.is_stale and binary.is_laid_out
        return binary if is_worked_out and entry.path.startswith("/") else None

    def mapped(self, entry: MapsEntry, paths: Sequence[str]) -> OpenBinary | None:
        """Return the binary behind a line of /proc/PID/maps; opened only when its device and inode are new, or what was
        opened is stale. What was no binary is looked at again where code is mapped."""
        key = (entry.device, entry.inode)
        known = self._by_entry.get(key)
        if key not in self._by_entry or (known.is_stale if known is not None else entry.executable):
            self._by_entry[key] = self.open(paths, entry.path, deleted=entry.deleted)
        return self._by_entry[key]

    def open(self, paths: Sequence[str], name: str, *, deleted: bool = False) -> OpenBinary | None:
        """Open the first of `paths` that can be; return None if none can, or it is no 64-bit ELF file.

        Raises OSError where no more files may be opened: that says nothing of these.
        """
        for path in paths:
            try:
                fd = open_plain(path)
                try:
                    return self._opened(fd, name, deleted)
                except OSError:
                    os.close(fd)
                    raise
            except OSError as error:
                if error.errno in EXHAUSTED:
                    raise
        return None

    def _opened(self, fd: int, name: str, deleted: bool) -> OpenBinary | None:
        """Return the binary of an open file, and keep or close the descriptor; raises OSError."""
        status = os.fstat(fd)
        identity = (status.st_dev, status.st_ino)
        known = self._by_file.get(identity)
        refused = self._no_binaries.get(identity)
        if known is not None and self._is_current(known):
            os.close(fd)
            return known
        if refused is not None and refused.now(fd) is not None:
            os.close(fd)
            return None
        version = version_of(fd)
        binary = self._open_image(fd, name, deleted)
        if binary is None:
            self._no_binaries[identity] = version
        else:
            binary.version = version
            if self._cache is not None:
                binary.names.keep(self._cache, version)
        self._by_file[identity] = binary
        return binary

    def _open_image(self, fd: int, name: str, deleted: bool) -> OpenBinary | None:
        try:
            image = Image.open(f"/proc/self/fd/{fd}", name)
        except RefleakError:
            os.close(fd)
            return None
        return self._add(OpenBinary(len(self.all) + 1, name, fd, image, deleted))

    def add_image(self, name: str, data: bytes) -> OpenBinary | None:
        """Add an image that stands in no file: the vDSO. None where it is no ELF image, or one of too many: a program
        can write its own."""
        if data not in self._images and len(self._images) < _MOST_IMAGES:
            try:
                image = Image(data, name)
            except RefleakError:
                self._images[data] = None
            else:
                self._images[data] = self._add(OpenBinary(len(self.all) + 1, name, _in_memory(name, data), image))
        return self._images.get(data)

    def add_jit(self, name: str, image: Image) -> OpenBinary | None:
        """Add an image that a JIT made; each is a binary of its own. None where there is no id left."""
        number = self.take_id()
        if number is None:
            return None
        self.generated[number] = OpenBinary(number, name, -1, image, kind="jit")
        return self.generated[number]

    def take_id(self) -> int | None:
        """Return an id for code that is in no file; None where all are taken."""
        if self._lowest_generated - 1 <= len(self.all):
            return None
        self._lowest_generated -= 1
        return self._lowest_generated

    def is_generated(self, id_: int) -> bool:
        return self._lowest_generated <= id_ < END_OF_IDS

    @property
    def lowest_generated(self) -> int:
        """Return the least id that `take_id` gave out; END_OF_IDS for none."""
        return self._lowest_generated

    def _add(self, binary: OpenBinary) -> OpenBinary:
        self.all.append(binary)
        return binary

    def close(self) -> None:
        """Close them, and keep what was asked of their symbols."""
        for binary in (*self.all, *self.generated.values()):
            if not binary.is_stale:
                binary.names.save()
            binary.image.close()
            if binary.fd >= 0:
                os.close(binary.fd)


def _in_memory(name: str, data: bytes | memoryview) -> int:
    """Return a descriptor of a file that holds `data` and is in no folder."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    return fd


