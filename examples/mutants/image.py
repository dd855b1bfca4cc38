"""The bytes of a program by link address."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Image:
    path: Path

    def offset(self, address: int) -> int:
        """Return where in the file a link address is."""
        for offset, start, size in self._segments:
            if start <= address < start + size:
                return address - start + offset
        raise ValueError(f"{address:#x} is not in {self.path}")

    def read(self, address: int, size: int) -> bytes:
        offset = self.offset(address)
        return self._bytes[offset : offset + size]

    def write_copy(self, to: Path, changes: Sequence[tuple[int, bytes]]) -> None:
        """Write a program that differs from this one in what is given, by link address."""
        code = bytearray(self._bytes)
        for address, changed in changes:
            offset = self.offset(address)
            code[offset : offset + len(changed)] = changed
        to.unlink(missing_ok=True)
        to.write_bytes(code)
        to.chmod(0o755)

    @cached_property
    def _bytes(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def _segments(self) -> list[tuple[int, int, int]]:
        """Offset, link address and size in the file of what is loaded."""
        command = ["readelf", "-lW", str(self.path)]
        text = subprocess.run(command, check=True, capture_output=True, text=True, env={"LC_ALL": "C"}).stdout
        fields = (line.split() for line in text.splitlines())
        return [(int(one[1], 16), int(one[2], 16), int(one[4], 16)) for one in fields if one[:1] == ["LOAD"]]
