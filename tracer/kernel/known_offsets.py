"""The offsets of kernel struct members, and the numbers of functions, read once in the life of a kernel and kept in the
cache.

The kernel's type information has some 6 MB, which to go through takes 60 ms.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tracer.files.cache_folder import read_own, write_own
from tracer.kernel.btf import MEMBERS, VMLINUX, Btf, kernel_offsets

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Made anew at each start of a kernel, the same in all namespaces (random(4))."""
TASK_ITERATOR = "bpf_iter_task"
_FUNCTIONS = (TASK_ITERATOR,)
_numbers: dict[str, int] = {}
"""Of functions, of the one kernel that this process runs on."""


def known_offsets(cache: Path, boot_id: Path = _BOOT_ID) -> dict[str, int]:
    """Return the offset for each macro of MEMBERS, as `kernel_offsets` does; raises KernelLacks."""
    try:
        boot = boot_id.read_text().strip()
    except OSError:
        return kernel_offsets()
    asked = {"boot": boot, "members": dict(MEMBERS), "functions": [*_FUNCTIONS]}
    path = cache / "kernel-offsets.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(read_own(path))
        if kept["asked"] == asked and _is_whole(kept["offsets"], MEMBERS) and _is_whole(kept["functions"], _FUNCTIONS):
            _numbers.update(kept["functions"])
            return dict(kept["offsets"])
    offsets = kernel_offsets()
    with suppress(OSError):
        functions = {name: function_number(name) for name in _FUNCTIONS}
        write_own(path, json.dumps({"asked": asked, "offsets": offsets, "functions": functions}).encode())
    return offsets


def function_number(name: str) -> int:
    """Return the number of a function's type, 0 where this kernel has no such function; raises OSError. Those of
    _FUNCTIONS are known at once, once the offsets are."""
    if name not in _numbers:
        _numbers[name] = Btf(VMLINUX.read_bytes()).function(name) or 0
    return _numbers[name]


def _is_whole(values: object, names: Iterable[str]) -> bool:
    return isinstance(values, dict) and values.keys() == set(names) and all(
        type(value) is int for value in values.values()
    )  # fmt: skip
