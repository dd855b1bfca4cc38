"""The exit statuses of refleak's own failures, from the classes of tracer.errors."""

from __future__ import annotations

import re

from tracer import errors


def exit_statuses() -> list[tuple[int, str, str]]:
    """Return (status, what failed, what to do), by status."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind is not errors.RefleakError]
    found = [(kind.exit_code, _words(kind.__name__), kind.hint) for kind in kinds
             if issubclass(kind, errors.RefleakError)]  # fmt: skip
    return sorted(found)


def _words(name: str) -> str:
    words = re.findall("[A-Z][a-z]*", name)
    return " ".join([words[0], *map(str.lower, words[1:])]).replace("Bcc", "BCC")
