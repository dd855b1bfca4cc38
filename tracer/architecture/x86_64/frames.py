"""Expressions of call frame information that only x86-64 has: those of the linker's .plt and of signal frames."""

from __future__ import annotations

PLT = bytes.fromhex("7708 8000 3f 1a 30 2a 33 24 22")
"""rsp + 8 + ((rip & 15) >= N) << 3: the linker's expression for .plt, N in byte 6 (binutils, elfxx-x86)."""
PLT_LIMIT_AT = 6
SIGNAL_FRAME = (bytes.fromhex("77a001 06"), bytes.fromhex("77f800"), bytes.fromhex("77a801"))
"""CFA, frame pointer and return address: registers 15, 10 and 16 of the ucontext at rsp (glibc,
sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c)."""
