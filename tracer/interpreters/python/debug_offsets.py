"""The table that CPython publishes about itself at the start of _PyRuntime, from 3.13 on.

Source: _Py_DebugOffsets in Include/internal/pycore_debug_offsets.h of 3.13, 3.14 and 3.15. Each version puts fields
in between those of the one before, and the table does not say which: so only tables of known versions are read.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

HEAD = struct.Struct("<8sQQ")
"""Cookie, PY_VERSION_HEX, and whether the build is free-threaded."""
COOKIE = b"xdebugpy"
TABLE_BYTES = 1024
"""More than any version's table has up to the last field of _FIRST."""
_WORD = struct.Struct("<Q")

_FIRST = {
    "runtime": "size finalizing interpreters_head",
    "interpreter": "size id next threads_head gc imports_modules sysdict builtins ceval_gil"
                   " gil gil_enabled gil_locked gil_last_holder",
    "thread": "size prev next interp current_frame thread_id native_thread_id datastack_chunk status",
    "frame": "size previous executable instr_ptr localsplus owner",
    "code": "size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds code_adaptive",
    "object": "size ob_type",
    "type": "size tp_name tp_repr tp_flags",
    "tuple": "size ob_item ob_size",
    "list": "size ob_item ob_size",
    "dict": "size ma_keys ma_values",
    "float": "size ob_fval",
    "long": "size lv_tag ob_digit",
    "bytes": "size ob_size ob_sval",
    "unicode": "size state length asciiobject_size",
}  # fmt: skip
"""3.13: sections and their fields, in their order, up to the last that refleak reads."""
_ADDED: Mapping[int, Mapping[str, str]] = {
    0x030E: {
        "interpreter.threads_head": "interpreter.threads_main",
        "interpreter.gil_last_holder": "interpreter.code_object_generation interpreter.tlbc_generation",
        "frame.owner": "frame.stackpointer frame.tlbc_index",
        "code.code_adaptive": "code.tlbc",
        "list.ob_size": "set.size set.used set.table set.mask",
    },
    0x030F: {
        "thread.current_frame": "thread.base_frame thread.last_profiled_frame thread.last_profiled_frame_seq",
        "thread.status": "thread.holds_gil thread.gil_requested thread.current_exception thread.exc_state"
                         " exception.exc_value",
        "type.tp_flags": "type.tp_basicsize type.tp_dictoffset heap_type.size heap_type.ht_cached_keys",
        "unicode.asciiobject_size": "unicode.compactunicodeobject_size",
    },
}  # fmt: skip
"""What a version has more than the one before, by the field that it comes after."""


def _fields() -> Mapping[int, Sequence[str]]:
    known = [f"{section}.{name}" for section, names in _FIRST.items() for name in names.split()]
    found = {0x030D: known}
    for version, added in _ADDED.items():
        known = [name for field in known for name in (field, *added.get(field, "").split())]
        found[version] = known
    return found


FIELDS = _fields()
"""By major and minor version (0x030D): the fields that follow HEAD, 8 bytes each."""


def read_table(version: int, runtime: bytes) -> Mapping[str, int] | None:
    """Return a version's fields ("frame.owner": bytes from the start of a frame); None where `runtime` is too short.

    `version`: one of FIELDS; `runtime`: the first bytes of _PyRuntime.
    """
    names = FIELDS[version]
    if len(runtime) < HEAD.size + len(names) * _WORD.size:
        return None
    return {name: _WORD.unpack_from(runtime, HEAD.size + i * _WORD.size)[0] for i, name in enumerate(names)}
