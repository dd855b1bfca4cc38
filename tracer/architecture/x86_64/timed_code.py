"""Machine code whose probes are timed: a function for each class of instruction, and a loop that calls it."""

from __future__ import annotations

import struct

from tracer.architecture.architecture import TimedCode

_SNIPPET_BYTES = 64
_FUNCTION_AT = 32


def _snippet(function: bytes) -> bytes:
    """Return code that calls `function` as often as its argument says: push, mov, call, dec, jne, pop, ret."""
    loop = bytes.fromhex("534889fb") + b"\xe8" + struct.pack("<i", _FUNCTION_AT - 9) + bytes.fromhex("48ffcb75f65bc3")
    return loop.ljust(_FUNCTION_AT, b"\x90") + function.ljust(_SNIPPET_BYTES - _FUNCTION_AT, b"\x90")


TIMED_CODE = TimedCode(
    samples={
        "nop5": (bytes.fromhex("0f1f440000c3"), 0),
        "nop10": (bytes.fromhex("662e0f1f840000000000c3"), 0),
        "nop": (bytes.fromhex("90c3"), 0),
        "push": (bytes.fromhex("555dc3"), 0),
        "call": (bytes.fromhex("e8000000004883c408c3"), 0),
        "jump": (bytes.fromhex("eb00c3"), 0),
        "branch": (bytes.fromhex("4885c07400c3"), 3),
        "other": (bytes.fromhex("31c0c3"), 0),
    },
    may_be_refused=frozenset(("nop10",)), may_be_rewritten=frozenset(("nop5", "nop10")),
    snippet=_snippet, snippet_bytes=_SNIPPET_BYTES, function_at=_FUNCTION_AT, trap=b"\xcc",
)  # fmt: skip
