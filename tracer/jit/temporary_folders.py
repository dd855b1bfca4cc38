"""The folders for temporary files of the traced processes: one for most, others in containers."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from tracer.late_dataclasses import dataclass

_RECENT_NS = 20_000_000
"""The clock of files goes in steps: what came in the same step as the last look is seen by looking again."""


@dataclass(eq=False)
class TemporaryFolder:
    """An open folder; it has changed where a file was made in it, or may have been."""

    fd: int
    users: int = 0
    _modified_ns: int = 0

    def has_changed(self) -> bool:
        modified = os.fstat(self.fd).st_mtime_ns
        changed = modified != self._modified_ns or time.time_ns() - modified < _RECENT_NS
        self._modified_ns = modified
        return changed


class TemporaryFolders:
    """Each folder once, open as long as a process that has it is followed: so no mount is kept busy for longer."""

    def __init__(self) -> None:
        self._by_identity: dict[tuple[int, int], TemporaryFolder] = {}

    def take(self, pid: int) -> TemporaryFolder | None:
        """Return the folder of a process; None where it has none, or has ended."""
        try:
            fd = os.open(f"/proc/{pid}/root/tmp", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        status = os.fstat(fd)
        folder = self._by_identity.setdefault((status.st_dev, status.st_ino), TemporaryFolder(fd))
        if folder.fd != fd:
            os.close(fd)
        folder.users += 1
        return folder

    def give_back(self, folder: TemporaryFolder) -> None:
        folder.users -= 1
        if not folder.users:
            status = os.fstat(folder.fd)
            del self._by_identity[status.st_dev, status.st_ino]
            os.close(folder.fd)

    def changed(self) -> set[TemporaryFolder]:
        return {folder for folder in self._by_identity.values() if folder.has_changed()}

    def close(self) -> None:
        for folder in self._by_identity.values():
            with suppress(OSError):
                os.close(folder.fd)
        self._by_identity.clear()
