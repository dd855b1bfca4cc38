"""What `readelf -wF` (binutils) says about a file's call frames: the second opinion of the unwind tables' tests."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_FUNCTION = re.compile(r"^[0-9a-f]{8,} \S+ \S+ FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)")
_CELL = re.compile(r"\S+(?: \(\w+\))?")  # a register is "r9 (r9)"
_ROW = re.compile(r"^[0-9a-f]{16} ")


@dataclass
class ReadelfFunction:
    start: int
    end: int
    rows: dict[int, dict[str, str]] = field(default_factory=dict)
    """Address to the text of each column: CFA, and registers by their names."""


def readelf_functions(path: Path) -> Iterator[ReadelfFunction]:
    environment = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    # It ends with 1 where it only misses a separate debug file.
    text = subprocess.run(["readelf", "-wF", str(path)], capture_output=True, check=False, env=environment).stdout
    function: ReadelfFunction | None = None
    columns: list[str] = []
    for line in text.decode("ascii", "replace").splitlines():
        if match := _FUNCTION.match(line):
            function = ReadelfFunction(int(match[1], 16), int(match[2], 16))
            columns = []
        elif not line.strip():
            if function:
                yield function
            function = None
        elif function and line.split()[0] == "LOC":
            columns = line.split()[1:]
        elif function and _ROW.match(line):
            address, *cells = _CELL.findall(line)
            if int(address, 16) < function.end:
                function.rows[int(address, 16)] = dict(zip(columns, cells, strict=True))
    if function:
        yield function
