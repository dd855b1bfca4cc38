"""Unwinders in a program: where it reads the return addresses on its stack, or leaves by them."""

from __future__ import annotations

from enum import IntEnum

from tracer.late_dataclasses import dataclass


class Moment(IntEnum):
    """`enum unwinding` of bpf/abi.h."""

    BEGINS = 0
    """Frames are about to be looked at, or left: no return address may be replaced."""
    ENDS = 1
    """It returns to where it began."""
    CAUGHT = 2
    """An exception is handled: all frames below are gone."""


@dataclass(frozen=True)
class UnwinderPlace:
    """An instruction that all who unwind come by."""

    file_offset: int
    moment: Moment
    at_return: bool = False
    """Not the instruction itself, but the return of the function that it begins."""
