"""bpf(2) and perf_event_open(2) through ctypes: the few commands that refleak needs.

Attribute layouts: `union bpf_attr` of include/uapi/linux/bpf.h and `struct perf_event_attr` of
include/uapi/linux/perf_event.h (Linux 6.18; older kernels take the same bytes where they know the command).
All functions raise OSError with the kernel's errno.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

NR_BPF, NR_PERF_EVENT_OPEN = 321, 298

F_NO_PREALLOC, F_MMAPABLE, F_SLEEPABLE = 1, 1 << 10, 1 << 4
F_READ_ONLY = 1 << 7
"""Of a map: programs do not write to it."""
PERF_FLAG_FD_CLOEXEC = 8
_PERF_TYPE_SOFTWARE, _PERF_TYPE_TRACEPOINT = 1, 2
_SOFTWARE_DUMMY = 9
_DISABLED, _INHERIT, _ENABLE_ON_EXEC = 1, 1 << 1, 1 << 12
_MOST_EVENTS = 4096
ATTACH_PERF_EVENT, ATTACH_UPROBE_MULTI = 41, 48
TRACE_ITERATOR = 28
"""How a program is attached that the reading of a file runs."""
_TRACED_FUNCTION_AT = 108
UPROBE_MULTI_RETURN = 1
_FUNCTION_RECORD_BYTES = 8

_libc = ctypes.CDLL(None, use_errno=True)


class Command(IntEnum):
    MAP_CREATE = 0
    MAP_LOOKUP = 1
    MAP_UPDATE = 2
    MAP_DELETE = 3
    PROG_LOAD = 5
    PROG_TEST_RUN = 10
    RAW_TRACEPOINT_OPEN = 17
    BTF_LOAD = 18
    MAP_FREEZE = 22
    MAP_LOOKUP_BATCH = 24
    MAP_DELETE_BATCH = 27
    LINK_CREATE = 28
    ITER_CREATE = 33


class MapType(IntEnum):
    HASH = 1
    ARRAY = 2
    PROG_ARRAY = 3
    PERCPU_ARRAY = 6
    LRU_HASH = 9
    RINGBUF = 27


class ProgramType(IntEnum):
    KPROBE = 2
    RAW_TRACEPOINT = 17
    TRACING = 26


class LogLevel(IntEnum):
    """What the verifier is to tell: nothing, each step, or how much it had to do."""

    NONE = 0
    STEPS = 1
    STATISTICS = 4


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def system_call_error(number: int) -> int:
    """Issue a system call without arguments; return its errno, 0 where it succeeds."""
    return 0 if _libc.syscall(number) >= 0 else ctypes.get_errno()


def bpf(command: Command, attributes: bytes, size: int = 0) -> tuple[int, bytes]:
    """Issue one bpf(2) command; return its result and the attributes as the kernel left them."""
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), size))
    result: int = _check(_libc.syscall(NR_BPF, int(command), buffer, len(buffer)))
    return result, buffer.raw


def create_map(kind: MapType, key_size: int, value_size: int, entries: int, flags: int = 0, name: str = "") -> int:
    """Create a map; return its file descriptor."""
    attributes = struct.pack("<IIIIIII", kind, key_size, value_size, entries, flags, 0, 0)
    return bpf(Command.MAP_CREATE, attributes + name.encode()[:15].ljust(16, b"\0"), 72)[0]


def _element(map_fd: int, key: bytes, value_address: int, flags: int = 0) -> tuple[bytes, ctypes.Array[ctypes.c_char]]:
    keep = ctypes.create_string_buffer(key, len(key))
    return struct.pack("<IIQQQ", map_fd, 0, ctypes.addressof(keep), value_address, flags), keep


def update_element(map_fd: int, key: bytes, value: bytes, flags: int = 0) -> None:
    buffer = ctypes.create_string_buffer(value, len(value))
    attributes, _keep = _element(map_fd, key, ctypes.addressof(buffer), flags)
    bpf(Command.MAP_UPDATE, attributes)


def delete_element(map_fd: int, key: bytes) -> None:
    """Remove an element; raises FileNotFoundError where there is none."""
    attributes, _keep = _element(map_fd, key, 0)
    bpf(Command.MAP_DELETE, attributes)


def delete_elements(map_fd: int, keys: npt.NDArray[np.void]) -> None:
    """Remove elements of a hash map; a key that is not there is passed over."""
    keys, done = np.ascontiguousarray(keys), 0
    while done < len(keys):
        attributes = struct.pack("<QQQQIIQQ", 0, 0, keys[done:].ctypes.data, 0, len(keys) - done, map_fd, 0, 0)
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        result = _libc.syscall(NR_BPF, int(Command.MAP_DELETE_BATCH), buffer, len(buffer))
        number = ctypes.get_errno()
        done += struct.unpack_from("<I", buffer, 32)[0]
        if result < 0:
            if number != errno.ENOENT:
                raise OSError(number, os.strerror(number))
            done += 1


def freeze_map(map_fd: int) -> None:
    """Have no one write to a map from now on: of one that programs only read, the verifier knows the values."""
    bpf(Command.MAP_FREEZE, struct.pack("<I", map_fd))


def lookup_element(map_fd: int, key: bytes, value_size: int) -> bytes | None:
    """Return an element's value, or None where there is none."""
    buffer = ctypes.create_string_buffer(value_size)
    attributes, _keep = _element(map_fd, key, ctypes.addressof(buffer))
    try:
        bpf(Command.MAP_LOOKUP, attributes)
    except FileNotFoundError:
        return None
    return buffer.raw


