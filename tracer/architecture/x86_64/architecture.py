"""x86-64 as an Architecture."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.architecture.x86_64 import frames, instruction_classes, instructions, passed_values, registers, timed_code
from tracer.architecture.x86_64.registers import Register
from tracer.architecture.x86_64.system_calls import EXIT_OF_GO, NUMBERS, behind_system_call, numbered_calls


class X86:
    """64-bit x86, with the System V ABI."""

    elf_machine = 62
    stack_pointer = int(Register.RSP)
    frame_pointer = int(Register.RBP)
    return_address = registers.RETURN_ADDRESS
    argument_registers = registers.ARGUMENTS
    result_register = int(Register.RAX)
    preserved_registers = registers.PRESERVED
    register_words: Mapping[int, int] = {int(register): word for register, word in registers.WORDS.items()}
    program_counter_word = registers.PROGRAM_COUNTER_WORD
    system_call_word = registers.SYSTEM_CALL_WORD
    vector_registers = registers.VECTOR_REGISTERS
    red_zone_bytes = registers.RED_ZONE_BYTES
    plt_expression = (frames.PLT, frames.PLT_LIMIT_AT)
    signal_frame = frames.SIGNAL_FRAME
    system_calls = NUMBERS
    timed_code = timed_code.TIMED_CODE
    register_of = staticmethod(instructions.pointer_register)
    prepare_to_decode = staticmethod(instructions.prepare_to_decode)
    decode = staticmethod(instructions.decode)
    lines_of = staticmethod(instructions.lines_of)
    read_function = staticmethod(passed_values.Function)
    flow_of = staticmethod(instructions.flow_of)
    address_of = staticmethod(instructions.address_of)
    slot_of = staticmethod(instructions.slot_of)
    is_same_anywhere = staticmethod(instructions.is_same_anywhere)
    classify = staticmethod(instruction_classes.classify)
    is_refused = staticmethod(instruction_classes.is_refused)
    behind_system_call = staticmethod(behind_system_call)
    numbered_calls = staticmethod(numbered_calls)
    exit_of_go = EXIT_OF_GO

    def name_of(self, register: int) -> str:
        return Register(register).name.lower()
