"""The catalogue that the options ask for."""

from __future__ import annotations

import argparse

from tracer.specs.catalogue import Catalogue
from tracer.specs.files import read_spec_file
from tracer.specs.options import parse_type_option
from tracer.specs.presets import preset_names, read_preset

_AUTO = "auto"


def catalogue_of(arguments: argparse.Namespace) -> Catalogue:
    """Return what --type, --spec and --preset describe; raises SpecInvalid, CannotRead, UsageError."""
    names = dict.fromkeys(
        name for given in arguments.presets for name in (preset_names() if given == _AUTO else (given,))
    )
    return Catalogue((
        *map(parse_type_option, arguments.types),
        *map(read_spec_file, arguments.specs),
        *map(read_preset, names),
    ))  # fmt: skip
