"""The catalogue that a trace is to use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tracer.specs.catalogue import Catalogue
from tracer.specs.files import read_spec_file
from tracer.specs.options import parse_type_option
from tracer.specs.presets import preset_names, read_preset

AUTO = "auto"
"""Stands for all presets."""


def catalogue_of(types: Iterable[str], specs: Iterable[Path], presets: Iterable[str]) -> Catalogue:
    """Return what descriptions, files and presets describe; raises SpecInvalid, CannotRead, UsageError."""
    names = dict.fromkeys(name for given in presets for name in (preset_names() if given == AUTO else (given,)))
    return Catalogue((
        *map(parse_type_option, types),
        *map(read_spec_file, specs),
        *map(read_preset, names),
    ))  # fmt: skip
