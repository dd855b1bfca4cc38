"""The program of bad frees: bad_frees.c, built."""

from __future__ import annotations

import subprocess
from pathlib import Path


def build_bad_frees(folder: Path) -> Path:
    """Return the program. `PROGRAM CASE` runs a case; with one more argument it says "ready", and waits for a byte."""
    program = folder / "bad_frees"
    flags = ["-O1", "-g", "-w", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread"]
    source = Path(__file__).parent / "bad_frees.c"
    subprocess.run(["gcc", *flags, "-o", program, source], check=True, timeout=60)
    return program
