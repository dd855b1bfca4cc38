"""Address spaces and ranges in them."""

from __future__ import annotations

from collections.abc import Callable

Space = tuple[int, int]
"""(pid, generation): an address space, from its start or last exec on."""
Range = tuple[int, int]
"""Addresses [start, end)."""
ReadMemory = Callable[[int, int], bytes | None]
"""Reads (address, size) of a process, or less; None where there is no memory."""
