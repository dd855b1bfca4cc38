"""Ask the dynamic loader which libraries a program will start with."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

_PATH = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_SECONDS = 5


def start_up_libraries(
    program: str, interpreter: str, environment: Mapping[str, str] | None = None, directory: str | None = None
) -> tuple[str, ...]:
    """Return the paths that the loader would map, as `ldd` does; no code of the program runs.

    Only a loader that root owns is run. Empty where it does not answer: whatever is missing here is seen when the
    loader really maps it.
    """
    try:
        if Path(interpreter).stat().st_uid != 0:
            return ()
        listed = subprocess.run(
            [interpreter, "--list", program], capture_output=True, text=True, timeout=_SECONDS, check=False,
            env=None if environment is None else dict(environment), cwd=directory, errors="surrogateescape",
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(dict.fromkeys(_PATH.findall(listed.stdout)))
