"""Limits of a trace that fit into little memory: the kernel's maps count as this process's, and take 313 MiB as usual.

Who takes more than its cgroup may have is killed, and that may be the program that is traced.
"""

from __future__ import annotations

from dataclasses import replace

from tracer.errors import TooLittleMemory
from tracer.kernel.maps import Limits
from tracer.procfs.memory_room import THIS_MACHINE, MemoryRoom, memory_room

ENOUGH_BYTES = 1 << 30
"""With so much left, all is as usual."""
LEAST_BYTES = 176 << 20
"""What a trace takes with the least limits: 90 MiB of Python, and maps whose sizes are the same always."""
_PER_PART = 4
_USUAL_BYTES = 240 << 20
"""Of the maps whose sizes depend on limits."""
_MOST_HALVINGS = 5
_END_OTHERS = "end other programs, or trace on a machine with more"
_FITTED = ("objects", "stacks", "event_ring_bytes", "stack_ring_bytes", "interpreter_ring_bytes", "freed")


def fitted_to_memory(limits: Limits) -> Limits:
    """Return what `fitted` returns for the memory that this process may still use."""
    return fitted(limits, memory_room())


def fitted(limits: Limits, room: MemoryRoom | None) -> Limits:
    """Return the limits, those that are as usual halved until their maps take a quarter of what is left. Raises
    TooLittleMemory where that is not enough for any trace."""
    if room is None or room.size >= ENOUGH_BYTES:
        return limits
    if room.size < LEAST_BYTES:
        raise TooLittleMemory(
            f"{room.limit} has {room.size >> 20} MiB of memory left, and a trace takes {LEAST_BYTES >> 20} MiB",
            _END_OTHERS if room.limit == THIS_MACHINE else None,
        )
    halvings, share = 0, room.size // _PER_PART
    while _USUAL_BYTES >> halvings > share and halvings < _MOST_HALVINGS:
        halvings += 1
    if not halvings:
        return limits
    usual = Limits()
    as_usual = (name for name in _FITTED if getattr(limits, name) == getattr(usual, name))
    chosen = {name: getattr(usual, name) >> halvings for name in as_usual}
    return replace(limits, **chosen, fitted_to=f"{room.limit} has {room.size >> 20} MiB of memory left")


def fitted_note(limits: Limits) -> tuple[str, ...]:
    """Return what a report says of limits that were fitted."""
    if not limits.fitted_to:
        return ()
    kept = f"{limits.objects:,} live blocks and {limits.stacks:,} stacks at most"
    return (f"{limits.fitted_to}, so {kept} are kept (--max-objects, --max-stacks, --ring-size)",)
