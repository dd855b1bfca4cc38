"""Interpreters in the target's binaries, told to the programs that walk their frames."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tracer.binaries.open_binaries import OpenBinary
from tracer.interpreters.lua.layout import LAYOUTS, VERSIONS
from tracer.interpreters.python.debug_offsets import TABLE_BYTES
from tracer.interpreters.python.layout import Offsets, python_layout
from tracer.kernel.later_programs import InterpreterPrograms
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model import records

_RUNTIME, _VERSION, _CODE_TYPE = "_PyRuntime", "Py_Version", "PyCode_Type"
_DEBUG_SYMBOLS = ("_Py_RefTotal", "_Py_NegativeRefcount")
_VERSION_BYTES = 4
_ADDRESS_MASK = (1 << 64) - 1


class InterpreterRuntimes:
    """Finds Pythons once per binary. `programs`: what walks their frames; None where they are not wanted."""

    def __init__(self, maps: Maps, programs: InterpreterPrograms | None, mishaps: Mishaps) -> None:
        self._programs, self._mishaps = programs, mishaps
        self._pythons = maps.view("PYTHONS", records.PYTHON, records.TABLES)
        self._known: dict[int, Offsets | None] = {}
        self.notes: list[str] = []
        luas = maps.view("LUAS", records.LUA, records.LUA_LAYOUTS)
        for version, layout in LAYOUTS.items():
            for field, offset in layout.items():
                luas[field][VERSIONS.index(version)] = offset

    def load_programs(self, binaries: Iterable[OpenBinary]) -> None:
        """Load what walks Python's frames if one of the binaries is a Python: better now than while it is held."""
        if self._programs is not None and any(self._offsets(binary) for binary in binaries):
            _ = self._programs.fds

    def enter(self, table: int, mapped: Iterable[tuple[OpenBinary, int]]) -> None:
        """Say of a mapping table which Python runs there, if any: binaries with their bias."""
        row = np.zeros(1, records.PYTHON)
        for binary, bias in mapped if self._programs else ():
            offsets = self._offsets(binary)
            runtime, code_type = (binary.link_address(name) for name in (_RUNTIME, _CODE_TYPE))
            if offsets is None or runtime is None or code_type is None:
                continue
            if self._programs is None or not self._programs.fds:
                break
            row["runtime"], row["code_type"] = (runtime + bias) & _ADDRESS_MASK, (code_type + bias) & _ADDRESS_MASK
            for field, offset in offsets.items():
                row[field] = offset
            break
        self._pythons[table : table + 1] = row

    def _offsets(self, binary: OpenBinary) -> Offsets | None:
        if binary.id not in self._known:
            self._known[binary.id] = None
            with self._mishaps.attempt():
                self._known[binary.id] = self._look_at(binary)
        return self._known[binary.id]

    def _look_at(self, binary: OpenBinary) -> Offsets | None:
        if not binary.symbols.mentions(_RUNTIME) or binary.link_address(_RUNTIME) is None:
            return None
        where = binary.file_offset(_VERSION)
        if where is None:
            found: Offsets | str = f"the Python in {binary.path} is older than 3.11"
        else:
            data = bytes(binary.image.data[where : where + _VERSION_BYTES])
            version = int.from_bytes(data, "little") if len(data) == _VERSION_BYTES else 0
            runtime = binary.file_offset(_RUNTIME)
            head = b"" if runtime is None else bytes(binary.image.data[runtime : runtime + TABLE_BYTES])
            debug = [name for name in _DEBUG_SYMBOLS if binary.link_address(name) is not None]
            found = python_layout(version, head, debug)
        if isinstance(found, str):
            self.notes.append(f"no frames of Python are shown: {found}")
            return None
        return found
