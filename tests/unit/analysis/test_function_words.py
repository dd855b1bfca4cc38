"""What names of functions tell."""

from __future__ import annotations

import pytest

from tracer.analysis.function_words import makes_by_name, named_for


@pytest.mark.parametrize(
    ("function", "type_"),
    [
        ("__maps__insert@", "&maps->refcnt"), ("_dbus_connection_attach@libdbus", "DBusConnection"),
        ("Font::setFace@", "Font"), ("map__init@", "struct map"), ("maps__remove@", None), ("insert@", None),
        ("mapset__add@", None), ("+0x1234", None),
    ],
)  # fmt: skip
def test_the_type_that_a_function_keeps_for(function: str, type_: str | None) -> None:
    assert named_for(function, ["&map->refcnt", "&maps->refcnt", "DBusConnection", "Font", "struct map", "&1"]) == type_


def test_the_longer_name_of_two() -> None:
    assert named_for("map_set_add@", ["map", "map_set"]) == "map_set"


def test_what_makes() -> None:
    assert makes_by_name("__machine__findnew_thread@")
    assert makes_by_name("thread__new@")
    assert not makes_by_name("process_event@")
