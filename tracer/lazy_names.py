"""The names of the library at the root of the package, imported when the first is asked for.

`refleak --version` needs none of them, and reading a report no more than a part.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LIBRARY = "tracer.api"


def __getattr__(name: str) -> Any:
    """Return what the library has under a name (PEP 562)."""
    if not name.startswith("_"):
        library = import_module(_LIBRARY)
        if name in library.__all__:
            return getattr(library, name)
    raise AttributeError(f"module 'tracer' has no attribute {name!r}")
