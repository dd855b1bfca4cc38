"""Abilities of the running kernel and of this process's privileges, tested one by one and without a trace."""

from __future__ import annotations

import errno
import os
import platform
import resource
import struct
from collections.abc import Iterator

from tracer.errors import BccMissing, KernelLacks, NotPermitted, UnsuitableTarget
from tracer.kernel import bpf
from tracer.kernel.bpf import MapType, ProgramType
from tracer.kernel.btf import MEMBERS, kernel_offsets
from tracer.kernel.bytecode import bcc_version
from tracer.kernel.lockdown import LOCKED_DOWN, REMEDY, is_locked_down
from tracer.kernel.namespaces import check_namespaces, is_own_namespace_initial
from tracer.kernel.programs import has_uprobe_multi
from tracer.kernel.uprobe_events import UprobeEvents
from tracer.model.checks import Check, CheckState

_SMALLEST_RING = 4096
_NR_UPROBE = 336
"""The system call of an optimised probe (arch/x86/entry/syscalls/syscall_64.tbl, Linux 6.18)."""
_ONLY_FOR_PROBES = (errno.ENXIO, errno.EPROTO)
_MOVE_REGISTER, _MOVE, _ADD, _CALL, _EXIT = 0xBF, 0xB7, 0x07, 0x85, 0x95
_CURRENT_TASK_BTF, _COPY_FROM_USER_TASK = 158, 191
_OPEN_FILES = 1024
_NEEDS_BTF = "a kernel with CONFIG_DEBUG_INFO_BTF and CONFIG_UPROBES is needed"


def kernel_checks(missing_capabilities: list[str]) -> Iterator[Check]:
    """Test what a trace needs of the kernel, in the order in which a trace would fail for want of it."""
    yield Check("kernel", CheckState.OK, f"Linux {platform.release()}")
    yield _architecture()
    yield _privileges(missing_capabilities)
    namespaces = _namespaces()
    yield namespaces
    privileged = not missing_capabilities and namespaces.state is CheckState.OK
    yield _ring_buffer(privileged)
    yield _memory(privileged)
    yield _type_information()
    yield _uprobes()
    yield _multi(privileged)
    yield _holds(privileged)
    yield _forks(privileged)
    yield _optimised_nops()
    yield _open_files()


def bcc_check() -> Check:
    """Test whether BCC can be imported."""
    try:
        return Check("BCC", CheckState.OK, f"version {bcc_version()}, compiles the BPF programs")
    except BccMissing as error:
        return Check("BCC", CheckState.MISSING, "compiles the BPF programs", error.hint, error.exit_code)


def _needed(name: str, found: bool, meaning: str, remedy: str, exit_code: int = KernelLacks.exit_code) -> Check:
    if found:
        return Check(name, CheckState.OK, meaning)
    return Check(name, CheckState.MISSING, meaning, remedy, exit_code)


def _architecture() -> Check:
    machine = platform.machine()
    return _needed(
        "architecture", machine == "x86_64", machine, "refleak traces 64-bit x86 only", UnsuitableTarget.exit_code
    )


def _privileges(missing: list[str]) -> Check:
    if not missing:
        return Check("privileges", CheckState.OK, "all capabilities that tracing needs")
    return Check(
        "privileges", CheckState.MISSING, f"{', '.join(missing)} missing", NotPermitted.hint, NotPermitted.exit_code
    )


def _namespaces() -> Check:
    try:
        check_namespaces()
    except NotPermitted as error:
        return Check("namespaces", CheckState.MISSING, str(error), error.hint, error.exit_code)
    if is_own_namespace_initial("pid"):
        return Check("namespaces", CheckState.OK, "process numbers are the kernel's own")
    return Check("namespaces", CheckState.OK, "process numbers are this container's, of the processes that it can see")


def _untested(name: str, meaning: str) -> Check:
    return Check(name, CheckState.UNTESTED, meaning)


def _ring_buffer(privileged: bool) -> Check:
    meaning = "BPF maps and ring buffers, where the kernel side keeps what it sees"
    if not privileged:
        return _untested("BPF", meaning)
    try:
        os.close(bpf.create_map(MapType.RINGBUF, 0, 0, _SMALLEST_RING, 0, "doctor"))
    except OSError as error:
        return _needed("BPF", False, f"{meaning} ({error.strerror})", "Linux 6.1 or newer with BPF is needed")
    return Check("BPF", CheckState.OK, meaning)


