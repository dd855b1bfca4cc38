"""Values that calls pass, and where what they return is kept, as the code around them says.

What leads to a call is read backwards, by all ways, to the instructions that give a register its value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from tracer.architecture.architecture import NO_EFFECTS, Effects
from tracer.architecture.x86_64.instructions import lines_of, pointer_register
from tracer.architecture.x86_64.registers import ARGUMENTS, PRESERVED, Register
from tracer.architecture.x86_64.written_registers import clears, moves, writes_memory, written
from tracer.late_patterns import late_pattern
from tracer.model.passed import (
    LINKED,
    NOWHERE,
    RETURNED,
    TAKEN_FROM,
    TOLD,
    UNKNOWN,
    Passed,
    at_frame,
    beside_code,
    distance_of,
    element_of,
    is_part_of,
    one_of,
    parameter,
    result_of,
    shifted,
    within,
    without_shift,
    word_at,
)

_RESULT = int(Register.RAX)
_ENDS = ("jmp", "ret", "hlt", "ud2", "int3")
_MEMORY = late_pattern(r"(?:(\w+) ptr )?\[(\w+)(?: ([+-]) (0x[0-9a-f]+|\d+))?\]")
_ELEMENT = late_pattern(r"qword ptr \[(\w+) \+ \w+\*8(?: [+-] (?:0x[0-9a-f]+|\d+))?\]")
_NUMBER = late_pattern(r"-?(?:0x[0-9a-f]+|\d+)")
_DEEPEST = 12
_FARTHEST = 2000
"""Instructions that are read backwards for one value."""
_SHORTLY = 16
"""Instructions in front of a call, among which its arguments are set."""
_MOST_CALLS = 64
"""Of one function, that are looked at for containers."""
_UNKNOWN_ORIGIN = -100
_STRUCT = 512
"""Bytes behind an address in the frame that is taken, which may be reached by it."""
_SECOND, _THIRD = (int(register) for register in ARGUMENTS[1:3])
_FRAME, _STACK = int(Register.RBP), int(Register.RSP)


class Function:
    """Read one function. `address`: where its code begins, as linked; `is_entry`: it is called there. `callees` tells
    what functions do, by their addresses."""

    def __init__(
        self, code: bytes, address: int, is_entry: bool, callees: Callable[[int], Effects] = lambda address: NO_EFFECTS
    ) -> None:
        self._callees = callees
        self._lines = list(lines_of(code, address))
        self._address, self._is_entry = address, is_entry
        self._writes = [frozenset(written(line)) for line in self._lines]
        self._behind = {line.end: place for place, line in enumerate(self._lines)}
        self._jumps_to: defaultdict[int | None, list[int]] = defaultdict(list)
        for place, line in enumerate(self._lines):
            if line.target is not None and line.name != "call":
                self._jumps_to[line.target].append(place)
        self._has_switch = any(line.is_indirect_jump for line in self._lines)
        self._values: dict[tuple[int, int], str] = {}
        self._known_origins: dict[tuple[int, int], frozenset[int]] = {}

    @property
    def instructions(self) -> int:
        return len(self._lines)

    def passed(self, return_address: int) -> Passed | None:
        """Return what the call before an address passes; None where there is none."""
        place = self._behind.get(return_address)
        if place is None or self._lines[place].name != "call":
            return None
        arguments = tuple(self._value(int(register), place) for register in ARGUMENTS[:TOLD])
        of = [self._origins(int(register), place) for register in ARGUMENTS[:TOLD]]
        objects = [origins | self._shifted_from(origins) for origins in of]
        each = zip(objects, map(without_shift, arguments), strict=True)
        kept = [(*self._kept(origins, value), *self._taken_from(origins)) for origins, value in each]
        result = frozenset({place})
        stored = {word for word, what in self._stored_by_others if not what.isdisjoint(result)}
        kept_result = dict.fromkeys((*sorted(stored), *self._kept(result, result_of(return_address))))
        return Passed(arguments, (*kept, tuple(kept_result)))

    def effects(self) -> Effects:
        """Return what it does with its parameters, itself."""
        stored = [(-1 - one, at) for at, what in self._stores for one in what if _UNKNOWN_ORIGIN < one < 0]
        words = {(number, word_at(at, 0)) for number, at in stored if at and distance_of(at)}
        returned = frozenset[int]().union(*self._returned) if self._is_entry else frozenset()
        given = next(iter(returned), 0) if len(returned) == 1 else 0
        changes = any(writes_memory(line) and not self._is_in_frame(line.operands) for line in self._lines)
        only = _UNKNOWN_ORIGIN < given < 0 and not changes
        return Effects(-1 - given if only else None, tuple(sorted(one for one in words if one[1] != NOWHERE)))

    def _kept(self, origins: frozenset[int], value: str) -> tuple[str, ...]:
        """Return what becomes of a value in the function. `origins`: the instructions that it comes from."""
        wanted = origins - {_UNKNOWN_ORIGIN}
        found = {word_at(at, 0) or UNKNOWN for at, what in self._stores if not what.isdisjoint(wanted)}
        found |= {UNKNOWN for what in self._perhaps_returned if not what.isdisjoint(wanted)}
        linked = any(self._shifted_from(what) & wanted for _, what in self._stores)
        returned = any(not what.isdisjoint(wanted) for what in self._returned)
        given_to = {self._container(place) for place, what in self._given_on if not what.isdisjoint(wanted)} - {NOWHERE}
        given_to = {element for element in given_to if not is_part_of(element, value)}
        return (*sorted(found), *sorted(given_to), *[LINKED] * linked, *[RETURNED] * returned)

    def _taken_from(self, origins: frozenset[int]) -> list[str]:
        """Return the elements of containers that a value may be: what a function returned that was given one, a word of
        an array, or one of a list's nodes."""
        found = set[str]()
        for place in origins:
            line = self._lines[place] if place >= 0 else None
            if line is not None and line.name == "call":
                found.add(self._container(place))
            elif line is not None and moves(line):
                source = line.operands.partition(", ")[2]
                if (match := _ELEMENT.fullmatch(source)) and (base := pointer_register(match[1])) is not None:
                    found.add(element_of(self._value(base, place)))
                elif (match := _MEMORY.fullmatch(source)) and (base := pointer_register(match[2])) is not None:
                    found |= self._lists_of(base, place)
        return [TAKEN_FROM + element for element in sorted(found - {NOWHERE})]

    def _lists_of(self, register: int, place: int) -> set[str]:
        """Return elements of the lists whose nodes a register goes through: what a container's function returns, or
        what begins elsewhere and goes on to a word of itself."""
        nodes = {at for at in self._origins(register, place) if at >= 0}
        loads = {at: self._loaded_by(at) for at in nodes if moves(self._lines[at])}
        on = {at for at, base in loads.items() if base is not None and not self._origins(base, at).isdisjoint(nodes)}
        first = {self._container(at) for at in nodes if self._lines[at].name == "call"}
        for at in loads.keys() - on if on else ():
            to = pointer_register(self._lines[at].operands.partition(", ")[0])
            first.add(NOWHERE if to is None else element_of(self._made(to, at, 0)))
        return first

    def _loaded_by(self, place: int) -> int | None:
        """Return the register by which an instruction loads a word."""
        match = _MEMORY.fullmatch(self._lines[place].operands.partition(", ")[2])
        return pointer_register(match[2]) if match else None

    def _container(self, place: int) -> str:
        """Return an element of what a call is given first, where that may be a container."""
        return element_of(self._value(int(ARGUMENTS[0]), place))

    @cached_property
    def _stored_by_others(self) -> list[tuple[str, frozenset[int]]]:
        """Of what is stored by functions that are called the word, and where its value comes from."""
        found = []
        for place, line in enumerate(self._lines):
            effects = self._callees(line.target) if line.name == "call" and line.target is not None else NO_EFFECTS
            arguments = [self._value(int(one), place) for one in ARGUMENTS] if effects.stores else []
            for number, word in effects.stores:
                if number < len(ARGUMENTS) and self._is_set(register := int(ARGUMENTS[number]), place):
                    found.append((within(word, arguments), self._origins(register, place)))
        return [one for one in found if one[0] not in (NOWHERE, UNKNOWN)]

    @cached_property
    def _given_on(self) -> list[tuple[int, frozenset[int]]]:
        """Of calls where what they are given second or third comes from."""
        calls = [place for place, line in enumerate(self._lines) if line.name == "call"][:_MOST_CALLS]
        given = [(place, register) for place in calls for register in (_SECOND, _THIRD)]
        return [(place, self._origins(register, place)) for place, register in given if self._is_set(register, place)]

    def _is_set(self, register: int, place: int) -> bool:
        """Tell whether a register is given a value shortly before a call: it may be of no meaning for that."""
        for at in range(place - 1, max(place - _SHORTLY, -1), -1):
            if self._lines[at].name == "call":
                return False
            if register in self._writes[at]:
                return True
        return False

    def _shifted_from(self, origins: frozenset[int]) -> frozenset[int]:
        """Return where what addresses are relative to comes from."""
        found = frozenset[int]()
        for place in origins:
            line = self._lines[place] if place >= 0 else None
            if line is not None and line.name in ("lea", "add"):
                to, _, source = line.operands.partition(", ")
                match = _MEMORY.fullmatch(source) if line.name == "lea" else None
                base = pointer_register(match[2] if match else to)
                if base not in (None, _STACK, _FRAME):
                    found |= self._origins(base, place)
        return found

    @cached_property
    def _returned(self) -> list[frozenset[int]]:
        places = (place for place, line in enumerate(self._lines) if line.name == "ret")
        found = [self._origins(_RESULT, place) for place in places]
        ends = ((place, self._callees(target).returns) for place, target in self._ends)
        return found + [self._origins(int(ARGUMENTS[one]), place) for place, one in ends if one is not None]

    @cached_property
    def _perhaps_returned(self) -> list[frozenset[int]]:
        """Where what is given to functions comes from that it ends by a jump to."""
        ends = [place for place, target in self._ends if self._callees(target).returns is None]
        given = [(int(one), place) for place in ends for one in ARGUMENTS[:TOLD] if self._is_set(int(one), place)]
        return [self._origins(register, place) for register, place in given]

    @cached_property
    def _ends(self) -> list[tuple[int, int]]:
        """Return jumps to other functions, and these."""
        own = range(self._address, self._lines[-1].end if self._lines else self._address)
        jumps = ((place, line.target) for place, line in enumerate(self._lines) if line.name == "jmp")
        return [(place, target) for place, target in jumps if target is not None and target not in own]

    @cached_property
    def _stores(self) -> list[tuple[str, frozenset[int]]]:
        """Of each register that is stored the address, and the instructions that its value comes from."""
        stored = ((self._address_of(to, place), register, place) for to, register, place in self._stored_registers)
        return [(at, self._origins(register, place)) for at, register, place in stored if not self._is_own(at)]

    @cached_property
    def _stored_registers(self) -> list[tuple[str, int, int]]:
        """Of each register that is stored whole the operand, its number, and the place."""
        found = []
        for place, line in enumerate(self._lines):
            to, _, source = line.operands.partition(", ")
            register = pointer_register(source)
            if line.name == "mov" and to.startswith("qword ptr [") and register is not None:
                found.append((to, register, place))
        return found

    def _is_own(self, address: str) -> bool:
        """Tell whether a word is a variable of the function's own, that nobody else reaches."""
        if not address.startswith("s") or "@" in address:
            return False
        at = distance_of(address)
        return not any(at - _STRUCT < distance_of(given) <= at for given in self._given)

    @cached_property
    def _frame_pointer(self) -> bool:
        return any(line.name == "mov" and line.operands == "rbp, rsp" for line in self._lines[:8])

    @cached_property
    def _steady(self) -> bool:
        """Whether the stack pointer is the same from the prologue on."""
        names = [line.operands.partition(",")[0] if line.name in ("sub", "add") else line.name for line in self._lines]
        begun = next((place for place, name in enumerate(names) if name == "rsp"), len(names))
        return "push" not in names[begun:]

    def _value(self, register: int, place: int, depth: int = 0) -> str:
        """Return what a register holds before the instruction at a place."""
        key = register, place
        if key not in self._values:
            self._values[key] = UNKNOWN  # a ring
            if depth < _DEEPEST:
                made = {self._made(register, at, depth) for at in self._definitions(register, place)}
                self._values[key] = one_of(made)
        return self._values[key]

    def _origins(self, register: int, place: int, depth: int = 0) -> frozenset[int]:
        """Return the instructions that a register's value comes from, past those that copy it: their places, -1 - n for
        the function's parameter n."""
        key = register, place
        if key not in self._known_origins:
            self._known_origins[key] = frozenset()  # a ring
            found = set[int]()
            for at in self._definitions(register, place):
                copied = self._copied(at) if depth < _DEEPEST else []
                for source, where in copied:
                    found |= self._origins(source, where, depth + 1)
                found.update(() if copied else (at,))
            self._known_origins[key] = frozenset(found)
        return self._known_origins[key]

    def _copied(self, place: int) -> list[tuple[int, int]]:
        """Return the registers that an instruction copies whole, and where: by a variable of the function's own too."""
        line = self._lines[place] if place >= 0 else None
        if line is not None and line.name == "call" and line.target is not None:
            number = self._callees(line.target).returns
            return [] if number is None else [(int(ARGUMENTS[number]), place)]
        if line is None or not moves(line):
            return []
        to, _, source = line.operands.partition(", ")
        if pointer_register(to) is None:
            return []
        if (register := pointer_register(source)) is not None:
            return [(register, place)]
        if not self._is_in_frame(source):
            return []
        at = self._address_of(source, place)
        return self._variables.get(at, []) if self._is_own(at) else []

    def _definitions(self, register: int, place: int) -> set[int]:
        """Return the instructions that may have given a register its value, by all ways that lead to a place; what
        clears it is none. As `_origins` numbers them."""
        found, seen, ways, left = set[int](), set[int](), [place], _FARTHEST
        while ways:
            at: int | None = ways.pop()
            while at is not None:
                left -= 1
                if left == 0:
                    return {_UNKNOWN_ORIGIN}
                sources = self._jumps_to.get(self._lines[at].address, ())
                if sources:
                    if at in seen:
                        break
                    seen.add(at)
                    ways += sources
                at = self._before(register, at, bool(sources), found)
        return found

    def _before(self, register: int, at: int, is_target: bool, found: set[int]) -> int | None:
        """Go one instruction back; None where that gives the register its value, and is added to those found, or where
        none leads from there."""
        if at == 0:
            if not self._is_entry:
                found.add(_UNKNOWN_ORIGIN)
            elif register in ARGUMENTS:
                found.add(-1 - ARGUMENTS.index(Register(register)))
            return None
        before = self._lines[at - 1]
        if before.name in _ENDS:
            if self._has_switch and not is_target and not self._lines[at].is_padding:
                found.add(_UNKNOWN_ORIGIN)
            return None
        if before.name == "call" and register not in PRESERVED:
            if register == _RESULT:
                found.add(at - 1)
            # Who knows what is called reads others behind it too; behind one that does not come back nobody does.
            return None if register == _RESULT or is_target else at - 1
        if register not in self._writes[at - 1]:
            return at - 1
        if not clears(before):
            found.add(at - 1)
        return at - 1 if before.name.startswith("cmov") else None

    def _made(self, register: int, place: int, depth: int) -> str:
        """Return what an instruction gives a register, numbered as by `_origins`."""
        if place < 0:
            return UNKNOWN if place == _UNKNOWN_ORIGIN else parameter(-1 - place)
        line = self._lines[place]
        if line.name == "call" and not self._copied(place):
            return result_of(line.end)
        to, _, source = line.operands.partition(", ")
        if line.name != "call" and pointer_register(to) != register:
            return UNKNOWN
        if copied := self._copied(place):
            return one_of({self._value(source, where, depth + 1) for source, where in copied})
        if moves(line) and source.startswith("qword ptr ["):
            return word_at(self._address_of(source, place, depth), 0) or UNKNOWN
        if line.name == "lea":
            return self._address_of(source, place, depth) or UNKNOWN
        if line.name in ("add", "sub") and _NUMBER.fullmatch(source):
            number = int(source, 0) if line.name == "add" else -int(source, 0)
            return shifted(self._value(register, place, depth + 1), number) or UNKNOWN
        return UNKNOWN

    @cached_property
    def _variables(self) -> dict[str, list[tuple[int, int]]]:
        """Of each word of the frame the registers that are stored there, and where."""
        found = defaultdict(list)
        for to, register, place in self._stored_registers:
            if self._is_in_frame(to):
                found[self._address_of(to, place)].append((register, place))
        return found

    @cached_property
    def _given(self) -> set[str]:
        """Addresses in the frame that are taken."""
        places = (place for place, line in enumerate(self._lines) if line.name == "lea")
        taken = ((self._lines[place].operands.partition(", ")[2], place) for place in places)
        found = {self._address_of(source, place) for source, place in taken if self._is_in_frame(source)}
        return {address for address in found if address.startswith("s")}

    def _is_in_frame(self, memory: str) -> bool:
        """Tell whether an operand is in the function's frame. Only such ones are asked for to know its variables."""
        base = memory.removeprefix("qword ptr ")[:4]
        return base == "[rsp" or (base == "[rbp" and self._frame_pointer)

    def _address_of(self, memory: str, place: int, depth: int = 0) -> str:
        """Return the address of an operand."""
        match = _MEMORY.fullmatch(memory)
        if match is None:
            return NOWHERE
        distance = int(match[4], 0) * (-1 if match[3] == "-" else 1) if match[4] else 0
        if match[2] == "rip":
            return beside_code(self._lines[place].end + distance)
        base = pointer_register(match[2])
        if base is None:
            return NOWHERE
        if base == _STACK or (base == _FRAME and self._frame_pointer):
            known = base == _FRAME or (self._steady and not self._frame_pointer)
            return at_frame(self._address, distance) if known else NOWHERE
        return shifted(self._value(base, place, depth + 1), distance)
