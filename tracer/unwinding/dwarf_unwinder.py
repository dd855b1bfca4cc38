"""Walks a dumped stack with all registers and all rules of call frame information.

It takes the steps of the unwinder in BPF (bpf/unwind.bpf.h) that go by a rule, and those that the latter cannot. Code
without a rule ends it: of code that was made at run time the kernel side knows more. Registers are looked at only when
a step depends on them, and each word that one depends on must be one that the stack's id tells of: else other stacks
with the same id might go on differently.
"""

from __future__ import annotations

from collections.abc import Callable

from tracer.architecture.current import ARCHITECTURE
from tracer.binaries.open_binaries import OpenBinary
from tracer.cfi.call_frames import Fde
from tracer.cfi.evaluator import RegisterRow, Saved, Where
from tracer.cfi.expressions import computed
from tracer.cfi.fde_index import FrameIndex
from tracer.cfi.rows import RETURN_ADDRESS, STACK_POINTER
from tracer.cfi.unwind_table import ENTRY_BYTES, start_of
from tracer.late_dataclasses import dataclass
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, FRAME_EXACT, MAX_FRAMES, StackStatus
from tracer.model.snapshot import Stack
from tracer.unwinding.stack_dump import WORD_BYTES, StackDump, Unreadable

_MASK = (1 << 64) - 1
_PRESERVED = frozenset(ARCHITECTURE.preserved_registers)

FindCode = Callable[[int], tuple[OpenBinary, int] | None]
"""Finds the binary that is mapped at an address, and its bias."""
FrameIndexOf = Callable[[OpenBinary], FrameIndex]


@dataclass(frozen=True)
class Walked:
    """`places`: the stack pointer of each frame, bytes from that of the first."""

    stack: Stack
    places: tuple[int, ...]


class _End(Exception):
    def __init__(self, status: StackStatus) -> None:
        self.status = status


@dataclass(frozen=True)
class _Slot:
    """A value that stands at an address of the dump."""

    address: int


@dataclass(frozen=True)
class _Initial:
    """The value of a register where the walk begins."""

    value: int


_Value = int | _Slot | _Initial


@dataclass
class _Place:
    """Code at an address: which, and what describes its frame."""

    binary: OpenBinary
    link_address: int
    look: int
    """The link address that the call, not the return, is at."""
    function: Fde | None


