"""Registers of x86-64, and what the calling convention makes of them."""

from __future__ import annotations

from enum import IntEnum


class Register(IntEnum):
    """DWARF's numbers of the x86-64 registers (System V ABI, AMD64 supplement, figure 3.36)."""

    RAX = 0
    RDX = 1
    RCX = 2
    RBX = 3
    RSI = 4
    RDI = 5
    RBP = 6
    RSP = 7
    R8 = 8
    R9 = 9
    R10 = 10
    R11 = 11
    R12 = 12
    R13 = 13
    R14 = 14
    R15 = 15


RETURN_ADDRESS = 16
"""What call frame information numbers the return address by."""
ARGUMENTS = (Register.RDI, Register.RSI, Register.RDX, Register.RCX, Register.R8, Register.R9)
PRESERVED = (
    Register.RBX, Register.RBP, Register.RSP, Register.R12, Register.R13, Register.R14, Register.R15,
)  # fmt: skip
WORDS = {
    Register.R15: 0, Register.R14: 1, Register.R13: 2, Register.R12: 3, Register.RBP: 4, Register.RBX: 5,
    Register.RSP: 19,
}  # fmt: skip
"""Of the preserved ones, their places in struct user_regs_struct and in struct pt_regs (sys/user.h)."""
PROGRAM_COUNTER_WORD = 16
SYSTEM_CALL_WORD = 15
"""orig_rax: the number of the system call that the thread is in, -1 outside of one."""
VECTOR_REGISTERS = 0x202, 1 << 14
"""NT_X86_XSTATE of ptrace(2) (elf.h), and bytes that are enough for it, tiles of AMX included: the vectors stand at
multiples of 8 (Intel SDM 1, 13.4)."""
RED_ZONE_BYTES = 128
"""Below the stack pointer, that a leaf function may use (System V ABI for x86-64, 3.2.2)."""
