"""Programs of several functions: a loop's body as a function of its own, which the verifier follows once.

bpf_loop (Linux 5.17) calls a function for each turn of a loop. BCC compiles each function as a program of its own, and
cannot take the address of one. So the sources have a mark in its place: a constant with the function's index. `link`
puts the functions that a program needs behind it, and the way to them in place of the marks. Exchanges are marked too.

Encoding: Documentation/bpf/standardization/instruction-set.rst, 64-bit immediate instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from tracer.late_dataclasses import dataclass

MARK = 0x7EF1EA4B
"""Upper half of the constant that stands for a function; the lower one is its index."""

_INSTRUCTION = struct.Struct("<BBhi")
_TAIL_CALL = 12
"""Number of the helper bpf_tail_call."""
_ADD_ATOMICALLY = 0xDB
_EXCHANGE_MARK, _EXCHANGE = 0x7EF1, 0xE1
"""The offset of an atomic addition that stands for an exchange, and what makes it one (Linux 5.12)."""
OWN_STACK = b"".join(_INSTRUCTION.pack(*parts) for parts in (
    (0xB7, 0, 0, 0),  # r0 = 0
    (0x15, 0, 1, 0),  # if r0 == 0, pass over the next one
    (0x85, 0, 0, _TAIL_CALL),
))  # fmt: skip
"""Begins each program: a tail call that is never made, by which the kernel runs the program on the thread's stack.

From Linux 6.13 on the kernel gives programs of kprobes, those of uprobes among them, one stack per processor where a
function has 64 bytes of stack or more (bpf_enable_priv_stack in kernel/bpf/verifier.c), but not where there is a tail
call. A second run on the same processor is refused, the kernel takes it; of uprobes' programs it is not
(bpf_prog_run_array_uprobe has no such check). Where the kernel preempts (PREEMPT or PREEMPT_LAZY), and where a program
sleeps, two threads share that stack: 7.2 ended in an oops, by a pointer that the other thread had written over. The
verifier knows the outcome of the comparison, and takes the call out.
"""
_LOAD_IMMEDIATE = 0x18
_FUNCTION = 4
"""Source register of a 64-bit load that gives a function's address (BPF_PSEUDO_FUNC)."""


@dataclass(frozen=True)
class Linked:
    """A program with all functions that it needs."""

    code: bytes
    functions: tuple[tuple[str, int], ...]
    """Each one's name and first instruction; the program itself is the first."""


def marks(functions: Sequence[str]) -> list[str]:
    """Return the flags that give each function its mark."""
    return [f"-DTURN_{name}={MARK << 32 | index:#x}ULL" for index, name in enumerate(functions)]


def link(name: str, compiled: Mapping[str, bytes], functions: Sequence[str]) -> Linked:
    """Return a program with what it calls; `functions` in the order of their marks."""
    order, starts, code = [name], {}, bytearray()
    calls: list[tuple[int, str]] = []
    for caller in order:  # which grows by what each one calls
        starts[caller] = len(code) // 8
        for at, index in _marked(compiled[caller]):
            calls.append((starts[caller] + at, functions[index]))
            if functions[index] not in order:
                order.append(functions[index])
        code += compiled[caller]
    for at, called in calls:
        _, registers, _, _ = _INSTRUCTION.unpack_from(code, at * 8)
        target = registers & 15
        _INSTRUCTION.pack_into(code, at * 8, _LOAD_IMMEDIATE, _FUNCTION << 4 | target, 0, starts[called] - at - 1)
        _INSTRUCTION.pack_into(code, at * 8 + 8, 0, 0, 0, 0)
    _put_exchanges(code)
    return Linked(bytes(code), tuple(starts.items()))


def _put_exchanges(code: bytearray) -> None:
    words = np.frombuffer(code, "<u8")
    marked = words & np.uint64(0xFFFF00FF) == _EXCHANGE_MARK << 16 | _ADD_ATOMICALLY
    words[marked] = words[marked] & np.uint64(0xFFFF) | np.uint64(_EXCHANGE << 32)


def _marked(code: bytes) -> Iterator[tuple[int, int]]:
    """Yield (instruction, index of the function) of each mark."""
    instructions = list(_INSTRUCTION.iter_unpack(code))
    for at, ((op, registers, _, low), (_, _, _, high)) in enumerate(pairwise(instructions)):
        if op == _LOAD_IMMEDIATE and not registers >> 4 and high == MARK:
            yield at, low