class DwarfUnwinder:
    """One walk. `anonymous`: the id of code in no binary."""

    def __init__(self, dump: StackDump, find_code: FindCode, index_of: FrameIndexOf, anonymous: int) -> None:
        self._dump, self._find, self._index_of, self._anonymous = dump, find_code, index_of, anonymous
        self._registers: dict[int, _Value] = {n: _Initial(value) for n, value in dump.registers.items()}
        self._registers[STACK_POINTER] = dump.registers[STACK_POINTER]
        self._pc, self._is_caller, self._back = dump.ip, False, 0
        self._frames: list[int] = []
        self._places: list[int] = []

    def run(self) -> Walked | None:
        """Return the stack; None where it does not begin as the unwinder in BPF began it."""
        status = StackStatus.TRUNCATED
        try:
            if not self._begin():
                return None
            while len(self._frames) < MAX_FRAMES:
                self._step()
        except _End as end:
            status = end.status
        except Unreadable:
            status = StackStatus.FAULT
        except ValueError:
            status = StackStatus.UNSUPPORTED
        places = tuple(place - self._places[0] for place in self._places)
        return Walked(Stack(tuple(self._frames), status), places)

    def _begin(self) -> bool:
        """Go to the first frame: the caller of the probed function; at its return, or where it was inlined, the
        dump's own."""
        start = self._dump.start
        if start & FRAME_EXACT:
            self._back = self._pc - (start & FRAME_ADDRESS_MASK)
        elif start == self._pc:
            self._is_caller = True
        else:
            self._step()
            self._frames.clear()
            self._places.clear()
            return self._pc == start
        return True

    def _step(self) -> None:
        """Keep the frame at the current address and go to its caller; raises _End."""
        place = self._place()
        if place is None and self._undo_trampoline():
            return
        row = self._row(place)
        is_signal = place is not None and place.function is not None and place.function.signal
        self._keep(place, is_signal=is_signal)
        if row is None:
            raise _End(StackStatus.NO_TABLE)
        self._step_by_row(row, is_signal=is_signal)
        if not self._pc:
            raise _End(StackStatus.COMPLETE)

    def _place(self) -> _Place | None:
        look = self._pc - self._is_caller
        found = self._find(look)
        if found is None:
            return None
        binary, bias = found
        look = (look - bias) & _MASK
        return _Place(binary, (self._pc - bias) & _MASK, look, self._index_of(binary).find(look))

    def _undo_trampoline(self) -> bool:
        address = self._dump.pending.get(self._register(STACK_POINTER) - 8) if self._is_caller else None
        if address is None or address == self._pc:
            return False
        self._pc = address
        return True

    def _row(self, place: _Place | None) -> RegisterRow | None:
        if place is None:
            return None
        if place.function is None:
            entry = start_of(place.binary.image)
            if entry and entry <= place.look < entry + ENTRY_BYTES:
                return RegisterRow((STACK_POINTER, 8), {RETURN_ADDRESS: Saved(Where.UNDEFINED)})
            return None
        row = self._index_of(place.binary).row_at(place.function, place.look)
        if row is None or row.cfa is None:
            raise ValueError("its call frame instructions are not understood")
        return row

    def _keep(self, place: _Place | None, *, is_signal: bool) -> None:
        id_ = place.binary.id if place is not None else self._anonymous
        address = place.link_address if place is not None else self._pc
        exact = FRAME_EXACT if is_signal or not self._is_caller else 0
        self._frames.append(id_ << FRAME_BINARY_SHIFT | exact | ((address - self._back) & FRAME_ADDRESS_MASK))
        self._places.append(self._register(STACK_POINTER))
        self._back = 0

    def _step_by_row(self, row: RegisterRow, *, is_signal: bool) -> None:
        if row.saved.get(RETURN_ADDRESS) == Saved(Where.UNDEFINED):
            raise _End(StackStatus.COMPLETE)
        assert row.cfa is not None
        if isinstance(row.cfa, tuple):
            cfa = (self._register(row.cfa[0]) + row.cfa[1]) & _MASK
        else:
            cfa = computed(row.cfa, self._register, self._word)
        # What calls do not preserve is unknown in a caller; an interrupted function goes on with all of them.
        after = {n: v for n, v in self._registers.items() if n in _PRESERVED and n not in row.saved}
        after[STACK_POINTER] = cfa
        for number, saved in row.saved.items():
            try:
                value = self._value(saved, cfa)
            except (Unreadable, ValueError):
                continue  # lost, and perhaps nobody asks for it
            if value is not None:
                after[number] = value
        if RETURN_ADDRESS not in after:
            raise ValueError("where it returns to is not known")
        self._pc = self._resolved(after.pop(RETURN_ADDRESS))
        self._registers, self._is_caller = after, not is_signal

    def _value(self, saved: Saved, cfa: int) -> _Value | None:
        """Return a register's value in the caller; None where it is lost."""
        value = saved.value
        if saved.where is Where.UNDEFINED:
            return None
        if saved.where is Where.REGISTER and isinstance(value, int):
            return self._registers.get(value)
        if isinstance(value, int):
            address = (cfa + value) & _MASK
            return address if saved.where is Where.IS_OFFSET else _Slot(address)
        address = computed(value, self._register, self._word, cfa)
        return address if saved.where is Where.IS_EXPRESSION else _Slot(address)

    def _word(self, address: int, size: int = 8) -> int:
        """Read what the walk depends on; raises Unreadable, or ValueError where the stack's id does not tell of it."""
        if size != WORD_BYTES or address % WORD_BYTES:
            raise ValueError(f"{size} bytes at {address:#x} are no address")
        word = self._dump.word(address)
        return word if address in self._dump.pending else self._checked(word)

    def _checked(self, word: int) -> int:
        if not self._dump.tells(word):
            raise ValueError(f"{word:#x} is neither code nor stack")
        return word

    def _resolved(self, value: _Value) -> int:
        if isinstance(value, _Slot):
            return self._word(value.address)
        if isinstance(value, _Initial):
            return self._checked(value.value)
        return value

    def _register(self, number: int) -> int:
        if number == RETURN_ADDRESS:  # the expressions of .plt mean the address that they stand for
            return self._pc
        if number not in self._registers:
            raise ValueError(f"register {number} is lost")
        self._registers[number] = value = self._resolved(self._registers[number])
        return value
