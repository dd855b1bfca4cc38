"""gdb's JIT interface: what a JIT registers and takes back, while its thread is held.

GDB manual, "JIT Compilation Interface": struct jit_code_entry {next, prev, symfile_addr, symfile_size} and struct
jit_descriptor {version, action_flag, relevant_entry, first_entry}.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.errors import UnsuitableTarget
from tracer.jit.beam_image import BeamFunction, read_beam_image
from tracer.jit.jit_image import read_jit_image
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Space
from tracer.procfs.process import read_memory
from tracer.spaces.address_spaces import Spaces
from tracer.spaces.listener import Moment, SpaceListener
from tracer.spaces.mapping_tables import UnwindRows

REGISTER_FUNCTION, DESCRIPTOR = "__jit_debug_register_code", "__jit_debug_descriptor"
_REGISTER, _UNREGISTER = 1, 2
_DESCRIPTOR = struct.Struct("<IIQQ")
_ENTRY = struct.Struct("<QQQQ")
_LARGEST_IMAGE = 1 << 26
MOST_IMAGE_BYTES = 1 << 28
"""Of all images: they are kept to the end, for the names in them."""
_LONGEST_LIST = 1 << 16
_ELF = b"\x7fELF"
_NO_ID = "there are no ids left"
Tell = Callable[[Space, Iterable[BeamFunction]], None]


@dataclass(frozen=True)
class _Entry:
    address: int
    next: int
    image_address: int
    image_size: int

    def is_same(self, other: _Entry) -> bool:
        return (self.image_address, self.image_size) == (other.image_address, other.image_size)


@dataclass(frozen=True)
class _Registered:
    entry: _Entry
    descriptor: int
    """Whose list it is in."""
    binary: OpenBinary | None = None
    told: tuple[BeamFunction, ...] = ()
    """Of an image that is no ELF file."""


class JitInterface(SpaceListener):
    """The images of every traced process; each registration is a binary of its own, whatever its address."""

    def __init__(self, binaries: Binaries, rows: UnwindRows, spaces: Spaces, tell: Tell) -> None:
        """`tell` hears of the functions of an image that is no ELF file; without names where they are gone."""
        self._binaries, self._rows, self._spaces, self._tell = binaries, rows, spaces, tell
        self._registered: dict[Space, dict[int, _Registered]] = {}
        """By the address of their list entry."""
        self._walked: dict[Space, set[int]] = {}
        self._kept_bytes = 0
        self.refused: Counter[str] = Counter()
        """Images that could not be used, by reason."""

    def called(self, space: Space, descriptor: int) -> None:
        """Do what a call of the register function says; its thread is held."""
        raw = read_memory(space[0], descriptor, _DESCRIPTOR.size)
        if raw is None or len(raw) < _DESCRIPTOR.size:
            self.refused["its descriptor could not be read"] += 1
            return
        _, action, relevant, _ = _DESCRIPTOR.unpack(raw)
        if action == _UNREGISTER:
            self._remove(space, relevant)
        elif action == _REGISTER:
            entry = _read_entry(space[0], relevant)
            if entry is None:
                self.refused["its list entry could not be read"] += 1
            else:
                self._add(space, entry, descriptor)

    def find_registered(self, space: Space, binaries: Iterable[OpenBinary], *, anew: bool = False) -> None:
        """Walk the list of each binary that has one, what was registered before its probe was there.

        Each list is walked once; `anew`: once more, for what changed since.
        """
        walked = self._walked.setdefault(space, set())
        for binary in binaries:
            if binary.jit_descriptor is None or (binary.id in walked and not anew):
                continue
            bias = self._spaces.bias_of(space, binary)
            if bias is not None:
                walked.add(binary.id)
                self._compare(space, binary.jit_descriptor + bias)

    def _compare(self, space: Space, descriptor: int) -> None:
        """Make what is known of a list what is in it."""
        entries = {entry.address: entry for entry in _list(space[0], descriptor)}
        known = {a: r.entry for a, r in self._registered.get(space, {}).items() if r.descriptor == descriptor}
        for address in known.keys() - entries.keys():
            self._remove(space, address)
        for address, entry in entries.items():
            if address not in known or not known[address].is_same(entry):
                self._add(space, entry, descriptor)

    def _add(self, space: Space, entry: _Entry, descriptor: int) -> None:
        self._remove(space, entry.address)
        read = partial(read_memory, space[0])
        if self._kept_bytes + entry.image_size > MOST_IMAGE_BYTES:
            self.refused["all images take too much memory"] += 1
            return
        data = read(entry.image_address, entry.image_size) if 0 < entry.image_size <= _LARGEST_IMAGE else None
        if data is None or len(data) < entry.image_size:
            self.refused["its image could not be read"] += 1
            return
        if not data.startswith(_ELF) and (functions := read_beam_image(data)) is not None:
            self._kept_bytes += entry.image_size
            self._registered.setdefault(space, {})[entry.address] = _Registered(entry, descriptor, told=functions)
            self._tell(space, functions)
            return
        try:
            made = read_jit_image(data, entry.image_address, read, lambda a, b: bool(read(a, 1) and read(b - 1, 1)))
        except UnsuitableTarget as error:
            self.refused[str(error)] += 1
            return
        if made is None:
            return
        binary = self._binaries.add_jit(made.name, made.image)
        if binary is None:
            self.refused[_NO_ID] += 1
            return
        self._kept_bytes += len(made.image.data)
        if made.table is not None:
            self._rows.add(binary, made.table)
        self._rows.use(binary)
        self._registered.setdefault(space, {})[entry.address] = _Registered(entry, descriptor, binary)
        if not self._spaces.add_code(space, entry.address, binary, made.code, made.bias):
            self.refused["its code is where a file's code is"] += 1
            self._remove(space, entry.address)

    def _remove(self, space: Space, entry: int) -> None:
        known = self._registered.get(space, {}).pop(entry, None)
        if known is not None and known.binary is not None:
            self._spaces.remove_code(space, entry)
            self._rows.release(known.binary)
        elif known is not None:
            self._tell(space, [replace(function, name=None, places=()) for function in known.told])

    def mapped(self, space: Space, binaries: Sequence[OpenBinary], moment: Moment) -> None:
        self.find_registered(space, binaries)

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Give a forked child its copy."""
        self._registered[child] = dict(self._registered.get(parent, {}))
        self._walked[child] = set(self._walked.get(parent, ()))
        for known in self._registered[child].values():
            if known.binary is not None:
                self._rows.use(known.binary)

    def ended(self, space: Space, moment: Moment) -> None:
        self._walked.pop(space, None)
        for known in self._registered.pop(space, {}).values():
            if known.binary is not None:
                self._rows.release(known.binary)


def _read_entry(pid: int, address: int) -> _Entry | None:
    raw = read_memory(pid, address, _ENTRY.size) if address else None
    if raw is None or len(raw) < _ENTRY.size:
        return None
    following, _, image_address, image_size = _ENTRY.unpack(raw)
    return _Entry(address, following, image_address, image_size)


def _list(pid: int, descriptor: int) -> Iterator[_Entry]:
    """Yield the entries of a list, each once; of one that changes meanwhile as much as can be read."""
    raw = read_memory(pid, descriptor, _DESCRIPTOR.size)
    at = _DESCRIPTOR.unpack(raw)[3] if raw is not None and len(raw) == _DESCRIPTOR.size else 0
    seen: set[int] = set()
    while at and at not in seen and len(seen) < _LONGEST_LIST:
        seen.add(at)
        entry = _read_entry(pid, at)
        if entry is None:
            return
        yield entry
        at = entry.next
