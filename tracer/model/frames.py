"""Symbolized frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NO_SYMBOL = "no symbol covers the address"
"""Why a frame of a binary without symbols is not named."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One symbolized entry of a stack; inlined ones are frames of their own.

    A miss is a value: `function` is None and `why_unknown` says why. `address` is the return
    address as linked (binary frames) or in the process (frames in no binary); `offset` is its distance
    from the start of the function, or None.
    """

    function: str | None
    module: str | None = None
    path: str | None = None
    build_id: str | None = None
    file: str | None = None
    line: int | None = None
    inlined: bool = False
    address: int = 0
    offset: int | None = None
    kind: str = "native"
    language: str | None = None
    why_unknown: str | None = None
    calls: str | None = None
    """What of the heap the call is for, as linked, with "|" between those that it may be; None elsewhere, and where it
    is not known."""


Symbols = Mapping[int, tuple[Frame, ...]]
"""Frame key (binary id << 48 | link address) to its frames, innermost inlined one first."""
