"""The choice of processes that call the heap through the library of --preload: its places alone are probed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.binaries.interposers import defines_malloc
from tracer.binaries.open_binaries import OpenBinary
from tracer.model.operations import Operation, Placement, SiteFlag
from tracer.model.preload_names import C_LIBRARY, VARIABLE, WRAPPED, PreloadLibrary

_HEAP = (Operation.ALLOC, Operation.REALLOC, Operation.FREE)
_OTHER_NAMES = ("__libc_malloc", "__libc_free", "__libc_calloc", "__libc_realloc", "__libc_memalign")
_DRAWN_ONLY = "of what was preloaded, the totals of blocks made and freed are those of drawn blocks"
Placed = tuple[int, Placement]


def is_of_heap(placement: Placement) -> bool:
    """Tell whether a probe is one of those that the library's stand for."""
    function = placement.site.function
    return function.operation in _HEAP and not function.group and not function.flags & SiteFlag.WRAPPER


def is_of_wrapper(placement: Placement) -> bool:
    return bool(placement.site.function.flags & SiteFlag.WRAPPER)


class Preloading:
    """Decides for each program before it starts, and remembers why not."""

    def __init__(self, library: PreloadLibrary | None) -> None:
        self._library, self._path = library, library.path if library is not None else None
        self._processes: set[int] = set()
        self._usual: dict[int, tuple[int, list[Placed]]] = {}
        """By binary, of so many places those of programs that do without the library."""
        self._left_out: dict[int, set[int]] = {}
        """Binaries of which not all places are probed in a process."""
        self.refusals: dict[str, str] = {}
        """Why programs are probed as without it, by path."""

    @property
    def notes(self) -> tuple[str, ...]:
        refused = tuple(f"not preloaded: {path}: {reason}" for path, reason in self.refusals.items())
        return (*refused, _DRAWN_ONLY) if self._library is not None and self._library.is_sampled else refused

    def has(self, pid: int) -> bool:
        return pid in self._processes

    def variables(self, binaries: Sequence[OpenBinary], environment: Mapping[str, str]) -> dict[str, str]:
        """Return what the environment of a program that starts with these is to have besides: nothing where it would
        not do with the library. Its probes must be known."""
        if self._library is None or not binaries or self.why_not(binaries, is_set=False) is not None:
            return {}
        return self._library.variables(environment.get(VARIABLE, ""))

    def starts(self, pid: int, binaries: Sequence[OpenBinary]) -> None:
        """Decide of the program that a process is going to execute; `binaries`: with their probes, itself first."""
        self._processes.discard(pid)
        if self._path is None or not binaries:
            return
        reason = self.why_not(binaries)
        if reason is None:
            self._processes.add(pid)
        elif any(is_of_heap(placement) for binary in binaries for _, placement in binary.placements):
            self.refusals[binaries[0].path] = reason

    def is_missing(self, pid: int, mapped: Sequence[OpenBinary]) -> bool:
        """Tell whether a process was taken to have the library and has not, by what it maps; it is not asked again."""
        if pid not in self._processes or any(binary.path == self._path for binary in mapped):
            return False
        if all(binary.image.soname != C_LIBRARY for binary in mapped):
            return False  # its loader has not begun
        self._processes.discard(pid)
        self.refusals[mapped[0].path] = "its loader has not loaded the library"
        return True

    def forked(self, parent: int, child: int) -> None:
        if parent in self._processes:
            self._processes.add(child)

    def forget(self, pid: int) -> None:
        self._processes.discard(pid)
        self._left_out.pop(pid, None)

    def chosen(self, pid: int, binary: OpenBinary) -> list[Placed]:
        """Return which of a binary's places are to be probed in a process."""
        if pid not in self._processes:
            count, usual = self._usual.get(binary.id, (-1, []))
            if count != len(binary.placements):
                usual = [placed for placed in binary.placements if not is_of_wrapper(placed[1])]
                self._usual[binary.id] = len(binary.placements), usual
            return usual
        self._left_out.setdefault(pid, set()).add(binary.id)
        return [placed for placed in binary.placements if not is_of_heap(placed[1])]

    def left_out(self, pid: int, binary: OpenBinary) -> list[Placed]:
        """Return those that were not chosen and are to be probed by now; each once."""
        left = self._left_out.get(pid, set())
        if pid in self._processes or binary.id not in left:
            return []
        left.discard(binary.id)
        return [placed for placed in binary.placements if is_of_heap(placed[1])]

    def why_not(self, binaries: Sequence[OpenBinary], *, is_set: bool = True) -> str | None:
        """Return why a program that starts with these does not do with the library's places; None where it does.

        `is_set`: whether LD_PRELOAD names it already.
        """
        if binaries[0].is_static or not any(binary.is_loader for binary in binaries):
            return "it is static"
        libc = next((binary for binary in binaries if binary.image.soname == C_LIBRARY), None)
        if libc is None or not libc.names.find("dlsym"):
            return "its C library is not glibc 2.34 or newer"
        reason = self._foreign(binaries, libc)
        if reason is None and is_set and all(binary.path != self._path for binary in binaries):
            return "LD_PRELOAD does not name the library in its environment, or it is not found under its root"
        return reason

    def _foreign(self, binaries: Sequence[OpenBinary], libc: OpenBinary) -> str | None:
        for binary in binaries:
            if binary is libc or binary.is_loader or binary.path == self._path:
                continue
            if any(is_of_heap(placement) for _, placement in binary.placements) or defines_malloc(binary):
                return f"it has an allocator of its own, in {binary.path}"
            if any(map(binary.names.mentions, _OTHER_NAMES)):
                return f"{binary.path} calls libc's malloc by another name"
        functions = {p.site.function.function for _, p in libc.placements if is_of_heap(p)}
        unknown = sorted(functions - WRAPPED)
        return f"its C library has {unknown[0]}(), which the library does not know" if unknown else None
