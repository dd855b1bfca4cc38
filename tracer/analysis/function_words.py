"""Words in a function's name that tell what it does with a reference that it takes: a guess to start from."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tracer.late_patterns import late_pattern

_WORD = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GIVES = late_pattern("find|findnew|lookup|get|ref|acquire|fetch|from|clone|copy|dup")
_KEEPS = late_pattern(
    "add|insert|init|set|append|push|attach|register|link|store|fill|bind|replace|keep|save|enqueue|propagate"
)
_MAKES = late_pattern("new|create|alloc|construct")
"""What such a function takes it may keep in what it makes, also "from" it."""
_IDENTIFIER = late_pattern(r"[A-Za-z_]\w*")
_GIVEN, _UNKNOWN, _KEPT = 0.9, 0.5, 0.1
_BIRTH_GIVEN, _BIRTH_KEPT = 0.9, 0.5


@cache
def handing_by_name(function: str, birth: bool) -> float:
    """Return how likely a function hands up to its caller the reference that it took, or made (`birth`)."""
    words = _words(function)
    if any(map(_KEEPS.fullmatch, words)):
        return _BIRTH_KEPT if birth else _KEPT
    if birth:
        return _BIRTH_GIVEN
    gives = any(map(_GIVES.fullmatch, words)) and not any(map(_MAKES.fullmatch, words))
    return _GIVEN if gives else _UNKNOWN


@cache
def makes_by_name(function: str) -> bool:
    """Tell whether a function is called like one that makes what it returns, or hands it up."""
    return any(_GIVES.fullmatch(word) or _MAKES.fullmatch(word) for word in _words(function))


def named_for(function: str, types: Iterable[str]) -> str | None:
    """Return the type whose name the name of a function that keeps what it takes begins with, as `maps__insert` does
    with that of `&maps->refcnt`."""
    words = _words(function)
    if not any(map(_KEEPS.fullmatch, words)):
        return None
    beginnings = {"".join(words[:count]): count for count in range(1, len(words))}
    named = {type_: beginnings.get(_type_word(type_), 0) for type_ in types}
    best = max(named, key=lambda type_: (named[type_], type_), default=None)
    return best if best is not None and named[best] else None


@cache
def _type_word(type_: str) -> str:
    """Return a type's name without what stands between its words; of a counter, that of what it is in."""
    identifiers = _IDENTIFIER.findall(type_.rpartition("->")[0] or type_.removeprefix("struct "))
    return "".join(_words(identifiers[-1])) if identifiers else ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name.partition("@")[0])]
