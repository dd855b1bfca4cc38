"""Clock of one trace: the kernel's monotonic time, from when the probes were armed."""

from __future__ import annotations

import time


class TraceClock:
    """All times are in ns."""

    def __init__(self) -> None:
        self.started_ns = time.monotonic_ns()
        """The kernel's clock when the probes were armed; before that, when the trace was set up."""
        self._ended_ns = 0

    def start(self) -> None:
        self.started_ns = time.monotonic_ns()

    def end(self) -> None:
        """Stand still from now on; a second end changes nothing."""
        self._ended_ns = self._ended_ns or time.monotonic_ns()

    def since_start(self, kernel_ns: int) -> int:
        """Return the trace's time of a time by the kernel's clock; 0 for what was before it."""
        return max(0, kernel_ns - self.started_ns)

    @property
    def elapsed_ns(self) -> int:
        """Since the start, whether it stands still or not."""
        return time.monotonic_ns() - self.started_ns

    @property
    def duration_ns(self) -> int:
        return (self._ended_ns or time.monotonic_ns()) - self.started_ns
