"""Offsets of kernel struct members, from the running kernel's own BTF.

Format: Documentation/bpf/btf.rst. Never from headers: those that are installed may be another kernel's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracer.errors import KernelLacks

VMLINUX = Path("/sys/kernel/btf/vmlinux")

_TYPE = struct.Struct("<III")
_STRUCT, _UNION, _FUNCTION = 4, 5, 12
_EXTRA_FIXED = {1: 4, 14: 4, 17: 4, 3: 12}
_EXTRA_PER_ITEM = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}

MEMBERS: Mapping[str, str] = {
    "TASK_TGID": "task_struct.tgid",
    "TASK_THREAD_PID": "task_struct.thread_pid",
    "TASK_MM": "task_struct.mm",
    "TASK_SIGNAL": "task_struct.signal",
    "TASK_EXIT_CODE": "task_struct.exit_code",
    "TASK_FSBASE": "task_struct.thread.fsbase",
    "TASK_UTASK": "task_struct.utask",
    "SIGNAL_LIVE": "signal_struct.live",
    "SIGNAL_FLAGS": "signal_struct.flags",
    "SIGNAL_GROUP_EXIT_CODE": "signal_struct.group_exit_code",
    "SIGNAL_PIDS": "signal_struct.pids",
    "PID_LEVEL": "pid.level",
    "PID_NUMBERS": "pid.numbers",
    "BPRM_FILENAME": "linux_binprm.filename",
    "UTASK_INSTANCES": "uprobe_task.return_instances",
    "INSTANCE_STACK": "return_instance.stack",
    "INSTANCE_RETURN": "return_instance.orig_ret_vaddr",
    "INSTANCE_NEXT": "return_instance.next",
    "MM_START_STACK": "mm_struct.start_stack",
    "MM_XOL_AREA": "mm_struct.uprobes_state.xol_area",
    "XOL_VADDR": "xol_area.vaddr",
}
"""Macro of the BPF programs to the path of the member."""


class Btf:
    """The types of one BTF blob, indexed by id."""

    def __init__(self, data: bytes) -> None:
        _, _, _, header, types, type_bytes, strings, string_bytes = struct.unpack_from("<HBBIIIII", data, 0)
        self._types = data[header + types : header + types + type_bytes]
        self._strings = data[header + strings : header + strings + string_bytes]
        self._positions = self._index()

    def _index(self) -> list[int]:
        positions, at, data = [0], 0, self._types
        while at < len(data):
            _, info, _ = _TYPE.unpack_from(data, at)
            positions.append(at)
            kind, count = info >> 24 & 31, info & 0xFFFF
            at += 12 + _EXTRA_FIXED.get(kind, 0) + _EXTRA_PER_ITEM.get(kind, 0) * count
        return positions

    def _struct(self, name: str) -> int | None:
        offset = self._strings.find(b"\0" + name.encode() + b"\0") + 1
        for position in self._positions[1:]:
            name_offset, info, _ = _TYPE.unpack_from(self._types, position)
            if name_offset == offset and info >> 24 & 31 == _STRUCT:
                return position
        return None

    def function(self, name: str) -> int | None:
        """Return the id of a function's type, None where the kernel has no such function."""
        offset = self._strings.find(b"\0" + name.encode() + b"\0") + 1
        for number, position in enumerate(self._positions[1:], 1):
            name_offset, info, _ = _TYPE.unpack_from(self._types, position)
            if name_offset == offset and info >> 24 & 31 == _FUNCTION:
                return number
        return None

    def _member(self, position: int, name: str) -> tuple[int, int] | None:
        """Return (byte offset, type id) of a member, also of an unnamed struct within."""
        _, info, _ = _TYPE.unpack_from(self._types, position)
        for i in range(info & 0xFFFF):
            name_offset, type_id, bits = _TYPE.unpack_from(self._types, position + 12 + 12 * i)
            offset = (bits & 0xFFFFFF if info >> 31 else bits) // 8
            end = self._strings.index(0, name_offset)
            if self._strings[name_offset:end] == name.encode():
                return offset, type_id
            inner = self._positions[type_id]
            if name_offset == 0 and _TYPE.unpack_from(self._types, inner)[1] >> 24 & 31 in (_STRUCT, _UNION):
                found = self._member(inner, name)
                if found:
                    return offset + found[0], found[1]
        return None

    def offset(self, path: str) -> int | None:
        """Return the byte offset of `struct.member[.member...]`, or None where the kernel has no such member."""
        first, *members = path.split(".")
        position, sum_ = self._struct(first), 0
        for name in members:
            found = self._member(position, name) if position is not None else None
            if not found:
                return None
            sum_ += found[0]
            position = self._positions[found[1]]
        return sum_


def kernel_offsets(path: Path = VMLINUX, wanted: Sequence[str] = tuple(MEMBERS)) -> dict[str, int]:
    """Return the offset for each macro of MEMBERS; raises KernelLacks without BTF or a member."""
    try:
        btf = Btf(path.read_bytes())
    except OSError as error:
        raise KernelLacks(f"cannot read the kernel's type information, {path}: {error.strerror}") from None
    offsets = {}
    for macro in wanted:
        offset = btf.offset(MEMBERS[macro])
        if offset is None:
            raise KernelLacks(f"this kernel has no {MEMBERS[macro]}: built without uprobes, or newer than refleak")
        offsets[macro] = offset
    return offsets
