"""The specs that are shipped: one TOML file each in tracer/specs/presets."""

from __future__ import annotations

import difflib
from functools import lru_cache
from pathlib import Path

from tracer.errors import UsageError
from tracer.specs.description import Description
from tracer.specs.files import read_spec_file

DIRECTORY = Path(__file__).parent / "presets"


def preset_names() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.toml"))


def preset_path(name: str) -> Path:
    """Return the preset's file; raises UsageError with the nearest names where there is none."""
    names = preset_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`refleak specs` lists them"
        raise UsageError(f"there is no preset {name!r}", hint)
    return DIRECTORY / f"{name}.toml"


@lru_cache(maxsize=64)
def read_preset(name: str) -> Description:
    """Read a preset; raises UsageError where there is none of that name."""
    return read_spec_file(preset_path(name))
