"""Recorded names of fields: a recording calls a field as it was called when the format was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any

_RECORDED = "recorded"


def recorded_as(name: str) -> Mapping[str, str]:
    """Return the metadata of a dataclass field that recordings know by another name."""
    return {_RECORDED: name}


def recorded_name(field: Field[Any]) -> str:
    """Return what recordings call a field."""
    name: str = field.metadata.get(_RECORDED, field.name)
    return name
