"""Passed values: what calls are given and where it is kept, as texts that say how the code comes by them.

A value is where it begins and what is done with that: `p0@128` is the word at 128 bytes from what the function's first
parameter points at, `r1a9eb9` what the call returned that goes on at 0x1a9eb9, `g7f0010` the address 0x7f0010 in the
binary, `s1a9e70-64` one 64 bytes below the frame of the function at 0x1a9e70, `?+88` 88 bytes behind what is not known.
`p0@56*` is an element of what the word at 56 bytes points at: of an array, or of what a container's functions know.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern

UNKNOWN = "?"
EITHER = "/"
"""Between values of which it is one, by the way that led there."""
RETURNED, LINKED = "^", "~"
"""What becomes of a value, beside the words that keep it: it is returned; the address of a member of its is kept."""
TAKEN_FROM = "<"
"""Before an element that a value may be, among what becomes of it."""
_ELEMENT = "*"
TOLD = 3
"""Arguments that are told of a call, at least."""
_LONGEST_TEXT = 4000
_MOST = 4
NOWHERE = ""
"""The address of an element of an array, and of whatever else has no text."""
_STEP = late_pattern(r"([+-]|@-?)(\d+)")
_DISTANCES = late_pattern(r"([+@])(-?\d+)")
_BASE = late_pattern(r"p\d|[rgs][0-9a-f]+|\?")
_LONGEST = 80


@dataclass(frozen=True)
class Passed:
    """What one call of a function passes, as whoever calls it says it.

    `arguments`: the first of its values, in their order. `kept`: of each of these, and last of what is returned, the
    words in memory where the function that calls stores it, elements of containers that it is given to, RETURNED and
    LINKED, and TAKEN_FROM with an element that it may have been.
    """

    arguments: tuple[str, ...]
    kept: tuple[tuple[str, ...], ...]

    @property
    def kept_result(self) -> tuple[str, ...]:
        return self.kept[-1] if self.kept else ()

    def text(self) -> str:
        """Return it as one text: `p1+88>p1@0 ? p2 >r17a5a5@80`; the last part is what is returned."""
        return " ".join(">".join((first, *kept)) for first, kept in zip((*self.arguments, ""), self.kept, strict=True))

    @classmethod
    def read(cls, text: str) -> Passed | None:
        """Read what `text` gives; None of what is none: a recording may say anything."""
        parts = [part.split(">") for part in text.split(" ")]
        if len(parts) <= TOLD or parts[-1][0] or len(text) > _LONGEST_TEXT:
            return None
        return cls(tuple(part[0] for part in parts[:-1]), tuple(tuple(part[1:]) for part in parts))


def parameter(number: int) -> str:
    return f"p{number}"


def result_of(return_address: int) -> str:
    return f"r{return_address:x}"


def beside_code(address: int) -> str:
    return f"g{address:x}"


def at_frame(function: int, distance: int) -> str:
    return shifted(f"s{function:x}", distance)


def shifted(value: str, distance: int) -> str:
    """Return an address so many bytes behind another one."""
    if not value or len(value) > _LONGEST:
        return NOWHERE
    value = UNKNOWN if EITHER in value else value
    if value[0] == "g" and value[1:].isalnum():
        return beside_code(int(value[1:], 16) + distance)
    base, before = _parted(value)
    return f"{base}{before + distance:+d}" if before + distance else base


def word_at(address: str, distance: int) -> str:
    """Return the word that stands so many bytes behind an address; NOWHERE where that has no text."""
    if not address or len(address) > _LONGEST:
        return NOWHERE
    address = UNKNOWN if EITHER in address else address
    base, before = _parted(address)
    return f"{base}@{before + distance}"


def element_of(container: str) -> str:
    """Return what stands for the elements of a container; NOWHERE where it is not told where that is kept, or in a
    frame. What is beside the code itself, as texts are, is taken for none."""
    base = container[:1]
    told = base != "s" and (kept_at(container) is not None or (base == "g" and "@" in container))
    return f"{container}{_ELEMENT}" if told and EITHER not in container and len(container) < _LONGEST else NOWHERE


def container_of(value: str) -> str | None:
    """Return the container that a value is an element of; None for what is none."""
    return value[:-1] if value.endswith(_ELEMENT) else None


def is_part_of(value: str, whole: str) -> bool:
    """Tell whether a value is said to be in an object, or behind a pointer in it."""
    return value.startswith(whole) and value[len(whole) : len(whole) + 1] in ("+", "-", "@")


def kept_at(address: str) -> int | None:
    """Return how far inside of something the pointer to a container is, or the container itself: what is at its own
    start is the array. None where that is not told."""
    return next((int(step[1]) for step in reversed(_DISTANCES.findall(address)) if int(step[1])), None)


def within(value: str, arguments: Sequence[str]) -> str:
    """Return a value of a function as whoever calls it with these arguments says it."""
    if value.endswith(_ELEMENT):
        return element_of(within(value.rstrip(_ELEMENT), arguments))
    if EITHER in value:
        return one_of({within(one, arguments) for one in value.split(EITHER)})
    base = _BASE.match(value)
    if base is None or base[0][0] != "p":
        return value
    number = int(base[0][1:])
    found = arguments[number] if number < len(arguments) else UNKNOWN
    for step in _STEP.finditer(value, base.end()):
        if step[1][0] == "@":
            found = word_at(found, int(step[1][1:] + step[2]))
        else:
            found = shifted(found, int(step[1] + step[2]))
    return found


def one_of(values: Collection[str]) -> str:
    """Return what is one of some values; of too many, or if one is not known, it is not known."""
    each = {one for value in values for one in value.split(EITHER)}
    is_known = 0 < len(each) <= _MOST and each.isdisjoint((UNKNOWN, NOWHERE))
    return EITHER.join(sorted(each)) if is_known else UNKNOWN


def distance_of(address: str) -> int:
    """Return what is added to an address last."""
    return _parted(address)[1]


def without_shift(value: str) -> str:
    """Return where the object begins that an address is in, as far as that is told."""
    return value if value[:1] in ("g", "s") or EITHER in value else _parted(value)[0]


def _parted(value: str) -> tuple[str, int]:
    """Return an address without what is added to it last, and that."""
    steps = list(_STEP.finditer(value, 1))
    if steps and not value.endswith(_ELEMENT) and steps[-1][1][0] != "@":
        return value[: steps[-1].start()], int(steps[-1][1] + steps[-1][2])
    return value, 0