def _memory(privileged: bool) -> Check:
    meaning = "BPF programs may read memory"
    if not privileged:
        return _untested("lockdown", meaning)
    if is_locked_down():
        return Check("lockdown", CheckState.MISSING, LOCKED_DOWN, REMEDY, NotPermitted.exit_code)
    return Check("lockdown", CheckState.OK, meaning)


def _type_information() -> Check:
    try:
        kernel_offsets()
    except KernelLacks as error:
        return Check("BTF", CheckState.MISSING, str(error), _NEEDS_BTF, error.exit_code)
    return Check("BTF", CheckState.OK, f"the offsets of {len(MEMBERS)} kernel struct members")


def _uprobes() -> Check:
    try:
        bpf.uprobe_event_type()
    except (OSError, ValueError):
        return _needed("uprobes", False, "probes in programs", "a kernel with CONFIG_UPROBE_EVENTS is needed")
    return Check("uprobes", CheckState.OK, "probes in programs")


def _multi(privileged: bool) -> Check:
    meaning = "uprobe_multi: all probes of a binary in one link"
    if not privileged:
        return _untested("links", meaning)
    if has_uprobe_multi():
        return Check("links", CheckState.OK, meaning)
    return Check("links", CheckState.MISSING, f"{meaning}; else one perf event for each", "Linux 6.6 has it")


def _holds(privileged: bool) -> Check:
    meaning = "children and new libraries wait until their probes are in place"
    if not privileged:
        return _untested("holds", meaning)
    if can_hold():
        return Check("holds", CheckState.OK, meaning)
    return Check("holds", CheckState.MISSING, f"{meaning}; without, they are not followed", "Linux 6.0 has them")


def _forks(privileged: bool) -> Check:
    meaning = "the places of forks and execs have breakpoints in traced processes only, by tracefs"
    if not privileged:
        return _untested("forks", meaning)
    events = UprobeEvents()
    try:
        if events.can_be_had:
            events.add("/proc/self/exe", 0)
            return Check("forks", CheckState.OK, meaning)
    except OSError:
        pass
    finally:
        events.close()
    return Check(
        "forks", CheckState.MISSING, f"{meaning}; without, in every process that maps the same libc, "
        "and valgrind beside a trace dies of them", "mount -t tracefs none /sys/kernel/tracing",
    )  # fmt: skip


def _optimised_nops() -> Check:
    meaning = "a probed long nop becomes a call, without a trap (see costs)"
    if optimises_nops():
        return Check("nops", CheckState.OK, meaning)
    return Check("nops", CheckState.MISSING, meaning, "Linux 6.18 has it; without, such a probe is slower")


def _open_files() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    locked, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    kept = "unlimited" if locked == resource.RLIM_INFINITY else f"{locked >> 10} KiB"
    meaning = f"{soft} open files (at most {hard}), {kept} of locked memory"
    if soft >= _OPEN_FILES:
        return Check("limits", CheckState.OK, meaning)
    return Check("limits", CheckState.MISSING, f"{meaning}; few for many processes", f"ulimit -n {_OPEN_FILES}")


def _instruction(code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Return one BPF instruction; encoding: Documentation/bpf/standardization/instruction-set.rst."""
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


def can_hold() -> bool:
    """Return whether the kernel loads a sleepable program that calls bpf_copy_from_user_task."""
    code = (
        _instruction(_CALL, value=_CURRENT_TASK_BTF),
        _instruction(_MOVE_REGISTER, 4, 0),
        _instruction(_MOVE_REGISTER, 1, 10),
        _instruction(_ADD, 1, value=-8),
        _instruction(_MOVE, 2, value=8),
        _instruction(_MOVE, 3, value=0),
        _instruction(_MOVE, 5, value=0),
        _instruction(_CALL, value=_COPY_FROM_USER_TASK),
        _instruction(_MOVE, 0, value=0),
        _instruction(_EXIT),
    )
    try:
        os.close(bpf.load_program(ProgramType.KPROBE, "doctor_hold", b"".join(code), sleepable=True)[0])
    except OSError:
        return False
    return True


def optimises_nops() -> bool:
    """Return whether the kernel rewrites a probed long nop into a call: one of 5 bytes in Linux 6.18, later one of 10.

    Such a probe enters the kernel by a system call of its own, which answers anybody else with ENXIO, and with EPROTO
    where it serves nops of 10 bytes (seen on Debian's 7.2.13). Asked in a child, since the first version of it killed
    who called it otherwise.
    """
    pid = os.fork()
    if pid == 0:
        os._exit(0 if bpf.system_call_error(_NR_UPROBE) in _ONLY_FOR_PROBES else 1)
    return os.waitpid(pid, 0)[1] == 0
