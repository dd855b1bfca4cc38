"""The program that is launched: what it starts with, and what of its environment is ours."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.binaries.start_up import start_up_binaries
from tracer.probing.prober import Prober


def first_program(
    binaries: Binaries, prober: Prober, path: str
) -> tuple[Sequence[OpenBinary], Mapping[str, str]]:  # fmt: skip
    """Return the binaries that a program starts with, and the variables that it gets besides those of this process."""
    name = str(Path(path).resolve())
    found = start_up_binaries(binaries, path, name, environment=os.environ)
    for binary in found:
        prober.prepare(binary)
    given = prober.preloading.variables(found, os.environ)
    if given:
        found = start_up_binaries(binaries, path, name, environment={**os.environ, **given})
    return found, given
