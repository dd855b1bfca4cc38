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
ALTERNATE_STACK = "task_struct.sas_ss_sp"
_NAMES = (TASK_ITERATOR, ALTERNATE_STACK)
_numbers: dict[str, int] = {}
"""Of the one kernel that this process runs on."""


def known_offsets(cache: Path, boot_id: Path = _BOOT_ID) -> dict[str, int]:
    """Return the offset for each macro of MEMBERS, as `kernel_offsets` does; raises KernelLacks."""
    try:
        boot = boot_id.read_text().strip()
    except OSError:
        return kernel_offsets()
    asked = {"boot": boot, "members": dict(MEMBERS), "names": [*_NAMES]}
    path = cache / "kernel-offsets.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(read_own(path))
        if kept["asked"] == asked and _is_whole(kept["offsets"], MEMBERS) and _is_whole(kept["numbers"], _NAMES):
            _numbers.update(kept["numbers"])
            return dict(kept["offsets"])
    offsets = kernel_offsets()
    with suppress(OSError):
        numbers = {name: kernel_number(name) for name in _NAMES}
        write_own(path, json.dumps({"asked": asked, "offsets": offsets, "numbers": numbers}).encode())
    return offsets


def kernel_number(name: str) -> int:
    """Return the number of a function's type, or the offset of a member (`struct.member`), 0 where this kernel has no
    such thing; raises OSError. Those of _NAMES are known at once, once the offsets are."""
    if name not in _numbers:
        types = Btf(VMLINUX.read_bytes())
        _numbers[name] = (types.offset(name) if "." in name else types.function(name)) or 0
    return _numbers[name]


def _is_whole(values: object, names: Iterable[str]) -> bool:
    return isinstance(values, dict) and values.keys() == set(names) and all(
        type(value) is int for value in values.values()
    )  # fmt: skip
