"""The machine code that the kernel made of BPF programs."""

from __future__ import annotations

import ctypes
import struct

from tracer.kernel.bpf import bpf

_GET_INFO = 15
"""BPF_OBJ_GET_INFO_BY_FD of enum bpf_cmd (include/uapi/linux/bpf.h)."""
_INFO_BYTES, _CODE_LENGTH, _CODE = 232, 16, 24
"""Size of struct bpf_prog_info, and offsets of jited_prog_len and jited_prog_insns in it."""
_THIS_PROCESSORS_STACK = bytes.fromhex("654c030c25")
"""add r9, gs:[...]: begins a function that has one stack per processor (emit_priv_frame_ptr, bpf_jit_comp.c)."""


def code_of(program_fd: int) -> bytes:
    """Return the code of a program, all its functions."""
    length = struct.unpack_from("<I", _info(program_fd), _CODE_LENGTH)[0]
    code = ctypes.create_string_buffer(length)
    _info(program_fd, length, ctypes.addressof(code))
    return code.raw


def _info(program_fd: int, length: int = 0, place: int = 0) -> bytes:
    info = ctypes.create_string_buffer(_INFO_BYTES)
    struct.pack_into("<I", info, _CODE_LENGTH, length)
    struct.pack_into("<Q", info, _CODE, place)
    bpf(_GET_INFO, struct.pack("<IIQ", program_fd, _INFO_BYTES, ctypes.addressof(info)))
    return info.raw


def shares_its_stack(program_fd: int) -> bool:
    """Tell whether the kernel gave a program one stack per processor, for all threads that run it there."""
    return _THIS_PROCESSORS_STACK in code_of(program_fd)
