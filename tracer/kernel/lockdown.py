"""Lockdown: for confidentiality it keeps BPF programs from reading memory (kernel_lockdown(7))."""

from __future__ import annotations

import os
import struct

from tracer.errors import NotPermitted
from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType

_PROBE_READ_KERNEL = 113
_MOVE_REGISTER, _MOVE, _ADD, _CALL, _EXIT = 0xBF, 0xB7, 0x07, 0x85, 0x95
LOCKED_DOWN = "the kernel is locked down for confidentiality: it lets no BPF program read memory"
REMEDY = "start the kernel with lockdown=integrity, or without lockdown"


def _instruction(code: int, target: int = 0, source: int = 0, value: int = 0) -> bytes:
    """Return one BPF instruction; encoding: Documentation/bpf/standardization/instruction-set.rst."""
    return struct.pack("<BBhi", code, source << 4 | target, 0, value)


_READS = b"".join((
    _instruction(_MOVE_REGISTER, 1, 10), _instruction(_ADD, 1, value=-8), _instruction(_MOVE, 2, value=8),
    _instruction(_MOVE, 3), _instruction(_CALL, value=_PROBE_READ_KERNEL), _instruction(_MOVE, 0), _instruction(_EXIT),
))  # fmt: skip
_RETURNS = _instruction(_MOVE, 0) + _instruction(_EXIT)


def is_locked_down() -> bool:
    """Return whether a program that reads kernel memory is refused where one that does nothing is taken."""
    return _is_taken(_RETURNS) and not _is_taken(_READS)


def check_lockdown() -> None:
    """Raise NotPermitted where no program may read memory: to be asked where one was refused."""
    if is_locked_down():
        raise NotPermitted(LOCKED_DOWN, REMEDY)


def _is_taken(code: bytes) -> bool:
    try:
        os.close(bpf.load_program(ProgramType.KPROBE, "lockdown", code)[0])
    except OSError:
        return False
    return True
