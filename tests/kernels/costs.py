"""What a trace costs on the running kernel: python -m tests.kernels.costs TARGETS.

Beside the same program untraced: emulated, only their ratio says something.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

REFLEAK = Path(__file__).parents[2] / "refleak"
COSTS = "nanoseconds, traced and untraced: "
_COUNT = 100
_SECONDS = 600


def read_times(said: str) -> dict[str, float]:
    """Return nanoseconds by name, of lines `NAME NANOSECONDS`."""
    return {name: float(time) for name, time in (line.split() for line in said.splitlines() if line.strip())}


def pairs(traced: dict[str, float], alone: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Return both times of each. Raises ValueError where they are not of one program."""
    if list(traced) != list(alone) or not alone:
        raise ValueError(f"traced {sorted(traced)}, untraced {sorted(alone)}")
    return {name: (traced[name], time) for name, time in alone.items()}


def _run(command: Sequence[object]) -> dict[str, float]:
    words = list(map(str, command))
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=_SECONDS)
    return read_times(done.stdout)


def main() -> int:
    targets = Path(sys.argv[1])
    command = [targets / "costs", targets / "libb.so", _COUNT]
    with tempfile.TemporaryDirectory() as folder:
        traced = _run([REFLEAK, "-o", Path(folder) / "report.json", "--format", "json", "--exec", *command])
    print(f"{COSTS}{json.dumps(pairs(traced, _run(command)))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
