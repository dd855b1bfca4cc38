"""The reference that was never put, in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tracer.model.findings import Holder, Leak, UnpairedGet
from tracer.model.frames import Frame
from tracer.report.unpaired_sentence import unpaired_sentence

GET = Frame("map__get", "perf", file="map.h", line=111)
TAKER = Frame("hist_entry__init", "perf", file="hist.c", line=452)
PUTTER = Frame("hist_entry__delete", "perf", file="hist.c", line=1307)
FREER = Frame("hists__delete", "perf", file="hist.c", line=99)
BIRTH = (Frame("map__new", "perf", file="map.c", line=171),)
SIBLINGS = "all other references of the type's objects have their put"
STRONG = UnpairedGet((GET, TAKER), 18, "strong", "because", 0.98, TAKER, PUTTER)
LEAK = Leak("0" * 12, "reference", "map", 1, "leaked", 18, None, BIRTH, True, "complete", unpaired=(STRONG,))


def said(**changes: object) -> str:
    return unpaired_sentence(replace(LEAK, **changes))  # type: ignore[arg-type]


def test_what_who_and_where() -> None:
    assert said() == (
        "18 references to map, taken in hist_entry__init (hist.c:452), were never put; "
        f"other objects put such in hist_entry__delete (hist.c:1307); strong, 98 %: {SIBLINGS}"
    )


def test_who_called_the_library() -> None:
    assert said(unpaired=(replace(STRONG, taken_for=FREER),)).startswith(
        "18 references to map, taken in hist_entry__init (hist.c:452), called by hists__delete (hist.c:99), were never"
    )


def test_the_creators_own_that_has_no_like() -> None:
    get = UnpairedGet(BIRTH, 1, "weak", "because", 0.42, BIRTH[0], None)
    assert said(unpaired=(get,)) == (
        "1 reference to map, given by the creation in map__new (map.c:171), was never put; "
        "none taken there was ever put; weak, 42 %: order and nearness of the calls decide"
    )


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        ((), "; nothing holds them any more;"),
        ((Holder(18, "block", "struct hist_entry.ms.map"),), "; held by struct hist_entry.ms.map;"),
        ((Holder(18, "block", type="maps"),), "; held by an object of type maps;"),
        ((Holder(18, "freed-block", "struct hist_entry.ms.map", freed_at=(FREER,)),),
         "; last held by struct hist_entry.ms.map, which was freed in hists__delete (hist.c:99);"),
        ((Holder(9, "block", "struct a.map"), Holder(9, "block", "struct b.map")), "were never put; other objects"),
    ],
)  # fmt: skip
def test_where_it_was_kept(holders: tuple[Holder, ...], words: str) -> None:
    assert words in said(holders=holders)


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (Holder(1, "freed-block", offset=48, stack=BIRTH, freed_at=(FREER,)),
         "; kept 0x30 bytes inside a block from map__new (map.c:171), which was freed in hists__delete (hist.c:99)"),
        (Holder(1, "freed-block", "struct evlist.threads", offset=48, stack=BIRTH, freed_at=(FREER,)),
         "; kept in struct evlist.threads, which was freed in hists__delete (hist.c:99) without a put;"),
        (Holder(1, "freed-block", offset=56, stack=BIRTH, freed_at=(FREER,)), "; nothing holds them any more;"),
    ],
)  # fmt: skip
def test_the_block_that_was_freed_without_the_put(holder: Holder, words: str) -> None:
    assert words in said(unpaired=(replace(STRONG, kept_at=48),), holders=(holder,))


def test_other_places_that_may_be_meant() -> None:
    weak = replace(STRONG, confidence="weak", probability=0.5)
    assert said(unpaired=(weak, weak)).endswith("weak, 50 %: 1 other place may be meant too")
    exact = replace(STRONG, confidence="exact", probability=1.0)
    assert said(unpaired=(exact,)).endswith("exact: get and put name their holder, and this one never put")


def test_nothing_is_said_of_what_has_no_accused_get() -> None:
    assert said(unpaired=()) == ""