def read_batches(
    map_fd: int, key_type: np.dtype[np.void], value_type: np.dtype[np.void], chunk: int,
    between: Callable[[], None] | None = None,
) -> Iterator[tuple[npt.NDArray[np.void], npt.NDArray[np.void]]]:
    """Read all elements of a hash map or an array; yield their keys and values, which the next batch overwrites.

    Elements that come or go meanwhile may be in it or not. The chunk doubles where one bucket holds more than it.
    `between` is called after each batch but the last.
    """
    position, following = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
    keys, values = np.empty(chunk, key_type), np.empty(chunk, value_type)
    started = False
    while True:
        attributes = struct.pack(
            "<QQQQIIQQ", ctypes.addressof(position) if started else 0, ctypes.addressof(following),
            keys.ctypes.data, values.ctypes.data, len(keys), map_fd, 0, 0,
        )  # fmt: skip
        buffer = ctypes.create_string_buffer(attributes, len(attributes))
        result = _libc.syscall(NR_BPF, int(Command.MAP_LOOKUP_BATCH), buffer, len(buffer))
        number = ctypes.get_errno()
        count = struct.unpack_from("<I", buffer, 32)[0]
        if result < 0 and number == 28:  # ENOSPC: a bucket is larger than the chunk
            keys, values = np.empty(2 * len(keys), key_type), np.empty(2 * len(values), value_type)
            continue
        if result < 0 and number != 2:  # ENOENT: this was the last batch
            raise OSError(number, os.strerror(number))
        yield keys[:count], values[:count]
        if result < 0:
            return
        position, following, started = following, position, True
        if between is not None:
            between()


