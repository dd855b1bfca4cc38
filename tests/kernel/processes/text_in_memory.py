"""A process's code as it is in memory, compared with the files that it was mapped from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Change:
    """A byte of a mapped file that is not what the file has there."""

    path: str
    file_offset: int
    value: int


def changed_text(pid: int) -> list[Change]:
    """Return every changed byte of the executable mappings of a process: a breakpoint is a 0xcc."""
    changes = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            fields = line.split(None, 5)
            if "x" not in fields[1] or len(fields) < 6 or not fields[5].startswith("/"):
                continue
            start, end = (int(part, 16) for part in fields[0].split("-"))
            memory.seek(start)
            there = memory.read(end - start)
            with open(f"/proc/{pid}/map_files/{start:x}-{end:x}", "rb") as file:
                file.seek(int(fields[2], 16))
                original = file.read(end - start).ljust(end - start, b"\0")
            if there != original:
                changes += [
                    Change(fields[5], int(fields[2], 16) + at, value)
                    for at, (value, before) in enumerate(zip(there, original, strict=True)) if value != before
                ]  # fmt: skip
    return changes
