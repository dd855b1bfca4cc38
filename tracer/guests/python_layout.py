"""Where CPython keeps its frames: offsets in its structs by version.

Sources: for 3.11 and 3.12 the headers of these versions (Include/internal/pycore_frame.h, pycore_interp.h,
pycore_runtime.h, Include/cpython/pystate.h, code.h), the same in all their releases; from 3.13 on the table that
CPython publishes about itself at the start of _PyRuntime (Include/internal/pycore_debug_offsets.h).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping

Offsets = Mapping[str, int]
"""Fields of records.PYTHON, without the two addresses."""

_COOKIE = b"xdebugpy"
_PUBLISHED = struct.Struct("<8sQQ" + "Q" * 41)
_REFERENCE_DEBUG = ("_Py_RefTotal", "_Py_NegativeRefcount")
"""Symbols of builds whose structs may have more fields."""
_CODE_IDENTITY = range(64, 144)
"""Bytes of a code object that tell it from others (bpf/python.bpf.h): its names and tables must be there."""
_TEXT = {"ascii_text": 40, "wide_text": 56}
_SHIM = 3
"""`owner` of the frame that marks the end of a run: FRAME_OWNED_BY_CSTACK of 3.12 and 3.13."""

_FIXED: Mapping[int, Offsets] = {
    0x030B: {
        "interpreters": 40, "next_interpreter": 0, "threads": 16, "next_thread": 8, "thread_id": 152, "current": 56,
        "c_frame": 1, "c_frame_current": 8, "c_frame_previous": 16, "code": 32, "previous": 48, "instruction": 56,
        "mark": 68, "mark_value": 1, "mark_is_frame": 1, "first_instruction": 184, "first_line": 72,
        "file": 112, "name": 128, "line_table": 136, "by_content": 1, "ascii_text": 48, "wide_text": 72,
    },
    0x030C: {
        "interpreters": 40, "next_interpreter": 0, "threads": 72, "next_thread": 8, "thread_id": 136, "current": 56,
        "c_frame": 1, "c_frame_current": 0, "c_frame_previous": 8, "code": 0, "previous": 8, "instruction": 56,
        "mark": 70, "mark_value": _SHIM, "mark_is_frame": 0, "first_instruction": 192, "first_line": 68,
        "file": 112, "name": 128, "line_table": 136, "by_content": 0, **_TEXT,
    },
}  # fmt: skip


def version_text(version: int) -> str:
    """Return PY_VERSION_HEX as people write it."""
    return f"{version >> 24}.{version >> 16 & 255}.{version >> 8 & 255}"


def python_layout(version: int, runtime: bytes, symbols: Collection[str]) -> Offsets | str:
    """Return the offsets of a CPython, or why its frames cannot be walked.

    `version`: its PY_VERSION_HEX; `runtime`: the first bytes of _PyRuntime as they are in the file; `symbols`: those
    of _REFERENCE_DEBUG (and any others) that it defines.
    """
    short = version >> 16
    if short in _FIXED:
        if any(name in symbols for name in _REFERENCE_DEBUG):
            return f"CPython {version_text(version)} is a debug build"
        return _FIXED[short]
    if short < 0x030B:
        return f"CPython {version_text(version)} is older than 3.11"
    if short == 0x030D:
        return _published(version, runtime)
    return f"CPython {version_text(version)} is newer than refleak"


def _published(version: int, runtime: bytes) -> Offsets | str:
    if len(runtime) < _PUBLISHED.size or not runtime.startswith(_COOKIE):
        return f"CPython {version_text(version)} does not say where its frames are"
    _, said, free_threaded, *values = _PUBLISHED.unpack_from(runtime)
    if said != version:
        return f"CPython {version_text(version)} says that it is {version_text(said)}"
    if free_threaded:
        return f"CPython {version_text(version)} is a free-threaded build"
    _, _, interpreters = values[:3]
    _, _, next_interpreter, threads = values[3:7]
    _, _, next_thread, _, current, thread_id = values[16:22]
    _, previous, code, instruction, _, mark = values[25:31]
    _, file, _, name, line_table, first_line, _, _, _, first_instruction = values[31:41]
    offsets = {
        "interpreters": interpreters, "next_interpreter": next_interpreter, "threads": threads,
        "next_thread": next_thread, "thread_id": thread_id, "current": current,
        "c_frame": 0, "c_frame_current": 0, "c_frame_previous": 0, "code": code, "previous": previous,
        "instruction": instruction, "mark": mark, "mark_value": _SHIM, "mark_is_frame": 0,
        "first_instruction": first_instruction, "first_line": first_line, "file": file, "name": name,
        "line_table": line_table, "by_content": 0, **_TEXT,
    }  # fmt: skip
    if not _is_sensible(offsets):
        return f"CPython {version_text(version)} has frames that refleak does not know"
    return offsets


def _is_sensible(offsets: Offsets) -> bool:
    in_frame = (offsets[name] for name in ("code", "previous", "instruction", "mark"))
    in_code = (offsets[name] for name in ("file", "name", "line_table", "first_line"))
    return (
        all(offset < 80 for offset in in_frame)
        and all(offset in _CODE_IDENTITY for offset in in_code)
        and max(offsets.values()) < 1 << 16
    )
