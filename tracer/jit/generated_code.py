"""Generated code of all traced processes: who tells of it, and the frames that stacks have in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.jit.code_logs import CodeLogs
from tracer.jit.frame_registry import FrameRegistry
from tracer.jit.jit_interface import JitInterface
from tracer.jit.seen_frames import SeenFrames
from tracer.mishaps import Mishaps
from tracer.model.addresses import Space
from tracer.model.generated import GeneratedFrame
from tracer.model.snapshot import Binary, Loss
from tracer.spaces.address_spaces import Spaces
from tracer.spaces.listener import SpaceListener
from tracer.spaces.mapping_tables import UnwindRows


class GeneratedCode:
    """`read_stacks` takes all stacks out of their ring: those that are older than what is told next."""

    def __init__(
        self, binaries: Binaries, rows: UnwindRows, spaces: Spaces, read_stacks: Callable[[], None], mishaps: Mishaps
    ) -> None:
        self.seen = SeenFrames(binaries)
        self.logs = CodeLogs(spaces, self.seen, read_stacks, mishaps)
        self.interface = JitInterface(binaries, rows, spaces, self.logs.tell)
        self.registry = FrameRegistry(rows, spaces, self.logs.forget)

    @property
    def listeners(self) -> tuple[SpaceListener, ...]:
        return self.interface, self.registry, self.logs

    def find(self, space: Space, binaries: Sequence[OpenBinary]) -> None:
        """Look for what a running process had made before its probes were there."""
        self.interface.find_registered(space, binaries, anew=True)

    def images(self) -> Iterator[Binary]:
        """Yield the images of JITs that a stack goes through."""
        return self.seen.images()

    def frames(self) -> dict[int, GeneratedFrame]:
        """Return what is known of each frame in no binary, by its key."""
        return dict(self.logs.frames()) | self.seen.symbols()

    @property
    def losses(self) -> Iterator[Loss]:
        refused: Counter[str] = self.interface.refused + self.registry.refused
        for reason, count in refused.items():
            yield Loss(f"code of a JIT that could not be followed: {reason}", count, "none")
        if self.logs.lost:
            yield Loss("function of a JIT's log not kept: too many", self.logs.lost, "none yet")

    @property
    def notes(self) -> tuple[str, ...]:
        return self.logs.notes

    def close(self) -> None:
        self.logs.close()
