"""Unwind tables that programs register with their C++ runtime, while the thread that does so is held.

JITs tell libgcc of their code by `__register_frame`, so that exceptions pass through it: LLVM's, and those of wasmtime
and PostgreSQL. Only the tables are known: the code has no name but what a log gives it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from tracer.errors import UnsuitableTarget
from tracer.jit.live_frames import LiveFrames, read_live_frames
from tracer.late_dataclasses import dataclass
from tracer.model.addresses import Range, Space
from tracer.procfs.process import read_memory
from tracer.spaces.address_spaces import Spaces
from tracer.spaces.listener import Moment, SpaceListener
from tracer.spaces.mapping_tables import UnwindRows

REGISTER_FUNCTIONS = ("__register_frame", "__register_frame_info")
DEREGISTER_FUNCTIONS = ("__deregister_frame", "__deregister_frame_info")
INNERMOST_FUNCTIONS = ("__register_frame_info_bases",), ("__deregister_frame_info_bases",)
"""In libgcc all others call these; where it is a shared library, through its PLT, so that none is inlined."""
LIBGCC = "libgcc_s.so"


@dataclass
class UnnamedCode:
    """Where the rows of code in no binary are. Its id is below 0, and is in no frame."""

    id: int
    first_page: int = 0
    page_count: int = 0
    first_link_page: int = 0


@dataclass(frozen=True)
class _Registered:
    rows: UnnamedCode
    code: tuple[Range, ...]
    data: bytes


class FrameRegistry(SpaceListener):
    """`forget` hears of code that is no longer what it was."""

    def __init__(
        self, rows: UnwindRows, spaces: Spaces, forget: Callable[[Space, Sequence[Range]], None]
    ) -> None:
        self._rows, self._spaces, self._forget = rows, spaces, forget
        self._registered: dict[Space, dict[int, _Registered]] = {}
        """By the address that was registered."""
        self._count = 0
        self.refused: Counter[str] = Counter()
        """Registrations that could not be used, by reason."""

    def registered(self, space: Space, address: int) -> None:
        """Make the code known that is described at an address, unless a file or gdb's interface does so already."""
        try:
            frames = read_live_frames(address, partial(read_memory, space[0]))
        except UnsuitableTarget as error:
            self.refused[str(error)] += 1
            return
        known = self._registered.get(space, {}).get(address)
        if frames is None or (known is not None and known.data == frames.data):
            return
        self.deregistered(space, address)
        if not self._spaces.is_described(space, frames.code):
            self._add(space, address, frames)

    def _add(self, space: Space, address: int, frames: LiveFrames) -> None:
        for start, end in frames.code:  # of code that is there still, the memory was used again without a word
            for key in self._spaces.generated.overlapping(space, start, end):
                self.deregistered(space, -key)
        self._count += 1
        rows = UnnamedCode(-self._count)
        self._rows.add(rows, frames.table)
        self._rows.use(rows)
        self._registered.setdefault(space, {})[address] = _Registered(rows, frames.code, frames.data)
        self._spaces.add_code(space, -address, rows, frames.code, 0)

    def deregistered(self, space: Space, address: int) -> None:
        """Take away what was registered at an address, if anything."""
        known = self._registered.get(space, {}).pop(address, None)
        if known is not None:
            self._spaces.remove_code(space, -address)
            self._forget(space, known.code)
            self._rows.release(known.rows)

    def forked(self, parent: Space, child: Space, moment: Moment) -> None:
        """Give a forked child its copy."""
        self._registered[child] = dict(self._registered.get(parent, {}))
        for known in self._registered[child].values():
            self._rows.use(known.rows)

    def ended(self, space: Space, moment: Moment) -> None:
        for known in self._registered.pop(space, {}).values():
            self._rows.release(known.rows)
