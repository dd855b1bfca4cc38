"""How much a run measures."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_FULL_SECONDS = 540
CACHE = Path("/var/cache/refleak-benchmark")
"""Root's refleak takes no cache below /tmp, where settings.folder is."""
CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """The size of a run, and where it may write.

    `scale` multiplies every count; `allowance_seconds` is what one method may take in one table: a slow one makes
    fewer rounds.
    """

    folder: Path
    rounds: int = 5
    scale: float = 1.0
    allowance_seconds: float = 15.0
    timeout_seconds: float = 60.0
    hurry_at: float = float("inf")
    """From then on (time.monotonic) each method makes one round only, so that the run comes to its end."""

    def count(self, full: float, least: int = 1) -> int:
        return max(least, int(full * self.scale))


def full_settings(folder: Path) -> Settings:
    return Settings(folder, hurry_at=time.monotonic() + _FULL_SECONDS)


def quick_settings(folder: Path) -> Settings:
    return Settings(folder, rounds=2, scale=0.02, allowance_seconds=10.0, timeout_seconds=45.0)
