"""Layout of CPython's structs by version: offsets by which its frames are found.

Sources: for 3.11 and 3.12 the headers of these versions (Include/internal/pycore_frame.h, pycore_interp.h,
pycore_runtime.h, Include/cpython/pystate.h, code.h), the same in all their releases; from 3.13 on the table that
CPython publishes (debug_offsets.py), and for what this does not tell the headers of 3.13 to 3.15
(pycore_interpframe_structs.h: `enum _frameowner`; cpython/unicodeobject.h).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tracer.interpreters.python import debug_offsets

Offsets = Mapping[str, int]
"""Fields of records.PYTHON, without the two addresses."""

_REFERENCE_DEBUG = ("_Py_RefTotal", "_Py_NegativeRefcount")
"""Symbols of builds whose structs may have more fields."""
_CODE_IDENTITY = range(64, 144)
"""Bytes of a code object that tell it from others (bpf/python.bpf.h): its names and tables must be there."""
_TEXT = {"ascii_text": 40, "wide_text": 56}
_SHIM = 3
"""`owner` of the frame that marks the end of a run: FRAME_OWNED_BY_CSTACK of 3.12 and 3.13, _BY_INTERPRETER later."""
_PUBLISHED: Mapping[int, Mapping[str, int]] = {
    0x030D: {"frame.size": 80, "code.size": 208},
    0x030E: {"frame.size": 88, "code.size": 216},
    0x030F: {"frame.size": 88, "code.size": 216, "unicode.compactunicodeobject_size": _TEXT["wide_text"]},
}
_PUBLISHED_BY_ALL = {
    "object.ob_type": 8, "bytes.ob_size": 16, "bytes.ob_sval": 32, "unicode.length": 16, "unicode.state": 32,
    "unicode.asciiobject_size": _TEXT["ascii_text"], "unicode.size": _TEXT["wide_text"] + 8,
}  # fmt: skip
"""What a known version's table says if its structs are those that the programs walk, and if it was read aright."""

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
    if short not in debug_offsets.FIELDS:
        return f"CPython {version_text(version)} is newer than refleak"
    return _published(version, runtime)


def _published(version: int, runtime: bytes) -> Offsets | str:
    table = debug_offsets.read_table(version >> 16, runtime)
    if table is None or not runtime.startswith(debug_offsets.COOKIE):
        return f"CPython {version_text(version)} does not say where its frames are"
    _, said, free_threaded = debug_offsets.HEAD.unpack_from(runtime)
    if said != version:
        return f"CPython {version_text(version)} says that it is {version_text(said)}"
    if free_threaded:
        return f"CPython {version_text(version)} is a free-threaded build"
    offsets = {
        "interpreters": table["runtime.interpreters_head"], "next_interpreter": table["interpreter.next"],
        "threads": table["interpreter.threads_head"], "next_thread": table["thread.next"],
        "thread_id": table["thread.thread_id"], "current": table["thread.current_frame"],
        "c_frame": 0, "c_frame_current": 0, "c_frame_previous": 0, "code": table["frame.executable"],
        "previous": table["frame.previous"], "instruction": table["frame.instr_ptr"], "mark": table["frame.owner"],
        "mark_value": _SHIM, "mark_is_frame": 0, "first_instruction": table["code.code_adaptive"],
        "first_line": table["code.firstlineno"], "file": table["code.filename"], "name": table["code.qualname"],
        "line_table": table["code.linetable"], "by_content": 0, **_TEXT,
    }  # fmt: skip
    expected = {**_PUBLISHED_BY_ALL, **_PUBLISHED[version >> 16]}
    if any(table[field] != value for field, value in expected.items()) or not _is_sensible(offsets):
        return f"CPython {version_text(version)} has frames that refleak does not know"
    return offsets


def _is_sensible(offsets: Offsets) -> bool:
    """Return whether the programs can read what these say: 80 bytes of a frame, its pointers as words."""
    pointers = [offsets[name] for name in ("code", "previous", "instruction")]
    in_code = (offsets[name] for name in ("file", "name", "line_table", "first_line"))
    return (
        all(offset < 80 and offset % 8 == 0 for offset in pointers)
        and offsets["mark"] < 80
        and all(offset in _CODE_IDENTITY for offset in in_code)
        and max(offsets.values()) < 1 << 16
    )
