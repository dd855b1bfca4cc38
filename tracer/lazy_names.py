"""Names that a package gives out without importing what has them, until the first is asked for (PEP 562).

`refleak --version` needs none of the library's, reading a report no more than a part, and a trace begins before what
reports it is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

_LIBRARY = "tracer.api"


def __getattr__(name: str) -> Any:
    """Return what the library has under a name: those of the package at the root."""
    if not name.startswith("_"):
        library = import_module(_LIBRARY)
        if name in library.__all__:
            return getattr(library, name)
    raise AttributeError(f"module 'tracer' has no attribute {name!r}")


def names_of(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: `modules` says which of its modules has a name."""

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return get


def called_later(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls another one, which is imported then."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(module), name)(*arguments)

    return call
