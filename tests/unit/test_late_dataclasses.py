"""Dataclasses that are completed at their first object are what the library makes of the same class."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import pickle
import threading
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from tracer import late_dataclasses
from tracer.late_dataclasses import dataclass

Thing = TypeVar("Thing")


def _both(body: type, **options: Any) -> tuple[Any, Any]:
    """Return the class as the library makes it, and as it is made later, of two copies of the same body."""
    names = {name: value for name, value in vars(body).items() if name not in ("__dict__", "__weakref__")}
    copies = [type(body.__name__, body.__bases__, dict(names)) for _ in range(2)]
    return dataclasses.dataclass(**options)(copies[0]), dataclass(**options)(copies[1])


class _Body:
    """A body with all that a class may have."""

    count: int
    name: str = "none"
    parts: list[int] = field(default_factory=list)
    hidden: int = field(default=7, repr=False, compare=False)
    shared: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count")

    @property
    def twice(self) -> int:
        return 2 * self.count


@pytest.mark.parametrize(
    "options", [{}, {"frozen": True}, {"eq": False}, {"order": True}, {"frozen": True, "eq": False}]
)
def test_is_as_the_librarys(options: dict[str, Any]) -> None:
    library, late = _both(_Body, **options)
    for cls in (library, late):
        one, same, other = cls(1, parts=[2]), cls(1, parts=[2]), cls(count=2, name="b", hidden=1)
        assert repr(one).endswith("_Body(count=1, name='none', parts=[2])")
        assert (one == same, one == other) == (options.get("eq", True), False)
        assert one.twice == 2 and cls.shared == 3 and cls(1).parts is not cls(1).parts
        assert dataclasses.replace(one, count=5).count == 5
        assert [f.name for f in dataclasses.fields(one)] == ["count", "name", "parts", "hidden"]
        assert not hasattr(cls, "parts") and cls.__match_args__ == ("count", "name", "parts", "hidden")
        if options.get("order"):
            assert one < other
        if not options.get("frozen"):
            one.count = 9
            assert one.count == 9
        with pytest.raises(ValueError):
            cls(-1)
        with pytest.raises(TypeError):
            cls()
    names = set(vars(library)) - {"__dict__", "__weakref__"}
    assert names == set(vars(late)) - {"__dict__", "__weakref__"}


def test_frozen_refuses_and_is_hashed() -> None:
    @dataclass(frozen=True)
    class Frozen:
        count: int

        @cached_property
        def twice(self) -> int:
            return 2 * self.count

    one = Frozen(3)
    assert hash(one) == hash(Frozen(3)) and one.twice == 6 and {one: 1}[Frozen(3)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'count'"):
        one.count = 4  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'count'"):
        del one.count
    assert one.count == 3


def test_fields_before_the_first_object() -> None:
    @dataclass
    class Early:
        count: int

    assert dataclasses.is_dataclass(Early)
    assert [f.name for f in dataclasses.fields(Early)] == ["count"]
    assert Early(2) == Early(2)


def test_inherits_from_what_is_not_completed() -> None:
    @dataclass(frozen=True)
    class Base:
        first: int

    @dataclass(frozen=True)
    class Derived(Base):
        second: int = 2

    class Plain(Base):
        pass

    assert Derived(1) == Derived(1, 2) and repr(Derived(1)).endswith("Derived(first=1, second=2)")
    assert Plain(5).first == 5 and Base(1) != Derived(1)


def test_generic() -> None:
    @dataclass(frozen=True)
    class Box(Generic[Thing]):
        thing: Thing

    assert Box[int](3) == Box(3)


@dataclass(frozen=True)
class Sent:
    """At the module, where pickle finds it."""

    count: int
    name: str = "a"


@dataclass(frozen=True)
class SentFirst:
    """Its first object is unpickled."""

    count: int


def test_copies_and_pickles() -> None:
    assert copy.copy(Sent(1)) == Sent(1) == pickle.loads(pickle.dumps(Sent(1)))
    unpickled = SentFirst.__new__(SentFirst)  # as pickle does where this process has made none
    unpickled.__setstate__({"count": 7})  # type: ignore[attr-defined]
    assert unpickled == SentFirst(7) and hash(unpickled) == hash(SentFirst(7))


def test_many_threads_make_the_first_object() -> None:
    for _ in range(50):
        @dataclass(frozen=True)
        class Shared:
            count: int
            name: str = "a"

        begin = threading.Barrier(4)
        made: list[Any] = []
        failed: list[Exception] = []

        def make(cls: Any = Shared, begin: Any = begin, made: Any = made, failed: Any = failed) -> None:
            begin.wait()
            try:
                made.append(cls(1))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed and len(set(made)) == 1


@pytest.mark.parametrize("name", ["_made", "_take", "delattr", "setattr"])
@pytest.mark.parametrize("step", range(8))
def test_an_interrupt_leaves_no_half_of_a_class(monkeypatch: pytest.MonkeyPatch, name: str, step: int) -> None:
    """It may come at any step: the trace goes on to its report."""

    @dataclass(frozen=True, order=True)
    class Part:
        count: int
        parts: list[int] = field(default_factory=list)
        name: str = field(default="a", repr=False)

    steps = iter([False] * step + [True])
    does = getattr(late_dataclasses, name, None) or getattr(builtins, name)

    def interrupted(*arguments: Any) -> Any:
        if next(steps, False):
            raise KeyboardInterrupt
        return does(*arguments)

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(late_dataclasses, name, interrupted, raising=False)
        Part(1)
    assert Part(1) == Part(1, [], "a") < Part(2) and repr(Part(1)).endswith("Part(count=1, parts=[])")
    assert hash(Part(1, ())) == hash(Part(1, ()))  # type: ignore[arg-type]


def test_slots_are_made_at_once() -> None:
    @dataclass(frozen=True, slots=True)
    class Small:
        count: int

    assert not hasattr(Small(1), "__dict__") and Small(1) == Small(1)
