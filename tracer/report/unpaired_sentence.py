"""The reference that was never put, in one sentence: what, who took it, where it was kept, where its put is missing."""

from __future__ import annotations

from tracer.model.findings import Holder, Leak, UnpairedGet
from tracer.model.frames import Frame
from tracer.report.amounts import counted
from tracer.report.holder_words import FREED, OTHER, freeing_frames, own_frames
from tracer.report.source_location import first_named
from tracer.report.stack_lines import name, place

_WHY = {
    "exact": "get and put name their holder, and this one never put",
    "strong": "all other references of the type's objects have their put",
    "weak": "order and nearness of the calls decide",
}


def unpaired_sentence(leak: Leak) -> str:
    """Return "2 references to dso, taken in map__new (map.c:171), were never put; held by struct map.dso; ..."; empty
    where no get is accused."""
    if not leak.unpaired:
        return ""
    get = leak.unpaired[0]
    what = f"{counted(get.count, 'reference')} to {leak.type or 'an object'}"
    never = f"{what}, {_taken(leak, get)}, {'was' if get.count == 1 else 'were'} never put"
    return "; ".join(filter(None, (never, _kept(leak, get), _expected(get), f"{certainty(get)}: {_why(leak, get)}")))


def accused(leak: Leak, get: UnpairedGet) -> str:
    """Return "2 gets", or "2 references of the creator": who makes an object calls no get."""
    if get.stack == leak.callers:
        return f"{counted(get.count, 'reference')} of the creator"
    return counted(get.count, "get")


def certainty(get: UnpairedGet) -> str:
    """Return "strong, 98 %"; the word alone where no share is known."""
    if get.probability is None or get.confidence == "exact":
        return get.confidence
    return f"{get.confidence}, {round(get.probability * 100)} %"


def _taken(leak: Leak, get: UnpairedGet) -> str:
    taker = get.taken_by or first_named(get.stack)
    if taker is None:
        return "taken at a place whose stack was lost"
    called = f", called by {_place(get.taken_for)}" if get.taken_for is not None else ""
    return f"{'given by the creation' if get.stack == leak.callers else 'taken'} in {_place(taker)}{called}"


def _place(frame: Frame) -> str:
    where = place(frame)
    return f"{name(frame)} {where}".rstrip() if not where or where[0] in "([" else f"{name(frame)} ({where})"


def _kept(leak: Leak, get: UnpairedGet) -> str:
    """Say in which blocks that were freed such references were kept, or who holds the object, if that is mostly one
    place, or who held it last, if nobody does."""
    if lost := _lost_in(leak, get):
        return lost
    live = [holder for holder in leak.holders or () if holder.kind != FREED]
    if live:
        named = _names(live[0])
        return f"held by {named}" if named and _is_most(live[0], leak) else ""
    if leak.holders is None:
        return ""
    gone = next((holder for holder in leak.holders if _names(holder)), None)
    if gone is None:
        return "nothing holds it any more" if leak.count == 1 else "nothing holds them any more"
    frame = first_named(freeing_frames(gone) or ())
    where = f" in {_place(frame)}" if frame is not None else ""
    return f"last held by {_names(gone)}, which was freed{where}"


def _lost_in(leak: Leak, get: UnpairedGet) -> str:
    """Say where references were kept from where no put takes them, if such a block was freed with one."""
    for holder in leak.holders or ():
        if get.kept_at is None or holder.kind != FREED or holder.offset != get.kept_at or not holder.freed_at:
            continue
        maker, freed = first_named(own_frames(holder) or ()), first_named(freeing_frames(holder) or ())
        if maker is not None and freed is not None:
            block = f"{holder.offset:#x} bytes inside a block from {_place(maker)}"
            where = f"in {holder.name}" if holder.name else block
            return f"kept {where}, which was freed in {_place(freed)} without a put"
    return ""


def _is_most(holder: Holder, leak: Leak) -> bool:
    words = sum(one.count for one in leak.holders or () if one.kind not in (FREED, OTHER))
    return 2 * holder.count > words


def _names(holder: Holder) -> str:
    """Return what a holder is called; empty where it is but some block."""
    if holder.name:
        return holder.name
    if holder.type and holder.kind in ("block", FREED):
        return f"an object of type {holder.type}" if holder.kind == "block" else ""
    return ""


def _expected(get: UnpairedGet) -> str:
    if get.put_at is None:
        return "none taken there was ever put"
    return f"other objects put such in {_place(get.put_at)}"


def _why(leak: Leak, get: UnpairedGet) -> str:
    others = len(leak.unpaired) - 1
    if get.confidence == "weak" and not others and get.kept_at is not None:
        return "where it is kept, order and nearness of the calls decide"
    if get.confidence != "weak" or not others:
        return _WHY[get.confidence]
    return f"{counted(others, 'other place')} may be meant too"
