"""The offsets of kernel struct members, read once in the life of a kernel and kept in the cache.

The kernel's type information has some 6 MB, which to go through takes 60 ms.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from tracer.files.cache_folder import read_own, write_own
from tracer.kernel.btf import MEMBERS, kernel_offsets

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Made anew at each start of a kernel, the same in all namespaces (random(4))."""


def known_offsets(cache: Path, boot_id: Path = _BOOT_ID) -> dict[str, int]:
    """Return the offset for each macro of MEMBERS, as `kernel_offsets` does; raises KernelLacks."""
    try:
        boot = boot_id.read_text().strip()
    except OSError:
        return kernel_offsets()
    asked = {"boot": boot, "members": dict(MEMBERS)}
    path = cache / "kernel-offsets.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(read_own(path))
        if kept["asked"] == asked and _is_whole(kept["offsets"]):
            return dict(kept["offsets"])
    offsets = kernel_offsets()
    with suppress(OSError):
        write_own(path, json.dumps({"asked": asked, "offsets": offsets}).encode())
    return offsets


def _is_whole(offsets: object) -> bool:
    return isinstance(offsets, dict) and offsets.keys() == MEMBERS.keys() and all(
        type(value) is int for value in offsets.values()
    )  # fmt: skip
