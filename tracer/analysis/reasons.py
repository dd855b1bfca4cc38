"""Reasons, in words, to believe that a reference was never given back."""

from __future__ import annotations

from collections.abc import Mapping

from tracer.analysis.reference_sites import Level
from tracer.analysis.siblings import Siblings
from tracer.analysis.slots import Keys
from tracer.analysis.slots import member as slot
from tracer.analysis.stacks import SymbolizedStacks
from tracer.analysis.suspect import STRONG, WEAK, Suspect
from tracer.analysis.views import PutPlace
from tracer.model.frames import Frame

_SUCH: Mapping[Level, str] = {
    Level.PATH: "such gets",
    Level.CALLS: "gets by these two functions",
    Level.CALL: "gets of this line",
    Level.FUNCTION: "gets of this function",
}
_SUCH_BIRTHS: Mapping[Level, str] = {
    Level.PATH: "created here",
    Level.CALLS: "created by these two functions",
    Level.CALL: "created at this line",
    Level.FUNCTION: "created by this function",
}
_MOST_PLACES = 3
_WORTH_NAMING = 0.1
_NEARLY_ALL = 0.85


class Reasons:
    def __init__(self, table: SymbolizedStacks, siblings: Siblings) -> None:
        self._table = table
        self._siblings = siblings

    def exact(self, holder: int, count: int) -> str:
        """Say that the holder itself is known."""
        if count == 1:
            return f"taken for holder {holder:#x}, which never put it"
        return f"taken for holders such as {holder:#x}, which never put them"

    def by_siblings(self, suspect: Suspect, count: int, freed: Keys) -> str:
        """Say what healthy objects did with such references, and what else could be meant.

        `freed`: slots of blocks that were freed without a put."""
        parts = [self._comparison(suspect, count)]
        member = self._siblings.unemptied(suspect.stack, freed)
        if member is not None:
            went = "such a block was freed with it" if slot(member) in freed else "no put is seen to take it from there"
            parts.append(f"it is stored {member:#x} bytes inside a struct, and {went}")
        if suspect.habitual:
            parts.append("order and nearness of the calls agree on that")
        elif suspect.confidence == WEAK:
            parts.append(self._doubt(suspect))
        return "; ".join(parts)

    def _comparison(self, suspect: Suspect, count: int) -> str:
        stack, birth = suspect.stack, suspect.birth
        _, seen = self._siblings.seen(stack, birth)
        if not seen:
            what = "no object created here ever ended" if birth else "no object that ended took a reference here"
            others = "the other references were put where healthy objects put theirs"
            return f"{what}; {others}" if suspect.confidence == STRONG and not birth else what
        such = (_SUCH_BIRTHS if birth else _SUCH)[suspect.level]
        guessed = suspect.confidence == WEAK or suspect.habitual
        places = self._siblings.put_at(stack, birth, suspect.level, not guessed)
        where = self._mostly(places) if suspect.confidence == WEAK else self._where(places, seen)
        these = "this one never was" if count == 1 else f"these {count:,} never were"
        if birth:
            return f"of {seen + count:,} references of objects {such} {seen:,} were put{where}; {these}"
        return f"{seen:,} of {seen + count:,} {such} were put{where}; {these}"

    def _where(self, places: list[PutPlace], seen: int) -> str:
        named = [place for place in places if place.share >= _WORTH_NAMING][:_MOST_PLACES]
        if not named:
            return ""
        if len(named) == 1 or named[0].share >= _NEARLY_ALL:
            return f" at {self._name(named[0].stack)}"
        shares = [f"{self._name(place.stack)} (about {round(place.share * seen):,})" for place in named]
        return f" at {' or '.join(shares)}"

    def _mostly(self, places: list[PutPlace]) -> str:
        """Say the likeliest place only: which put gives back which get is a guess here."""
        return f", it seems at {self._name(places[0].stack)}" if places else ""

    def _name(self, stack: int) -> str:
        return place_of(self._siblings.put_places.telling(stack))

    def _doubt(self, suspect: Suspect) -> str:
        if not suspect.complete:
            return "but some events of these objects were lost"
        if suspect.rivals:
            others = "another" if suspect.rivals == 1 else f"{suspect.rivals} others"
            return f"but the evidence speaks as much for {others}"
        if self._siblings.tells_slot(suspect.stack):
            return "judged by order, nearness and where the code keeps it"
        return "judged by order and nearness alone"


def place_of(frame: Frame | None) -> str:
    """Return "function (file:line)", as much of it as is known."""
    if frame is None:
        return "a place whose stack was lost"
    name = frame.function or (f"{frame.module}+{frame.address:#x}" if frame.module else f"{frame.address:#x}")
    if frame.file and frame.line is not None:
        return f"{name} ({frame.file.rpartition('/')[2]}:{frame.line})"
    return name
