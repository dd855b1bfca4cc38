"""The namespaces of this process: where process numbers and privileges count.

User space cannot ask how deep below the initial one its pid namespace is: its /proc and NS_GET_PARENT end where it
ends. So a small program, run once in this process, reads it off the `struct pid` (include/linux/pid.h).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

from tracer.errors import KernelLacks, NotPermitted
from tracer.kernel import bpf
from tracer.kernel.bpf import MapType, ProgramType
from tracer.kernel.lockdown import check_lockdown
from tracer.late_dataclasses import dataclass

_MAP_UPDATE, _CURRENT_TASK, _READ_KERNEL = 2, 35, 113
_MOVE, _MOVE_REGISTER, _ADD, _ADD_REGISTER, _SHIFT_LEFT = 0xB7, 0xBF, 0x07, 0x0F, 0x67
_STORE, _LOAD, _LOAD_MAP, _CALL, _EXIT = 0x7A, 0x79, 0x18, 0x85, 0x95
_MAP_DESCRIPTOR = 1
_UPID = struct.Struct("<iiQ")
"""`struct upid`: the number, and the namespace that it is of."""
_LEVEL, _NAMESPACE, _KEY, _PID = -16, -8, -24, -32
"""Offsets from the frame pointer; the first two are the value that the map gets."""
_INITIAL = {"pid": 0xEFFFFFFC, "user": 0xEFFFFFFD}
"""Inodes of the first namespaces (PROC_PID_INIT_INO, PROC_USER_INIT_INO of include/linux/proc_ns.h)."""


@dataclass(frozen=True)
class PidNamespace:
    """How deep it is below the initial one, and its address in the kernel."""

    level: int
    address: int


def _instruction(code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Return one BPF instruction; encoding: Documentation/bpf/standardization/instruction-set.rst."""
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


def _read(to: int, size: int, base: int, offset: int) -> bytes:
    """Read kernel memory at register `base` + offset to the stack."""
    return b"".join((
        _instruction(_MOVE_REGISTER, 3, base), _instruction(_ADD, 3, value=offset),
        _instruction(_MOVE_REGISTER, 1, 10), _instruction(_ADD, 1, value=to),
        _instruction(_MOVE, 2, value=size), _instruction(_CALL, value=_READ_KERNEL),
    ))  # fmt: skip


def _program(offsets: Mapping[str, int], answer: int) -> bytes:
    return b"".join((
        *(_instruction(_STORE, 10, offset=at) for at in (_LEVEL, _NAMESPACE, _KEY, _PID)),
        _instruction(_CALL, value=_CURRENT_TASK),
        _instruction(_MOVE_REGISTER, 6, 0),
        _read(_PID, 8, 6, offsets["TASK_THREAD_PID"]),
        _instruction(_LOAD, 7, 10, _PID),
        _read(_LEVEL, 4, 7, offsets["PID_LEVEL"]),
        _instruction(_LOAD, 8, 10, _LEVEL),
        _instruction(_SHIFT_LEFT, 8, value=_UPID.size.bit_length() - 1),
        _instruction(_ADD_REGISTER, 7, 8),
        _read(_NAMESPACE, 8, 7, offsets["PID_NUMBERS"] + _UPID.size - 8),
        _instruction(_LOAD_MAP, 1, _MAP_DESCRIPTOR, value=answer), _instruction(0),
        _instruction(_MOVE_REGISTER, 2, 10), _instruction(_ADD, 2, value=_KEY),
        _instruction(_MOVE_REGISTER, 3, 10), _instruction(_ADD, 3, value=_LEVEL),
        _instruction(_MOVE, 4),
        _instruction(_CALL, value=_MAP_UPDATE),
        _instruction(_MOVE, 0),
        _instruction(_EXIT),
    ))  # fmt: skip


def own_pid_namespace(offsets: Mapping[str, int]) -> PidNamespace:
    """Return this process's namespace; `offsets` are the kernel's (btf.kernel_offsets).

    Raises KernelLacks, and NotPermitted where the kernel is locked down.
    """
    answer = program = -1
    try:
        answer = bpf.create_map(MapType.ARRAY, 4, 16, 1, name="namespace")
        program = bpf.load_program(ProgramType.RAW_TRACEPOINT, "namespace", _program(offsets, answer))[0]
        bpf.run_program(program)
        return PidNamespace(*struct.unpack("<QQ", bpf.lookup_element(answer, bytes(4), 16) or bytes(16)))
    except OSError as error:
        check_lockdown()
        raise KernelLacks(f"cannot tell the pid namespace of refleak: {error.strerror}") from None
    finally:
        for fd in (answer, program):
            if fd >= 0:
                os.close(fd)


def is_own_namespace_initial(kind: str) -> bool:
    """Return whether this process is in the first namespace of a kind: "pid" or "user"."""
    return Path(f"/proc/self/ns/{kind}").stat().st_ino == _INITIAL[kind]


def check_namespaces() -> None:
    """Raise NotPermitted where /proc is another pid namespace's, whose numbers mean others, or where BPF is denied."""
    try:
        shown = Path("/proc/self").readlink().name
    except OSError:
        shown = ""
    if shown != str(os.getpid()):
        raise NotPermitted(
            "/proc is not mounted, or is that of another pid namespace, where process numbers mean other processes",
            "mount -t proc proc /proc, or unshare --mount-proc",
        )
    if not is_own_namespace_initial("user"):
        raise NotPermitted(
            "tracing is not permitted in a user namespace, whose capabilities do not count for BPF",
            "run refleak outside of it, on the process's number there, or in a container without one (not rootless)",
        )
