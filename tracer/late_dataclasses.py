"""Dataclasses whose methods are made when the first object of the class is.

`dataclasses.dataclass` compiles six methods of a frozen class where it is defined, which takes 0.4 to 1 ms, and a run
makes objects of less than half of refleak's classes. Here a class becomes what the library makes of it at its first
object, or when its fields are asked for. What has `slots` becomes another class, and does so at once.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

_FIELDS = "__dataclass_fields__"
_OWN = ("__init__", "__setattr__", "__delattr__", "__setstate__", _FIELDS, "__dict__", "__weakref__")
"""What a class has until then, and what each class has for itself."""
_making = threading.RLock()


class _FieldsLater:
    """Stands for the fields of a class, which is completed when they are asked for."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete

    def __get__(self, instance: object, owner: type) -> Any:
        self._complete()
        return getattr(owner, _FIELDS)


def _refuse_assignment(_self: object, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _late(cls: type, options: dict[str, Any]) -> type:
    """Put what completes the class into the places of what is made then."""
    made: list[type] = []

    def complete() -> None:
        with _making:
            if cls.__dict__.get("__init__") is first_object:
                if not made:
                    made.append(_made(cls, options))
                _take(cls, made[0])

    def first_object(self: Any, *arguments: Any, **named: Any) -> None:
        complete()
        cls.__init__(self, *arguments, **named)  # type: ignore[misc]

    def copied(self: Any, state: dict[str, Any]) -> None:
        """Of an object that comes from another process, or is a copy: its class has no other yet."""
        complete()
        self.__dict__.update(state)

    cls.__init__, cls.__setstate__ = first_object, copied  # type: ignore[misc, attr-defined]
    setattr(cls, _FIELDS, _FieldsLater(complete))
    if options.get("frozen"):
        cls.__setattr__, cls.__delattr__ = _refuse_assignment, _refuse_deletion  # type: ignore[assignment, method-assign]
    return cls


def _made(cls: type, options: dict[str, Any]) -> type:
    """Return what the library makes of a class of the same body."""
    body = {name: value for name, value in cls.__dict__.items() if name not in _OWN}
    made: type = dataclasses.dataclass(**options)(type(cls.__name__, cls.__bases__, body))
    return made


def _take(cls: type, made: type) -> None:
    """Give a class what another one has: the way to make objects last, since other threads wait in what stands there.
    An interrupt may come at any step; then it is done again."""
    own, others = dict(cls.__dict__), made.__dict__
    for name in own.keys() - others.keys() - set(_OWN):  # of fields without a default
        delattr(cls, name)
    for name, value in others.items():
        if name not in _OWN and (name not in own or value is not own[name]):
            setattr(cls, name, value)
    if "__setstate__" in own:
        del cls.__setstate__  # type: ignore[attr-defined]
    setattr(cls, _FIELDS, others[_FIELDS])
    cls.__init__ = others["__init__"]  # type: ignore[misc]


def _is_plain(cls: type, options: dict[str, Any]) -> bool:
    makes: object = cls.__new__
    is_usual = type(cls) is type and makes is object.__new__ and "__init__" not in vars(cls)
    return is_usual and not options.get("slots")


def _dataclass(cls: type | None = None, /, **options: Any) -> Any:
    def decorated(cls: type) -> type:
        return _late(cls, options) if _is_plain(cls, options) else dataclasses.dataclass(**options)(cls)

    return decorated if cls is None else decorated(cls)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
