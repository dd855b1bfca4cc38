"""Symbolized frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tracer.late_dataclasses import dataclass

BY_REGISTER, BY_WORD = "%", "*"
"""Begin what a frame calls through a pointer: by a register that is sure to hold it still, or by one that is believed
since the word says the same that it was loaded from. The path of the call follows, in hexadecimal."""
BY_JUMP = ">"
"""Begins what a call of a function is for, where it is none of the heap's and jumps to these."""
FOLDED = "?"
"""What a frame calls whose function may be several that the compiler made one of, though they call different ones."""
THROUGH_POINTER = "^"
"""What a frame calls whose function has no name, where the call goes through a pointer."""
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
    is not known. Of an indirect call that has a path (FREE_SEEN): BY_REGISTER or BY_WORD, and the path. Of a function's
    first instruction: what a call of it is for."""
    passes: str | None = None
    """Of a call on the way to a get or put: what it passes, as the text of a Passed; empty where that is not known,
    None where it was not asked."""


Symbols = Mapping[int, tuple[Frame, ...]]
"""Frame key (binary id << 48 | link address) to its frames, innermost inlined one first."""


LinkedNames = Mapping[tuple[str | None, int, str | None], str]
"""How a function is linked, by the place of its frame."""


def place_of(frame: Frame) -> tuple[str | None, int, str | None]:
    """Return the binary, the address and the function as it is written: one address has frames of several functions."""
    return frame.path, frame.address, frame.function


@dataclass(frozen=True)
class HeapCalls:
    """Frame keys of which it is to be told what of the heap they call."""

    callers: Collection[int] = ()
    by_pointer: Collection[int] = ()
    """Those of the callers that call through a pointer."""
    called: Collection[int] = ()
    """The functions that such calls were for, marked FRAME_EXACT."""
