"""Classes of x86-64 instructions, by what the kernel does with a probe on one."""

from __future__ import annotations

from tracer.architecture.instruction import InstructionClass

NOPS5 = (bytes.fromhex("0f1f440000"), bytes.fromhex("660f1f0400"))
NOP10 = bytes.fromhex("662e0f1f840000000000")
"""What newer kernels rewrite in place of 5-byte nops (commit 554ba38456da; Debian's 7.2.13); others refuse its 2e."""
# Prefixes that is_prefix_bad() refuses: es, cs, ss, ds (also `notrack`) and lock.
_REFUSED_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\xf0")
_PREFIXES = _REFUSED_PREFIXES | frozenset(b"\x64\x65\x66\x67\xf2\xf3")


def classify(raw: bytes) -> InstructionClass:
    """Return the class of one whole instruction by its bytes."""
    first, size = raw[0], len(raw)
    if raw in NOPS5:
        return InstructionClass.NOP5
    if raw == NOP10:
        return InstructionClass.NOP10
    if raw == b"\x90":
        return InstructionClass.NOP
    if (size == 1 and 0x50 <= first <= 0x57) or (size == 2 and first == 0x41 and 0x50 <= raw[1] <= 0x57):
        return InstructionClass.PUSH
    if first == 0xE8 and size == 5:
        return InstructionClass.CALL
    if (first == 0xE9 and size == 5) or (first == 0xEB and size == 2):
        return InstructionClass.JUMP
    if (0x70 <= first <= 0x7F and size == 2) or (first == 0x0F and size == 6 and 0x80 <= raw[1] <= 0x8F):
        return InstructionClass.BRANCH
    return InstructionClass.OTHER


def is_refused(raw: bytes) -> bool:
    """Tell whether kernels refuse a probe on this instruction because of its prefixes: all but for NOP10."""
    for byte in raw:
        if byte in _REFUSED_PREFIXES:
            return True
        if byte not in _PREFIXES:
            break
    return False
