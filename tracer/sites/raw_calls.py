"""Raw calls: where a program makes a process itself, past libc's fork and vfork, or ends past its _exit.

By `syscall(SYS_clone, ...)`, or by the instruction: what runs behind it is the child's first step. An end is where its
number is loaded (Go's runtime ends so). A place counts only if it is certain that an instruction begins there, since a
probe in the midst of one would break the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tracer.architecture.current import ARCHITECTURE
from tracer.architecture.instruction import NumberedCall
from tracer.elf.image import PF_X, PT_LOAD, Image
from tracer.elf.imported_slots import imported_slots
from tracer.elf.symbol_table import SymbolTable, read_symbol_table
from tracer.model.raw_calls import RawCalls
from tracer.sites.placement import LARGEST_FUNCTION

_FUNCTION = "syscall"
_FORKS, _END = ("clone", "clone3"), "exit_group"
_PIECE, _OVERLAP = 1 << 24, 128
_STUB_BYTES = 32
_LONGEST_INSTRUCTION = 15
_ALIGNMENT_OF_GO = 16


def find_raw_calls(image: Image) -> RawCalls:
    """Return where a binary makes these calls; none of a libc's own."""
    table = read_symbol_table(image)
    is_of_libc = bool(table.find("fork")) and bool(table.find("execve"))
    if image.machine != ARCHITECTURE.elf_machine or (is_of_libc and image.soname):
        return RawCalls()
    finder = _Finder(image, table, by_function=table.mentions(_FUNCTION), by_instruction=not is_of_libc)
    calls = list(finder.calls())
    return RawCalls(
        forks=_offsets(image, (call.behind for call in calls if not _is_end(call))),
        ends=_offsets(image, (call.loads_at for call in calls if _is_end(call))),
    )


def _offsets(image: Image, addresses: Iterable[int]) -> tuple[int, ...]:
    found = {image.file_offset_of(address) for address in addresses}
    return tuple(sorted(offset for offset in found if offset is not None))


def _is_end(call: NumberedCall) -> bool:
    return call.number == ARCHITECTURE.system_calls[_END]


class _Finder:
    def __init__(self, image: Image, table: SymbolTable, *, by_function: bool, by_instruction: bool) -> None:
        self._image, self._table = image, table
        self._by_function, self._by_instruction = by_function, by_instruction
        self._slots: Mapping[int, str] | None = None

    def calls(self) -> Iterator[NumberedCall]:
        """Yield those whose places are certain, and may be probed."""
        numbers = tuple(ARCHITECTURE.system_calls[name] for name in (*_FORKS, _END))
        for call in self._calls(numbers):
            if self._is_certain(call) and (_is_end(call) or self._may_be_probed(call.behind)):
                yield call

    def _calls(self, numbers: tuple[int, ...]) -> Iterator[NumberedCall]:
        for segment in self._image.segments:
            if segment.type != PT_LOAD or not segment.flags & PF_X:
                continue
            for at in range(0, segment.file_size, _PIECE):
                size = min(_PIECE + _OVERLAP, segment.file_size - at)
                code = bytes(self._image.data[segment.file_offset + at : segment.file_offset + at + size])
                yield from ARCHITECTURE.numbered_calls(
                    code, segment.link_address + at, numbers,
                    by_function=self._by_function, by_instruction=self._by_instruction,
                )  # fmt: skip

    def _is_certain(self, call: NumberedCall) -> bool:
        function = self._table.covering(call.loads_at)
        if call.is_function and not self._leads_to_function(call):
            return False
        if function is None:  # a call of what is far away, at just its distance, is no accident
            return call.is_function or self._is_of_go(call)
        code = self._code(function.address, min(function.size, LARGEST_FUNCTION))
        places = {line.address for line in ARCHITECTURE.lines_of(code, function.address)}
        return {call.loads_at, call.behind} <= places

    def _is_of_go(self, call: NumberedCall) -> bool:
        """Tell whether this is the whole of the function of Go's runtime that ends a process."""
        whole, before = ARCHITECTURE.exit_of_go
        start = call.loads_at - before
        return not start % _ALIGNMENT_OF_GO and self._code(start, len(whole)) == whole

    def _leads_to_function(self, call: NumberedCall) -> bool:
        if call.target is None:
            return self._is_slot_of_function(call.slot)
        if any(symbol.name == _FUNCTION for symbol in self._table.functions_at(call.target)):
            return True
        for line in ARCHITECTURE.lines_of(self._code(call.target, _STUB_BYTES), call.target):  # of the PLT
            if line.is_indirect_jump:
                return self._is_slot_of_function(ARCHITECTURE.slot_of(line))
            if line.name != "endbr64":
                return False
        return False

    def _is_slot_of_function(self, slot: int | None) -> bool:
        if self._slots is None:
            self._slots = imported_slots(self._image)
        return slot is not None and self._slots.get(slot) == _FUNCTION

    def _may_be_probed(self, address: int) -> bool:
        decoded = ARCHITECTURE.decode(self._code(address, _LONGEST_INSTRUCTION), address, 1)
        return bool(decoded) and decoded[0].name != "nop" and not ARCHITECTURE.is_refused(decoded[0].raw)

    def _code(self, address: int, size: int) -> bytes:
        offset = self._image.file_offset_of(address)
        return b"" if offset is None else bytes(self._image.data[offset : offset + size])
