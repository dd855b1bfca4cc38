"""Holders that are put together late: not before they are asked for, and then as the tuple that they stand for."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from tracer.model.findings import Holder
from tracer.model.late_holders import LateHolders, whole

HOLDERS = (Holder(2, "global", "a"), Holder(1, "block"))


def test_they_are_found_when_they_are_asked_for() -> None:
    asked: list[Sequence[int]] = []

    def find(key: Sequence[int]) -> tuple[Holder, ...]:
        asked.append(key)
        return HOLDERS

    late = LateHolders(find, (7,))
    assert not asked
    assert list(late) == list(HOLDERS) and len(late) == 2 and late[0] is HOLDERS[0] and late[1:] == HOLDERS[1:]
    assert asked == [(7,)]


def test_they_are_the_tuple() -> None:
    late, other = LateHolders(lambda _: HOLDERS, ()), LateHolders(lambda _: HOLDERS[:1], ())
    assert late == HOLDERS and list(HOLDERS) == [*late] and hash(late) == hash(HOLDERS) and repr(late) == repr(HOLDERS)
    assert late == LateHolders(lambda _: HOLDERS, (1,)) and late != other and late != HOLDERS[:1]
    assert whole(late) is HOLDERS and whole(HOLDERS) is HOLDERS and whole(None) is None
    assert not LateHolders(lambda _: (), ()) and late


def test_another_process_gets_the_tuple() -> None:
    copy = pickle.loads(pickle.dumps(LateHolders(lambda _: HOLDERS, ())))
    assert type(copy) is tuple and copy == HOLDERS