def read_hash(
    map_fd: int, key_type: np.dtype[np.void], value_type: np.dtype[np.void], chunk: int = 65536,
    between: Callable[[], None] | None = None,
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return the keys and values of a hash map as two arrays, read as `read_batches` does."""
    parts = [(k.copy(), v.copy()) for k, v in read_batches(map_fd, key_type, value_type, chunk, between)]
    return np.concatenate([k for k, _ in parts]), np.concatenate([v for _, v in parts])


def load_types(blob: bytes) -> int:
    """Load a BTF blob; return its file descriptor."""
    data = ctypes.create_string_buffer(blob, len(blob))
    attributes = struct.pack("<QQIII", ctypes.addressof(data), 0, len(blob), 0, 0)
    return bpf(Command.BTF_LOAD, attributes, 32)[0]


def load_program(
    kind: ProgramType, name: str, code: bytes, *, attach_type: int = 0, sleepable: bool = False, log_bytes: int = 0,
    log_level: LogLevel = LogLevel.STEPS, types_fd: int = 0, functions: bytes = b"", traced_function: int = 0,
) -> tuple[int, str]:
    """Load a program; return its file descriptor and the verifier's log (empty unless `log_bytes`).

    One of several functions needs `types_fd`, a descriptor of their BTF, and `functions`, a record of each
    (tracer.kernel.function_types). `traced_function`: of a TRACING program, the number in the kernel's BTF.
    """
    license_name = ctypes.create_string_buffer(b"GPL")
    instructions = ctypes.create_string_buffer(code, len(code))
    records = ctypes.create_string_buffer(functions, max(len(functions), 1))
    log = ctypes.create_string_buffer(max(log_bytes, 1))
    attributes = struct.pack(
        "<IIQQIIQII", kind, len(code) // 8, ctypes.addressof(instructions), ctypes.addressof(license_name),
        log_level if log_bytes else 0, log_bytes, ctypes.addressof(log) if log_bytes else 0, 0,
        F_SLEEPABLE if sleepable else 0,
    )  # fmt: skip
    attributes += name.encode()[:15].ljust(16, b"\0") + struct.pack("<II", 0, attach_type)
    if functions:
        attributes += struct.pack(
            "<IIQI", types_fd, _FUNCTION_RECORD_BYTES, ctypes.addressof(records),
            len(functions) // _FUNCTION_RECORD_BYTES,
        )  # fmt: skip
    if traced_function:
        attributes = attributes.ljust(_TRACED_FUNCTION_AT, b"\0") + struct.pack("<I", traced_function)
    try:
        return bpf(Command.PROG_LOAD, attributes, 128)[0], log.value.decode("utf-8", "replace")
    except OSError as error:
        if log_bytes:
            error.filename = log.value.decode("utf-8", "replace")
        raise


def passed_over(program_fd: int) -> int:
    """Return how often the kernel left a program out, since it ran on that processor already; 0 before Linux 5.12."""
    lines = Path(f"/proc/self/fdinfo/{program_fd}").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("recursion_misses:")), 0)


def run_program(program_fd: int) -> None:
    """Run a raw tracepoint's program once, in this thread and without a context."""
    bpf(Command.PROG_TEST_RUN, struct.pack("<I", program_fd), 80)


def open_raw_tracepoint(program_fd: int, name: str) -> int:
    buffer = ctypes.create_string_buffer(name.encode())
    return bpf(Command.RAW_TRACEPOINT_OPEN, struct.pack("<QII", ctypes.addressof(buffer), program_fd, 0))[0]


def iterate_tasks(program_fd: int, *, tid: int = 0, pid: int = 0) -> bytes:
    """Run an iterator's program on one thread, or on each of a process, and return what it wrote (Linux 6.1)."""
    which = ctypes.create_string_buffer(struct.pack("<II", tid, pid), 16)  # union bpf_iter_link_info
    attributes = struct.pack("<IIIIQI", program_fd, 0, TRACE_ITERATOR, 0, ctypes.addressof(which), 16)
    link = bpf(Command.LINK_CREATE, attributes, 64)[0]
    try:
        file = bpf(Command.ITER_CREATE, struct.pack("<II", link, 0))[0]
    finally:
        os.close(link)
    with open(file, "rb", buffering=0) as stream:
        return stream.readall()


def link_uprobes(
    program_fd: int, path: str, file_offsets: list[int], cookies: list[int], pid: int, *, at_return: bool
) -> int:
    """Attach a program to many places of one file at once (uprobe_multi, Linux 6.6); return the link."""
    count = len(file_offsets)
    name = ctypes.create_string_buffer(os.fsencode(path))
    places = (ctypes.c_uint64 * count)(*file_offsets)
    values = (ctypes.c_uint64 * count)(*(cookie & (1 << 64) - 1 for cookie in cookies))
    attributes = struct.pack(
        "<IIIIQQQQIII", program_fd, 0, ATTACH_UPROBE_MULTI, 0, ctypes.addressof(name), ctypes.addressof(places), 0,
        ctypes.addressof(values), count, UPROBE_MULTI_RETURN if at_return else 0, pid,
    )  # fmt: skip
    return bpf(Command.LINK_CREATE, attributes, 64)[0]


def uprobe_event_type() -> int:
    """Return perf's number of the uprobe PMU; raise FileNotFoundError on a kernel without."""
    return int(Path("/sys/bus/event_source/devices/uprobe/type").read_text())


def open_uprobe_event(path: str, file_offset: int, pid: int, *, at_return: bool) -> int:
    """Open a perf event on one place of a file, for the process `pid` (and those that share its memory); -1: all."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    attributes = struct.pack(
        "<IIQQQQQIIQQ", uprobe_event_type(), 128, int(at_return), 1, 0, 0, 0, 0, 0, ctypes.addressof(name), file_offset
    ).ljust(128, b"\0")
    buffer = ctypes.create_string_buffer(attributes, 128)
    return _check(_libc.syscall(NR_PERF_EVENT_OPEN, buffer, pid, 0 if pid == -1 else -1, -1, PERF_FLAG_FD_CLOEXEC))


def open_trace_event(number: int, tid: int, *, inherit: bool = False) -> int:
    """Open a perf event on an event of tracefs, for a thread (0: the current one); return its descriptor.

    It is not switched on, which would cost the thread each time it is scheduled: programs run all the same. One that
    is inherited puts breakpoints into the thread's process at once; else only into what it will map.
    """
    flags = _DISABLED | (_INHERIT if inherit else _ENABLE_ON_EXEC)
    return _open_event(_PERF_TYPE_TRACEPOINT, number, flags, tid, -1)


def open_trace_events(numbers: Sequence[int], tid: int, fds: list[int], *, enables: bool, group: int) -> None:
    """Open a perf event on each of some events of tracefs, for a thread, as `open_trace_event` does, and put the
    descriptors into `fds`, which has those that were opened where one could not be. Where no exec `enables` them, they
    put breakpoints into the thread's process at once. `group`: the event that leads theirs, -1: none."""
    flags = _DISABLED | (_ENABLE_ON_EXEC if enables else 0)
    for number in numbers:
        fds.append(_open_event(_PERF_TYPE_TRACEPOINT, number, flags, tid, group))


def open_dummy_event(tid: int) -> int:
    """Open a perf event that counts nothing, and is not switched on, for a thread; return its descriptor."""
    return _open_event(_PERF_TYPE_SOFTWARE, _SOFTWARE_DUMMY, _DISABLED, tid, -1)


def _open_event(kind: int, config: int, flags: int, tid: int, group: int) -> int:
    attributes = _event_attributes(kind, config, flags)
    return _check(_libc.syscall(NR_PERF_EVENT_OPEN, attributes, tid, -1, group, PERF_FLAG_FD_CLOEXEC))


@lru_cache(_MOST_EVENTS)
def _event_attributes(kind: int, config: int, flags: int) -> bytes:
    """Return struct perf_event_attr. Each child opens the same events."""
    return struct.pack("<IIQQQQQ", kind, 128, config, 0, 0, 0, flags).ljust(128, b"\0")


def link_perf_event(program_fd: int, event_fd: int, cookie: int) -> int:
    attributes = struct.pack("<IIIIQ", program_fd, event_fd, ATTACH_PERF_EVENT, 0, cookie & (1 << 64) - 1)
    return bpf(Command.LINK_CREATE, attributes, 64)[0]
