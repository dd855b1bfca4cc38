"""The places of a binary where processes that map it are held."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.jit.frame_registry import DEREGISTER_FUNCTIONS, INNERMOST_FUNCTIONS, LIBGCC, REGISTER_FUNCTIONS
from tracer.jit.jit_interface import DESCRIPTOR, REGISTER_FUNCTION
from tracer.kernel.links import Hold
from tracer.model.records import ControlKind

_STATE_IN_R_DEBUG = 24
"""Offset of r_state in struct r_debug (link.h, 64 bits)."""
_FORK_BYTES = 512
_FORKS = ("clone", "fork", "vfork")
_AND_ITS_MAKER = 1
_OF_GO = (ControlKind.STARTED, ControlKind.FORKED, ControlKind.ENDING)
_ENDS = (("_exit", "_Exit"), ("abort",))
"""Of each the first name that is there: whatever ends a process by itself comes to one of them."""
_EXECS = (("execve", ControlKind.EXECUTES), ("execveat", ControlKind.EXECUTES_AT))


def _loader_hold(binary: OpenBinary) -> list[Hold]:
    offset, here = binary.file_offset("_dl_debug_state"), binary.link_address("_dl_debug_state")
    if offset is None or here is None:
        return []
    debug = binary.link_address("_r_debug")
    return [Hold(offset, ControlKind.LOADER, debug + _STATE_IN_R_DEBUG - here if debug is not None else 0)]


def _after_fork(code: bytes) -> int | None:
    """Return where in a function's code a new process begins: behind the system call that makes it."""
    return ARCHITECTURE.behind_system_call(code, tuple(ARCHITECTURE.system_calls[name] for name in _FORKS))


def _fork_holds(binary: OpenBinary) -> list[Hold]:
    """Return where forked, vforked and cloned children take their first step. At the return of the function, if its
    code is not understood; not for vfork and clone, whose return addresses a probe had better not touch. Who forks is
    held there too, so that its next child comes when this one is ready: many that wait at once keep the tracer from its
    work."""
    holds = []
    for names, at_return_instead in ((("_Fork", "fork"), True), (("vfork",), False), (("clone",), False)):
        offset = next((o for o in map(binary.file_offset, names) if o is not None), None)
        if offset is None:
            continue
        begins = _after_fork(bytes(binary.image.data[offset : offset + _FORK_BYTES]))
        if begins is not None:
            extra = _AND_ITS_MAKER if at_return_instead else 0  # a vfork holds its maker by itself
            holds.append(Hold(offset + begins, ControlKind.FORKED, extra))
        elif at_return_instead:
            holds.append(Hold(offset, ControlKind.FORKED, at_return=True))
    return holds


def _exec_holds(binary: OpenBinary) -> list[Hold]:
    places = ((binary.file_offset(name), kind) for name, kind in _EXECS)
    return [Hold(offset, kind) for offset, kind in places if offset is not None]


def _dispatch_hold(binary: OpenBinary) -> list[Hold]:
    offset = binary.file_offset("prctl")
    return [Hold(offset, ControlKind.DISPATCHES)] if offset is not None else []


def _leave_hold(binary: OpenBinary) -> list[Hold]:
    """Return where the first thread ends before others: what is opened for a process by its number ends with it."""
    offset = binary.file_offset("pthread_exit")
    return [Hold(offset, ControlKind.LEAVES)] if offset is not None else []


def _start_hold(binary: OpenBinary) -> list[Hold]:
    offset = binary.image.file_offset_of(binary.image.entry)
    return [Hold(offset, ControlKind.STARTED)] if binary.is_static and offset is not None else []


def _jit_hold(binary: OpenBinary) -> list[Hold]:
    """Return where a JIT tells gdb of its code, and note its descriptor. Both may be local symbols."""
    if not binary.names.mentions(REGISTER_FUNCTION):
        return []
    here, descriptor = binary.link_address(REGISTER_FUNCTION), binary.link_address(DESCRIPTOR)
    offset = binary.file_offset(REGISTER_FUNCTION)
    if here is None or offset is None or descriptor is None:
        return []
    binary.jit_descriptor = descriptor
    return [Hold(offset, ControlKind.JIT, descriptor - here)]


def _frame_holds(binary: OpenBinary) -> list[Hold]:
    """Return where unwind tables are registered with the C++ runtime, and where they are taken back."""
    if not binary.names.mentions(REGISTER_FUNCTIONS[0]):
        return []
    is_libgcc = (binary.image.soname or "").startswith(LIBGCC)
    register, deregister = INNERMOST_FUNCTIONS if is_libgcc else (REGISTER_FUNCTIONS, DEREGISTER_FUNCTIONS)
    kinds = (ControlKind.FRAMES, register), (ControlKind.FRAMES_GONE, deregister)
    places = ((binary.file_offset(name), kind) for kind, names in kinds for name in names)
    return [Hold(offset, kind) for offset, kind in places if offset is not None]


def _end_holds(binary: OpenBinary) -> list[Hold]:
    """Return where a process is that ends by itself: return from main, exit and quick_exit come to _exit."""
    found = (next(filter(None, map(binary.file_offset, names)), None) for names in _ENDS)
    return [Hold(offset, ControlKind.ENDING) for offset in found if offset is not None]


def holds_of(binary: OpenBinary, *, ends: bool = False) -> list[Hold]:
    """Return where processes that map this binary are held: loader, libc and static programs have such places."""
    found = _loader_hold(binary) if binary.is_loader else []
    if is_libc(binary) or (binary.is_static and not binary.image.soname):  # of a program's libc there is what it calls
        found += _fork_holds(binary) + _exec_holds(binary) + _dispatch_hold(binary) + _leave_hold(binary)
        found += _end_holds(binary) if ends else []
    found += [Hold(offset, ControlKind.FORKED) for offset in binary.raw_calls.forks]
    found += [Hold(offset, ControlKind.ENDING) for offset in binary.raw_calls.ends] if ends else []
    return found + _start_hold(binary) + _jit_hold(binary) + _frame_holds(binary)


def lead_further(holds: Iterable[Hold]) -> bool:
    """Return whether more may be seen after these holds: the children of a Go program exec where it is not seen."""
    return any(hold.kind not in _OF_GO for hold in holds)


def is_libc(binary: OpenBinary) -> bool:
    return bool(binary.names.find("execve") and binary.names.find("fork"))
