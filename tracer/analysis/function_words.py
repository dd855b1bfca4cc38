"""Words in a function's name that tell what it does with a reference that it takes: a guess to start from."""

from __future__ import annotations

from functools import cache

from tracer.late_patterns import late_pattern

_WORD = late_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_GIVES = late_pattern("find|findnew|lookup|get|ref|acquire|fetch|from|clone|copy|dup")
_KEEPS = late_pattern(
    "add|insert|init|set|append|push|attach|register|link|store|fill|bind|replace|keep|save|enqueue|propagate"
)
_MAKES = late_pattern("new|create|alloc|construct")
"""What such a function takes it may keep in what it makes, also "from" it."""
_GIVEN, _UNKNOWN, _KEPT = 0.9, 0.5, 0.1
_BIRTH_GIVEN, _BIRTH_KEPT = 0.9, 0.5


@cache
def handing_by_name(function: str, birth: bool) -> float:
    """Return how likely a function hands up to its caller the reference that it took, or made (`birth`)."""
    words = [word.lower() for word in _WORD.findall(function.partition("@")[0])]
    if any(map(_KEEPS.fullmatch, words)):
        return _BIRTH_KEPT if birth else _KEPT
    if birth:
        return _BIRTH_GIVEN
    gives = any(map(_GIVES.fullmatch, words)) and not any(map(_MAKES.fullmatch, words))
    return _GIVEN if gives else _UNKNOWN
