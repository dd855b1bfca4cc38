"""List the presets, or show one.

A preset describes a library's reference-counted types. Trace with `refleak --preset NAME --exec CMD ...`, or with
`--preset auto` for all whose library the target loads. `refleak specs NAME` prints one: a start for a spec of your own
(`--spec FILE`).
"""

from __future__ import annotations

import argparse

from tracer.specs.description import Description
from tracer.specs.presets import preset_names, preset_path, read_preset

NAME = "specs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="print this preset")


def run(arguments: argparse.Namespace) -> int:
    """Print, and return the exit status."""
    if arguments.name is not None:
        print(preset_path(arguments.name).read_text(encoding="utf-8"), end="")
        return 0
    names = preset_names()
    width = max(map(len, names), default=0)
    for name in names:
        preset = read_preset(name)
        print(f"{name:{width}}  {preset.description}: {_types(preset)}")
    return 0


def _types(preset: Description) -> str:
    return ", ".join(dict.fromkeys(type_.name for type_ in preset.types))
