"""First looks at binaries: who is held for one is held longer, since a library of 200 MB takes seconds, once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

_GRACE_SECONDS = 2.0
"""After a look: what was found is still to be put in place, for all who waited meanwhile."""


class FirstLooks:
    """Tells the kernel side of them. `most_seconds`: so long is somebody held for one at most."""

    def __init__(self, shared: npt.NDArray[Any], most_seconds: float) -> None:
        self._until, self._most_seconds = shared["looks_until_ns"], most_seconds

    @contextmanager
    def look(self) -> Iterator[None]:
        self._extend(self._most_seconds)
        try:
            yield
        finally:
            self._extend(_GRACE_SECONDS)

    def _extend(self, seconds: float) -> None:
        self._until[0] = np.uint64(time.monotonic_ns() + round(seconds * 1e9))
