"""Address words: what an object is told from others by, its address or the number that it is known by."""

from __future__ import annotations

from tracer.model.findings import BAD_FREES, ErrorFinding

_LOWEST = 0x10000
"""Below it nothing is mapped (vm.mmap_min_addr): what a counted object has there is a handle, as a file descriptor."""


def address_word(address: int, *, counted: bool) -> str:
    """Return "0x55d2c0", or "3" of a counted object that is a handle. What was given to `free` is an address always."""
    return str(address) if is_handle(address, counted=counted) else f"{address:#x}"


def counts_references(error: ErrorFinding) -> bool:
    """Tell whether an error is about a counted object, and not about a block."""
    return error.kind not in BAD_FREES


def is_handle(address: int, *, counted: bool) -> bool:
    return counted and 0 < address < _LOWEST
