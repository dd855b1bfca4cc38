"""Files as a process sees them, whose root directory or mounts may be others than this process's."""

from __future__ import annotations

import os
from collections import deque

from tracer.late_dataclasses import dataclass

_MOST_LINKS = 40
"""As in the kernel (MAXSYMLINKS)."""


_OWN_NAMES = (("/proc/self", "/proc/{}"), ("/proc/thread-self", "/proc/{}"), ("/dev/fd", "/proc/{}/fd"))


@dataclass(frozen=True)
class Root:
    """Where this process finds the root directory and the working directory of a process."""

    directory: str = ""
    working_directory: str = "."
    inside: str | None = None
    """The working directory as the process sees it, where its root is another; None for one outside its root."""
    is_own: bool = True
    """Whether this process has the same root and the same mounts."""

    def place_of(self, path: str) -> str:
        """Return a path of the process as one that this process can open.

        Links are followed inside the root: the kernel would take absolute ones to be under the opener's own.
        """
        if self == OWN_ROOT:
            return path
        is_absolute = path.startswith("/")
        if self.is_own or (self.inside is None and not is_absolute):
            return f"{self.directory}{path}" if is_absolute else f"{self.working_directory}/{path}"
        names, links = list[str](), 0
        parts = deque((path if is_absolute else f"{self.inside}/{path}").split("/"))
        while parts:
            part = parts.popleft()
            if part == "..":
                del names[-1:]
            elif part not in ("", "."):
                to = _link("/".join((self.directory, *names, part))) if links < _MOST_LINKS else None
                if to is None:
                    names.append(part)
                    continue
                links += 1
                parts.extendleft(reversed(to.split("/")))
                if to.startswith("/"):
                    names.clear()
        return "/".join((self.directory, *names))


OWN_ROOT = Root()


def root_of(pid: int) -> Root:
    """Return the root of a process; if it is gone, nothing is found there."""
    directory, current = f"/proc/{pid}/root", f"/proc/{pid}/cwd"
    outer, inner = _link(directory), _link(current)
    inside = None
    if outer is not None and inner is not None and f"{inner}/".startswith(outer if outer == "/" else f"{outer}/"):
        inside = f"/{inner[len(outer) :].lstrip('/')}"
    mounts = {_link(f"/proc/{name}/ns/mnt") for name in (pid, "self")}
    try:
        is_own = len(mounts) == 1 and os.path.samefile("/", f"{directory}/")
    except OSError:
        is_own = False
    return Root(directory, current, inside, is_own)


def path_of_process(pid: int, path: str) -> str:
    """Return a path that a process gives, without names that mean another file to each process that uses them."""
    for name, meant in _OWN_NAMES:
        if path == name or path.startswith(f"{name}/"):
            return meant.format(pid) + path[len(name) :]
    return path


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
