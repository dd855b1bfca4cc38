"""Code at the places of probes, as it was when they were found: a file that was rewritten has other code there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.binaries.open_binaries import OpenBinary


class FoundCode:
    """What stood there, by binary."""

    def __init__(self) -> None:
        self._code: dict[int, dict[int, bytes]] = {}
        self._stamps: dict[int, tuple[int, int]] = {}
        """When the file of each was changed last, if it was looked at since and has another time if it is changed
        again."""

    def note(self, binary: OpenBinary, places: Iterable[int]) -> None:
        self._code[binary.id] = {at: binary.code_at(at) for at in places}

    def of(self, binary: OpenBinary) -> Mapping[int, bytes]:
        return self._code.get(binary.id, {})

    def is_there(self, binary: OpenBinary) -> bool:
        """Tell whether a binary's file still has it."""
        stamp = binary.stamp
        if stamp is not None and self._stamps.get(binary.id) == stamp:
            return True
        if any(binary.code_now(at) != code for at, code in self._code.get(binary.id, {}).items()):
            return False
        if stamp is not None:
            self._stamps[binary.id] = stamp
        return True
