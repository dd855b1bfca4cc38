"""Set up in place: types whose memory is the caller's, which one function sets up and another one clears.

Names pair them (x_init and x_clear, xInit and xEnd). What the code of the first does tells that its first argument is
the object; types, where they are known, must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tracer.dwarf.debug_facts import DebugFacts, Pointee
from tracer.late_patterns import late_pattern
from tracer.specs.discovery import Proposal

_SET_UP = late_pattern(r"(?P<stem>.*[a-z0-9](?<!_set))(?P<how>_init|_?Init)(?:\d*_?|_set(?:_\w+)?)")
_ENDS = {
    "_init": ("_fini", "_deinit", "_end", "_cleanup", "_finalize", "_uninit"), "Init": ("End",), "_Init": ("_End",),
}  # fmt: skip
_CLEARS = {"_init": ("_clear", "_destroy", "_free"), "Init": ("Clear", "Free"), "_Init": ("_Clear", "_Free")}
"""These end it too, unless there is one of the others: then `clear` may only make it empty."""
_OTHERWISE = ("_new", "_create", "_alloc", "Create", "New", "Alloc", "_final", "Final", "_Final")
"""A type that has one of these is made by it and set up in a second step, or is a hash, which gives nothing back."""
_IN_PLACE = "{}(object=arg0)"


def set_up_in_place(
    functions: Collection[str], facts: DebugFacts, fills: Callable[[str], bool], releases: Callable[[str], bool],
    known: Collection[str] = (),
) -> Iterator[Proposal]:
    """Yield types by their names; none of whose ends one of the `known` functions is.

    `fills` tells of a function whether it sets up what its first argument points at, `releases` whether it may give
    something back.
    """
    creates: dict[tuple[str, str], list[str]] = {}
    for name in sorted(functions):
        match = _SET_UP.fullmatch(name)
        if match is not None:
            creates.setdefault((match["stem"], match["how"]), []).append(name)
    for (stem, how), names in creates.items():
        ends = [name for end in _ENDS[how] if (name := stem + end) in functions]
        ends = ends or [name for end in _CLEARS[how] if (name := stem + end) in functions]
        if not ends or set(ends) & set(known) or any(stem + word in functions for word in _OTHERWISE):
            continue
        struct = _struct(ends[0], facts)
        ends = [end for end in ends if _struct(end, facts) == struct]
        fit = [name for name in names if struct is not None and _struct(name, facts) in (struct, "")]
        found = [name for name in fit if not _returns_one(name, facts) and fills(name)]
        if found and any(map(releases, ends)):
            texts = tuple(_IN_PLACE.format(name) for name in found)
            yield Proposal(stem, texts, (), tuple(ends), struct=struct or "", is_in_place=True)


def _struct(name: str, facts: DebugFacts) -> str | None:
    """Return what the first parameter points at: "" where nothing tells, None where it points at nothing."""
    function = facts.functions.get(name)
    if function is None:
        return ""
    first = function.parameters[0] if function.parameters else Pointee()
    return first.struct if first.pointers == 1 else None


def _returns_one(name: str, facts: DebugFacts) -> bool:
    """Tell whether a function is known to return an object: it may make it, where it is given none."""
    function = facts.functions.get(name)
    return function is not None and bool(function.returns.struct)
