"""Callees in the heap: which of its functions a call is for, by the code before its return address.

An `operator delete` is gone from the stack where it jumps to `free`, and so is a function that jumps to it. The call
that is left on the stack names the first of these functions, by a direct call or through a slot of the binary's.
Encodings: Intel's manual, volume 2, CALL, JMP, Jcc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from tracer.architecture.current import ARCHITECTURE
from tracer.elf.image import Image
from tracer.elf.imported_slots import imported_slots
from tracer.elf.symbol_table import Symbol
from tracer.late_patterns import late_pattern
from tracer.model.frames import BY_JUMP
from tracer.symbols.indirect_calls import path_of_call
from tracer.symbols.source import Source

OPERATOR = late_pattern(r"_Zn[wa]m(St11align_val_t)?(RKSt9nothrow_t)?|_Zd[la]Pvm?(St11align_val_t)?(RKSt9nothrow_t)?")
_C = frozenset({
    "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc",
    "free", "cfree", "free_sized", "free_aligned_sized",
})  # fmt: skip
_UNKNOWN = frozenset({""})
_INDIRECT = {
    2: late_pattern(rb"\xff[\x10-\x13\x16\x17\xd0-\xd7]"),
    3: late_pattern(rb"\xff(?:[\x50-\x53\x55-\x57].|\x14.)", re.DOTALL), 4: late_pattern(rb"\xff\x54..", re.DOTALL),
    6: late_pattern(rb"\xff[\x90-\x93\x95-\x97\x15].{4}", re.DOTALL), 7: late_pattern(rb"\xff\x94.{5}", re.DOTALL),
}  # fmt: skip
"""Calls through a register or memory, by their length without prefixes."""
_LONGEST_CALL = max(_INDIRECT)
_LARGEST, _DEEPEST = 4096, 4
"""Of functions that are looked through for jumps, and of jumps behind each other."""

Names = frozenset[str]


class Callees:
    """Look into the code of one binary. What is not certain has the name "".

    `is_hidden`: of a binary with operators of its own, whether the jump at an address may be one of theirs, inlined
    there. That is asked of jumps to the heap.
    """

    def __init__(self, source: Source, is_hidden: Callable[[int], bool] | None = None) -> None:
        self._source, self._is_hidden = source, is_hidden
        self._known: dict[int, Names] = {}

    @cached_property
    def _image(self) -> Image | None:
        return self._source.ran

    @cached_property
    def _slots(self) -> Mapping[int, str]:
        return {} if self._image is None else imported_slots(self._image)

    def of(self, return_address: int) -> str | None:
        """Return the names of the heap's functions that the call may have led to, with "|" in between.

        None where it may have led elsewhere, or where that is not known.
        """
        return _certain(self._called(self._code(return_address - 6, 6), return_address))

    def entered_at(self, address: int) -> str | None:
        """Return the same of calls of what begins at the address; after BY_JUMP, if that has a name of its own."""
        names = _certain(self._at(address, 0))
        return names if names is None or self._is_of_heap_at(address) else f"{BY_JUMP}{names}"

    def by_pointer(self, return_address: int) -> str | None:
        """Return how an indirect call gets its address, as Frame.calls has it; None of any other call, or if that is
        not certain."""
        function = self._source.covering(return_address - 1)
        if function is None:
            return None
        return path_of_call(self._code(function.address, function.size), function.address, return_address)

    def goes_through_pointer(self, return_address: int) -> bool:
        """Tell whether an indirect call stands before the address, in code that no symbol covers. What could be a
        direct one there is taken for one."""
        if self._source.covering(return_address - 1) is not None:
            return False
        code = self._code(return_address - _LONGEST_CALL, _LONGEST_CALL)
        if len(code) < _LONGEST_CALL:
            return False
        target = return_address + int.from_bytes(code[-4:], "little", signed=True)
        is_direct = code[-5] == 0xE8 and self._is_code(target)
        return not is_direct and any(_INDIRECT[size].fullmatch(code[-size:]) for size in _INDIRECT)

    def _called(self, call: bytes, end: int) -> Names:
        if len(call) < 6:
            return _UNKNOWN
        operand = int.from_bytes(call[2:], "little", signed=True)
        if call[:2] == b"\xff\x15":
            return self._in_slot(end + operand)
        return self._at(end + operand, 0) if call[1] == 0xE8 else _UNKNOWN

    def _in_slot(self, slot: int) -> Names:
        name = self._slots.get(slot, "")
        return frozenset({name}) if _is_of_heap(name) else _UNKNOWN

    def _at(self, address: int, depth: int) -> Names:
        if address not in self._known:
            self._known[address] = _UNKNOWN  # a ring of jumps
            self._known[address] = self._found_at(address, depth)
        return self._known[address]

    def _found_at(self, address: int, depth: int) -> Names:
        slot = self._slot_of_stub(address)
        if slot is not None:
            return self._in_slot(slot)
        symbols = self._functions_at(address)
        names = _of_heap(symbols)
        if names or not symbols or depth >= _DEEPEST:
            return names or _UNKNOWN
        return self._jumped_to(max(symbols, key=lambda symbol: symbol.size), depth)

    def _is_of_heap_at(self, address: int) -> bool:
        functions = self._functions_at(address)
        return bool(_of_heap(functions)) or (not functions and self._slot_of_stub(address) is not None)

    def _functions_at(self, address: int) -> list[Symbol]:
        return [symbol for table in self._source.tables for symbol in table.functions_at(address)]

    def _slot_of_stub(self, address: int) -> int | None:
        """Return the slot by which the code jumps on at once, as a stub of the PLT does."""
        code = self._code(address, 16)
        stub = code[4:] if code[:4] == b"\xf3\x0f\x1e\xfa" else code
        skipped = len(code) - len(stub) + (stub[:1] == b"\xf2")
        stub = code[skipped:]
        if stub[:2] != b"\xff\x25" or len(stub) < 6:
            return None
        return address + skipped + 6 + int.from_bytes(stub[2:6], "little", signed=True)

    def _jumped_to(self, function: Symbol, depth: int) -> Names:
        """Return where a function may jump to."""
        if function.size > _LARGEST:
            return _UNKNOWN
        code = self._code(function.address, function.size)
        names: set[str] = set()
        for at, target, is_slot in _jumps(code, function.address):
            found: Names = frozenset()
            if is_slot:
                found = self._in_slot(target)
            elif not function.address <= target < function.address + function.size and self._is_code(target):
                found = self._at(target, depth + 1)
            if found - _UNKNOWN and self._is_hidden is not None and self._is_hidden(at):
                return _UNKNOWN
            names |= found
        return frozenset(names) or _UNKNOWN

    def _is_code(self, address: int) -> bool:
        return self._image is not None and self._image.is_code(address)

    def _code(self, address: int, size: int) -> bytes:
        return b"" if self._image is None else self._image.bytes_at(address, size)


def _certain(names: Names) -> str | None:
    return None if "" in names or not names else "|".join(sorted(names))


def _of_heap(symbols: Iterable[Symbol]) -> Names:
    """Return the names of those that are of the heap; `cfree` is a name that C no longer has for `free`."""
    names = frozenset(symbol.name for symbol in symbols if _is_of_heap(symbol.name))
    return names - {"cfree"} if "free" in names else names


def _is_of_heap(name: str) -> bool:
    return name in _C or OPERATOR.fullmatch(name) is not None


def _jumps(code: bytes, start: int) -> Iterator[tuple[int, int, bool]]:
    """Yield of the jumps of a function where each is, its target, and whether that is a slot: 0 for one in none.

    Where the code is not all instructions, or one of its jumps leads into the midst of another, whatever could be a
    jump, at whatever byte, is taken for one.
    """
    lines = list(ARCHITECTURE.lines_of(code, start))
    places = {line.address for line in lines}
    inside = (line.target for line in lines if line.target is not None and start <= line.target < start + len(code))
    if not lines or lines[-1].end != start + len(code) or not places.issuperset(inside):
        yield from _anywhere(code, start)
        return
    for line in lines:
        if line.is_indirect_jump:
            yield line.address, ARCHITECTURE.slot_of(line) or 0, True
        elif line.target is not None and line.name != "call":
            yield line.address, line.target, False


def _anywhere(code: bytes, start: int) -> Iterator[tuple[int, int, bool]]:
    for at, byte in enumerate(code):
        after = code[at + 1] if at + 1 < len(code) else 0
        if byte == 0xE9:
            yield start + at, _target(code, start, at + 1, 4), False
        elif byte == 0x0F and after & 0xF0 == 0x80:
            yield start + at, _target(code, start, at + 2, 4), False
        elif byte == 0xEB or byte & 0xF0 == 0x70:
            yield start + at, _target(code, start, at + 1, 1), False
        elif byte == 0xFF and after >> 3 & 7 == 4:
            yield start + at, (_target(code, start, at + 2, 4) if after == 0x25 else 0), True


def _target(code: bytes, start: int, at: int, size: int) -> int:
    """Return where a jump goes whose operand is at `at`; what is cut off by the function's end is none: its start."""
    operand = code[at : at + size]
    return start + at + size + int.from_bytes(operand, "little", signed=True) if len(operand) == size else start
