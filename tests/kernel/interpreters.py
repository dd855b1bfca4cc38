"""Interpreters that the tests run scripts in: those installed here, and those under the roots of other systems.

REFLEAK_ROOTS names such roots, with colons in between: directories with another distribution in them, as
`debootstrap --include=python3.14,python3.15 sid DIRECTORY` makes. Tests that need a version that is nowhere are not
there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
_VERSION = "import sys; print(sys.executable, '%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True)
class Interpreter:
    path: str
    root: Path | None = None
    """Of the system that it is in; None for this one."""

    @contextmanager
    def command(self, *words: object) -> Iterator[Sequence[str]]:
        """Give a command for it; files among its words are copied to where it sees them."""
        if self.root is None:
            yield (self.path, *map(str, words))
            return
        with tempfile.TemporaryDirectory(dir=self.root / "tmp") as folder:
            seen = [self._seen(word, Path(folder)) if isinstance(word, Path) else str(word) for word in words]
            yield (*under(self.root), self.path, *seen)

    def _seen(self, file: Path, folder: Path) -> str:
        copy = Path(shutil.copy(file, folder))
        return f"/{copy.relative_to(self.root or '/')}"


def under(root: Path) -> Sequence[str]:
    """Return the words that run a command under a root."""
    return (shutil.which("chroot") or "/usr/sbin/chroot", str(root))


def _roots() -> list[Path]:
    return [Path(root) for root in os.environ.get("REFLEAK_ROOTS", "").split(":") if root]


def _said_by(*command: str) -> list[str]:
    """Return the words that a command says; none where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return []


def installed_pythons() -> dict[str, Interpreter]:
    """Return the supported versions: the distribution's own, those on PATH, of pyenv, and under REFLEAK_ROOTS."""
    prefixes = [_said_by("pyenv", "prefix", name) for name in _said_by("pyenv", "versions", "--bare")]
    names = ["/usr/bin/python3", *(f"python{v}" for v in VERSIONS), *(f"{p}/bin/python" for [p] in prefixes)]
    places: list[tuple[Path | None, str]] = [(None, name) for name in names]
    places += [(root, name) for root in _roots() for name in names[: 1 + len(VERSIONS)]]
    found: dict[str, Interpreter] = {}
    for place, name in places:
        match _said_by(*(under(place) if place else ()), name, "-c", _VERSION):
            case [path, version] if version in VERSIONS:
                found.setdefault(version, Interpreter(path, place))
    return found


def installed_lua(name: str) -> Interpreter | None:
    """Return a Lua, here or under REFLEAK_ROOTS."""
    path = shutil.which(name)
    found = [Interpreter(path)] if path is not None else []
    for place in _roots():
        if (place / "usr/bin" / name).exists():
            found.append(Interpreter(f"/usr/bin/{name}", place))
    return found[0] if found else None


PYTHONS = installed_pythons()
