"""What a trace costs on the running kernel: python -m tests.kernels.costs TARGETS.

Ratios to the same program untraced: emulated, nothing else can be said of the times.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

REFLEAK = Path(__file__).parents[2] / "refleak"
COSTS = "costs, traced to untraced: "
_COUNT = 100
_SECONDS = 600


def read_times(said: str) -> dict[str, float]:
    """Return nanoseconds by name, of lines `NAME NANOSECONDS`."""
    return {name: float(time) for name, time in (line.split() for line in said.splitlines() if line.strip())}


def ratios(traced: dict[str, float], alone: dict[str, float]) -> str:
    """Return how many times as long each takes: `pair 12, fork 3.1`.

    Raises ValueError where they are not of one program.
    """
    if list(traced) != list(alone) or not alone:
        raise ValueError(f"traced {sorted(traced)}, untraced {sorted(alone)}")
    return ", ".join(f"{name} {traced[name] / time:.2g}" for name, time in alone.items())


def _run(command: Sequence[object]) -> dict[str, float]:
    words = list(map(str, command))
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=_SECONDS)
    return read_times(done.stdout)


def main() -> int:
    targets = Path(sys.argv[1])
    command = [targets / "costs", targets / "libb.so", _COUNT]
    with tempfile.TemporaryDirectory() as folder:
        traced = _run([REFLEAK, "-o", Path(folder) / "report.json", "--format", "json", "--exec", *command])
    print(f"{COSTS}{ratios(traced, _run(command))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
