"""CPythons in the target's binaries, told to the program that walks their frames."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tracer.binaries.open_binaries import OpenBinary
from tracer.interpreters.python.code_end import CODE_TYPE, python_code_end
from tracer.interpreters.python.debug_offsets import TABLE_BYTES
from tracer.interpreters.python.layout import Offsets, python_layout
from tracer.kernel.maps import Maps
from tracer.mishaps import Mishaps
from tracer.model import records

_RUNTIME, _VERSION = "_PyRuntime", "Py_Version"
_DEBUG_SYMBOLS = ("_Py_RefTotal", "_Py_NegativeRefcount")
_VERSION_BYTES = 4
_ADDRESS_MASK = (1 << 64) - 1


class PythonRuntimes:
    """Finds Pythons once per binary."""

    def __init__(self, maps: Maps, mishaps: Mishaps) -> None:
        self._mishaps = mishaps
        self._rows = maps.view("PYTHONS", records.PYTHON, records.TABLES)
        self._known: dict[int, Offsets | None] = {}
        self._ends: dict[int, bool] = {}
        """Whether all ends of a binary's code objects are seen."""
        self._tables: dict[int, set[int]] = {}
        """Where a binary was told of last."""
        self.notes: list[str] = []

    def is_in(self, binary: OpenBinary) -> bool:
        return self._offsets(binary) is not None

    def enter(self, table: int, mapped: Iterable[tuple[OpenBinary, int]]) -> None:
        row = np.zeros(1, records.PYTHON)
        for binary, bias in mapped:
            offsets = self._offsets(binary)
            runtime, code_type = (binary.link_address(name) for name in (_RUNTIME, CODE_TYPE))
            if offsets is None or runtime is None or code_type is None:
                continue
            row["runtime"], row["code_type"] = (runtime + bias) & _ADDRESS_MASK, (code_type + bias) & _ADDRESS_MASK
            for field, offset in offsets.items():
                row[field] = offset
            if binary.id not in self._ends:
                self._ends[binary.id] = python_code_end(binary.image) is not None
            row["ends_seen"] = self._ends[binary.id]
            self._tables.setdefault(binary.id, set()).add(table)
            break
        self._rows[table : table + 1] = row

    def misses_ends(self, binary: OpenBinary) -> None:
        self._ends[binary.id] = False
        for table in self._tables.pop(binary.id, ()):
            self._rows["ends_seen"][table] = 0

    def _offsets(self, binary: OpenBinary) -> Offsets | None:
        if binary.id not in self._known:
            self._known[binary.id] = None
            with self._mishaps.attempt():
                self._known[binary.id] = self._look_at(binary)
        return self._known[binary.id]

    def _look_at(self, binary: OpenBinary) -> Offsets | None:
        if not binary.names.mentions(_RUNTIME) or binary.link_address(_RUNTIME) is None:
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
