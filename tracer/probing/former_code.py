"""Former code of files that were rewritten, where the kernel may have it still.

At each place of a file with a probe the kernel has one copy of the instruction, made when the first probe came, until
the last one is gone (struct uprobe in kernel/events/uprobes.c). Whoever comes to a breakpoint there executes the copy:
so where the file has another instruction by now there must be none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.model.snapshot import EVERY_KIND, Loss

_NOWHERE = 0
REWRITTEN = "the kernel still has the instruction that was there before its file was rewritten"
REPLACE = "end what else is traced, or have the file replaced by a new one (cp --remove-destination, install)"


class FormerCode:
    """By file, the code that the kernel may have at its places."""

    def __init__(self) -> None:
        self._code: dict[tuple[int, int], dict[int, bytes]] = {}
        self.left_out = 0
        """Sites that got no probe for that."""

    def note(self, binary: OpenBinary, code: Mapping[int, bytes]) -> None:
        """Take it that the kernel keeps the instructions that code at places of a stale binary begins with. What it had
        there before counts."""
        if binary.version is not None:
            self._code[binary.version.file] = {**code, **self._code.get(binary.version.file, {})}

    def differing(self, binary: OpenBinary, places: Iterable[int]) -> set[int]:
        """Return at which places a binary has another instruction than the kernel may have."""
        code = self._code.get(binary.version.file, {}) if binary.version is not None else {}
        return {at for at in places if at in code and not _are_same(code[at], binary.code_at(at))}

    @property
    def losses(self) -> Iterator[Loss]:
        if self.left_out:
            reason = "function without a probe: its file was rewritten while it was traced"
            yield Loss(reason, self.left_out, REPLACE, EVERY_KIND)


def _are_same(first: bytes, second: bytes) -> bool:
    """Tell whether codes begin with the same instruction."""
    if first == second:
        return True
    decoded = ARCHITECTURE.decode(first, _NOWHERE, 1)
    return bool(decoded) and second.startswith(decoded[0].raw)
