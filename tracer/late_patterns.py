"""Regular expressions that are compiled when they are first used.

Modules have some 150, of which a run uses 30: to compile all of them took 0.06 s of each start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any


class LatePattern:
    """Becomes like the pattern that it stands for, attribute by attribute, as these are asked for."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what pickle and copy look for before there is anything
            raise AttributeError(name)
        value = getattr(re.compile(*self._arguments), name)  # which keeps what it compiled
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    late_pattern = re.compile
else:
    late_pattern = LatePattern
