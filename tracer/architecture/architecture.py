"""Protocol of an architecture: all that refleak has to know of the processor whose programs it traces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from tracer.architecture.instruction import Flow, Instruction, InstructionClass, Line, NumberedCall
from tracer.late_dataclasses import dataclass
from tracer.model.passed import Passed


@dataclass(frozen=True)
class TimedCode:
    """Code whose probes are timed, to learn what each class of instruction costs."""

    samples: Mapping[str, tuple[bytes, int]]
    """Class of instruction to (a function, offset of the instruction in it)."""
    may_be_refused: Collection[str]
    """Classes that some kernels let nobody probe."""
    may_be_rewritten: Collection[str]
    """Classes that some kernels make a call of, in the memory of who hits the probe."""
    snippet: Callable[[bytes], bytes]
    """Gives code that calls a function as often as its own argument says."""
    snippet_bytes: int
    function_at: int
    """Where in a snippet its function is."""
    trap: bytes
    """One byte that nobody may run into."""


@dataclass(frozen=True)
class Effects:
    """What a function does with what it is given, as far as is seen in its own code."""

    returns: int | None = None
    """The parameter that it returns whatever happens, where it changes nothing: as a checked cast does."""
    stores: tuple[tuple[int, str], ...] = ()
    """Numbers of parameters, and words where it stores them, as texts that say how it comes by them."""


NO_EFFECTS = Effects()


class CodeOfFunction(Protocol):
    """Code of one function, decoded."""

    @property
    def instructions(self) -> int: ...

    def passed(self, return_address: int) -> Passed | None:
        """Return what the call before an address passes; None where there is none."""
        ...

    def effects(self) -> Effects:
        """Return what it does with its parameters."""
        ...


class Architecture(Protocol):
    """Registers are DWARF numbers."""

    @property
    def elf_machine(self) -> int:
        """Return e_machine of its programs."""
        ...

    @property
    def stack_pointer(self) -> int: ...

    @property
    def frame_pointer(self) -> int: ...

    @property
    def return_address(self) -> int:
        """Return the column of call frame information for it."""
        ...

    @property
    def argument_registers(self) -> Sequence[int]:
        """Return those of a function's integer arguments, in their order; what follows is on the stack."""
        ...

    @property
    def result_register(self) -> int:
        """Return that of a function's integer result, which compilers take first where they need one."""
        ...

    @property
    def preserved_registers(self) -> Sequence[int]:
        """Return those that a call leaves as they were."""
        ...

    @property
    def register_words(self) -> Mapping[int, int]:
        """Return where ptrace and the kernel side put the preserved ones, in words."""
        ...

    @property
    def program_counter_word(self) -> int: ...

    @property
    def system_call_word(self) -> int:
        """Return where ptrace says which system call a thread is in: -1 outside of one."""
        ...

    @property
    def vector_registers(self) -> tuple[int, int]:
        """Return the number of ptrace's set of registers with the vectors, and bytes that are enough for it."""
        ...

    @property
    def red_zone_bytes(self) -> int:
        """Return how much below the stack pointer a function may use."""
        ...

    @property
    def plt_expression(self) -> tuple[bytes, int]:
        """Return the linker's expression for the CFA in .plt, and where in it its limit is."""
        ...

    @property
    def signal_frame(self) -> tuple[bytes, bytes, bytes]:
        """Return the expressions for CFA, frame pointer and return address in a signal frame."""
        ...

    @property
    def system_calls(self) -> Mapping[str, int]: ...

    @property
    def exit_of_go(self) -> tuple[bytes, int]:
        """The code of the function of Go's runtime that ends a process, and where in it the number is loaded."""
        ...

    @property
    def timed_code(self) -> TimedCode: ...

    def name_of(self, register: int) -> str:
        """Return the register's name, as assemblers write it."""
        ...

    def register_of(self, name: str) -> int | None:
        """Return the register that holds a pointer, by its name."""
        ...

    def prepare_to_decode(self) -> None:
        """Have what decodes instructions read from disk, and do not wait: it is needed while somebody is held."""
        ...

    def decode(self, code: bytes, address: int, count: int) -> list[Instruction]:
        """Return up to `count` instructions; fewer where the bytes end or make no sense."""
        ...

    def lines_of(self, code: bytes, address: int) -> Iterator[Line]:
        """Yield the instructions of a function; ends before its end where bytes do not decode."""
        ...

    def read_function(
        self, code: bytes, address: int, is_entry: bool, callees: Callable[[int], Effects] = ...
    ) -> CodeOfFunction:
        """Decode a function. `address`: where its code begins, as linked; `is_entry`: it is called there."""
        ...

    def flow_of(self, code: bytes, address: int) -> Flow:
        """Return the branch targets of a whole function."""
        ...

    def address_of(self, line: Line) -> int | None:
        """Return the address beside the code that an instruction takes, if it takes one."""
        ...

    def slot_of(self, line: Line) -> int | None:
        """Return the address beside the code where an indirect jump reads where to go, if it is one that does."""
        ...

    def is_same_anywhere(self, instruction: Instruction) -> bool:
        """Tell whether an instruction's bytes do not depend on where it stands."""
        ...

    def classify(self, raw: bytes) -> InstructionClass:
        """Return the class of one whole instruction by its bytes."""
        ...

    def is_refused(self, raw: bytes) -> bool:
        """Tell whether kernels refuse a probe on this instruction, but for some nops that newer ones take."""
        ...

    def behind_system_call(self, code: bytes, numbers: tuple[int, ...], most_between: int = 0) -> int | None:
        """Return where the code goes on behind the first of these system calls, or None if there is none."""
        ...

    def numbered_calls(
        self, code: bytes, address: int, numbers: tuple[int, ...], *, by_function: bool, by_instruction: bool
    ) -> Iterator[NumberedCall]:
        """Yield what looks like a system call of one of these numbers, by libc's `syscall` or by the instruction."""
        ...
