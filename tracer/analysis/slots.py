"""Slots of references: where one is kept, and from where a put takes it, by what the code of their callers says.

A put of `p0@128` gives back what a get left in a word at 128 bytes of something: a member of the same place. What a
function was handed up and gives back is known by the call that returned it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from itertools import chain

from tracer.analysis.stacks import SymbolizedStacks
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.frames import Frame
from tracer.model.passed import (
    EITHER,
    LINKED,
    RETURNED,
    TAKEN_FROM,
    TOLD,
    UNKNOWN,
    Passed,
    container_of,
    distance_of,
    kept_at,
    parameter,
    result_of,
    within,
    without_shift,
)
from tracer.model.records import FRAME_BINARY_SHIFT

_DEEPEST = 6
"""Calls, from the get or put on, that are gone through."""
_IS_LOADED = late_pattern(r".*@(-?\d+)")
_ADDRESS = late_pattern(r"(?<![^ /><])([rgs])([0-9a-f]+)")
"""A value that begins with an address of its binary."""
_VARIABLE = late_pattern(r"g[0-9a-f]+")
_ONE_SLOT, _LINKED, _PERHAPS = 8.0, 2.0, 4.0
"""How much likelier a put is of a get that is known to fill the slot that it empties; that links the object in
somewhere, where the put is of a linked one; that may fill it."""
_OTHER_SLOT, _OTHER_VAGUE, _PERHAPS_OTHER, _UNTOLD = 0.25, 0.5, 0.7, 0.6
"""How much less, where the two slots differ, or seem to; where what the put empties is not known."""
_HELD, _NOT_HELD = 8.0, 0.5
"""The same of a get whose reference is still kept, where a slot that it fills holds the object, or only others do."""
_ELEMENT_OF = "in"
"""Begins the keys of containers: in which place of it an object is, nobody tells."""
_PARAMETERS = {parameter(number): number for number in range(TOLD)}
Keys = frozenset[str]
"""Keys of slots: equal for two that may be the same."""
_NONE: Keys = frozenset()


@dataclass(frozen=True)
class Kept:
    """Where a reference may be kept: where it is known to go, or else what it was taken of, which may be that."""

    known: Keys = _NONE
    perhaps: Keys = _NONE


class Slots:
    """`table`: of the stacks of gets and puts, whose frames say what calls pass. `caller`: the frame of a stack that
    the get or put itself was wanted by, beyond wrappers."""

    def __init__(
        self, table: SymbolizedStacks, caller: Callable[[int], Frame | None], births: Collection[int] = ()
    ) -> None:
        """`births`: stacks that make objects."""
        self._table, self._caller, self._births = table, caller, births
        self._of_get: dict[int, Kept] = {}
        self._of_put: dict[int, Keys] = {}
        self._known: dict[tuple[int, int], float] = {}
        self._binaries: dict[str | None, int] = {}

    def of_get(self, stack: int) -> Kept:
        """Return where a reference that was taken there may be kept."""
        if stack not in self._of_get:
            self._of_get[stack] = self._kept(stack)
        return self._of_get[stack]

    def of_put(self, stack: int) -> Keys:
        """Return from where a reference that is given back there comes."""
        if stack not in self._of_put:
            self._of_put[stack] = frozenset(self._origins(stack))
        return self._of_put[stack]

    def unemptied(self, get: int, puts: Collection[int], freed: Keys) -> int | None:
        """Return how far inside of a struct a get fills a member that went with a block that was `freed`, or that none
        of the puts is seen to empty; else None."""
        kept = self.of_get(get)
        if len(lost := (kept.known or kept.perhaps) & freed) == 1:
            return int(next(iter(lost))[1:])
        members = [key for key in kept.known - _VAGUE if key.startswith("@")]
        if len(members) != 1 or any(members[0] in self.of_put(put) for put in puts):
            return None
        return int(members[0][1:])

    def tells(self, get: int) -> bool:
        """Tell whether it is known, or likely, where such a reference is kept."""
        kept = self.of_get(get)
        return bool(_of_words(kept.known | kept.perhaps) - _VAGUE)

    def holding(self, get: int, held: Keys) -> float:
        """Return how much likelier a reference is still kept, where these slots hold the object."""
        kept = self.of_get(get)
        if not (kept.known | kept.perhaps).isdisjoint(held - _VAGUE):
            return _HELD
        return _NOT_HELD if _of_words(kept.known or kept.perhaps) - _VAGUE else 1.0

    def likelihood(self, get: int, put: int) -> float:
        """Return how much likelier a put is of what a get left in a slot, by what is known of both."""
        if (get, put) not in self._known:
            self._known[get, put] = _likelihood(self.of_get(get), self.of_put(put))
        return self._known[get, put]

    def is_one_variable(self, get: int, put: int) -> bool:
        """Tell whether a put is given what the very call returned that made, or took, a reference."""
        kept = self.of_get(get)
        named = kept.known | (kept.perhaps if get in self._births else _NONE)
        return any(key.startswith("r") for key in named & self.of_put(put))

    def keeper(self, stack: int) -> int | None:
        """Return the frame of a get, or a birth, whose function has the reference and does not hand it up: it neither
        returns it nor stores it where its caller said, and its caller did not give it the object. None where that is
        not known."""
        argument: int | None = 0
        is_result = True
        for number, (frame, passed, _) in enumerate(self._calls(stack)):
            if number == 0 and stack in self._births and not passed.kept_result:
                return None  # whether what it makes is what it returns is not seen
            value = without_shift(passed.arguments[argument]) if argument is not None else UNKNOWN
            fate = passed.kept_result if is_result else ()
            fate += passed.kept[argument] if argument is not None else ()
            if RETURNED in fate:
                argument, is_result = _PARAMETERS.get(value), True
            elif UNKNOWN in fate or any(word.startswith(("p", "s")) for word in fate):
                return None
            elif value in _PARAMETERS:
                argument, is_result = _PARAMETERS[value], False
            else:
                is_told = (is_result and argument is None) or value[:1] in ("r", "p")
                return self._table.get(stack).frames.index(frame) if is_told else None
        return None

    def _calls(self, stack: int) -> list[tuple[Frame, Passed, bool]]:
        """Return the calls of a stack up to the first of which nothing is known, leaf first, and whether each is by
        a wrapper."""
        found: list[tuple[Frame, Passed, bool]] = []
        caller, wraps = self._caller(stack), True
        for frame in self._table.get(stack).frames:
            wraps = wraps and frame is not caller
            if frame.inlined:
                continue
            if not frame.passes or len(found) == _DEEPEST:
                break
            passed = _read(frame.passes, self._binary(frame))
            if passed is None:
                break
            found.append((frame, passed, wraps))
        return found

    def _binary(self, frame: Frame) -> int:
        return self._binaries.setdefault(frame.path, len(self._binaries) + 1) << FRAME_BINARY_SHIFT

    def _kept(self, stack: int) -> Kept:
        """Follow a reference outwards: to the words that keep it, or to the call that returned it to a function which
        keeps it in a variable of its own."""
        argument: int | None = 0
        is_result = True
        known, elements = set[str](), set[str]()
        words: tuple[str, ...] = ()
        made = _NONE
        for frame, passed, wraps in self._calls(stack):
            words = tuple(within(word, passed.arguments) for word in words if word.startswith("p"))
            known.update(_keys(words))
            elements.update(_elements(words))
            if argument is None and not is_result:
                continue
            fate = passed.kept_result if is_result else ()
            if set(fate) <= {UNKNOWN} and argument is not None:
                fate = passed.kept[argument]
            value = without_shift(passed.arguments[argument]) if argument is not None else UNKNOWN
            words += tuple(word for word in fate if word not in (RETURNED, UNKNOWN) and not word.startswith(TAKEN_FROM))
            known.update(_keys(words))
            if is_result and known and RETURNED not in fate:
                known.add(result_of(frame.address | self._binary(frame)))
            elements.update(_elements(words))
            if RETURNED not in fate and not known and value not in _PARAMETERS:
                came = {result_of(frame.address | self._binary(frame))} if is_result else set()
                if argument is None:
                    return Kept(frozenset(came), frozenset(elements))
                taken = _elements(_taken_from(passed, argument))
                return Kept(perhaps=frozenset((*came, *_keys([value]), *elements, *taken)))
            if stack in self._births and is_result and RETURNED not in fate and not made:
                made = frozenset({result_of(frame.address | self._binary(frame))})
            argument, is_result = _PARAMETERS.get(value) if wraps and not known else None, RETURNED in fate
        return Kept(frozenset(known), frozenset(elements) or (_NONE if known else made))

    def _origins(self, stack: int) -> Iterator[str]:
        """Yield the keys of what a put is given, for each function on the way."""
        value = parameter(0)
        for _, passed, wraps in self._calls(stack):
            number = _PARAMETERS.get(without_shift(value))
            if number is not None:
                yield from _elements(_taken_from(passed, number))
            value = within(value, passed.arguments)
            if any(distance_of(one) < 0 and "@" in one for one in value.split(EITHER)):
                yield LINKED
            value = EITHER.join(without_shift(one) for one in value.split(EITHER))
            yield from _keys([value])
            if not value.startswith("p") or (value in _PARAMETERS and not wraps):
                return


def member(offset: int) -> str:
    """Return the key of a word so many bytes behind the start of something."""
    return f"@{offset}"


_VAGUE = frozenset({member(0), LINKED})
"""What many slots have in common."""


def _likelihood(kept: Kept, given: Keys) -> float:
    """From which container something is taken says nothing of other slots: what a function returned that was given one
    need not have been in it."""
    by_words = _by_words(kept, _of_words(given))
    both = kept.perhaps & given
    return max(by_words, _PERHAPS) if both != _of_words(both) else by_words


def _by_words(kept: Kept, given: Keys) -> float:
    if not given or not (kept.known or kept.perhaps):
        return _UNTOLD if kept.known - _VAGUE else 1.0
    if both := kept.known & given:
        return _ONE_SLOT if both - _VAGUE else _LINKED if LINKED in both else 1.0
    if both := kept.perhaps & given:
        return _PERHAPS if both - _VAGUE else 1.0
    if not kept.known:  # what is linked, or first in something, may be a container's
        return _PERHAPS_OTHER if _of_words(kept.perhaps) or given.isdisjoint(_VAGUE) else 1.0
    return _OTHER_SLOT if given - _VAGUE and kept.known - _VAGUE else _OTHER_VAGUE


@cache
def _read(text: str, binary: int) -> Passed | None:
    """Read what a call passes. `binary`: what tells its addresses from those of others."""
    return Passed.read(_ADDRESS.sub(lambda found: f"{found[1]}{int(found[2], 16) | binary:x}", text))


def _keys(values: Iterable[str]) -> Iterator[str]:
    for value in chain.from_iterable(value.split(EITHER) for value in values):
        if container_of(value) is not None:
            continue
        base, loads = value[:1], value.count("@")
        if value == LINKED or (base == "r" and not loads) or (base in ("s", "g") and loads == 1):
            yield value
        elif loaded := _IS_LOADED.fullmatch(value):
            yield member(int(loaded[1]))


def _elements(values: Iterable[str]) -> Iterator[str]:
    """Yield keys of the containers that values are elements of: where such a container, or what points at it, is."""
    for container in filter(None, map(container_of, values)):
        at = kept_at(container)
        if at is not None:
            yield f"{_ELEMENT_OF}{member(at)}"
        elif variable := _VARIABLE.match(container):
            yield f"{_ELEMENT_OF}{variable[0]}"


def _of_words(keys: Iterable[str]) -> Keys:
    """Return those of some keys that are of a word, of no container."""
    return frozenset(key for key in keys if not key.startswith(_ELEMENT_OF))


def _taken_from(passed: Passed, argument: int) -> list[str]:
    """Return the elements that an argument of a call may be."""
    return [word[len(TAKEN_FROM) :] for word in passed.kept[argument] if word.startswith(TAKEN_FROM)]
