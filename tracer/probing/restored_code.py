"""The code of a process where the kernel put back what a file held before it was rewritten.

Each place of a file with a probe has one copy of the instruction that stood there when the first link was made. A
process that maps the file later gets breakpoints there, whatever stands there by then; and when the link is closed,
the first byte of that copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from tracer.binaries.open_binaries import OpenBinary
from tracer.procfs.maps import MapsEntry, paths_that_open, read_maps
from tracer.procfs.process import read_memory

_PAGE = 4096


def restore_code(pid: int, stale: OpenBinary, places: Iterable[int]) -> None:
    """Give a process the bytes that a rewritten file has now at places (file offsets) where a stale binary had probes.

    Only in pages that are otherwise those of the file: others still hold what the file held before.
    """
    ordered = sorted(places)
    for entry in read_maps(pid):
        inside = [at for at in ordered if 0 <= at - entry.file_offset < entry.end - entry.start]
        if inside and not entry.writable and _is_of(pid, entry, stale):
            for page, of_page in groupby(inside, lambda at: at & -_PAGE):
                with suppress(OSError):
                    _restore_page(pid, entry.start + page - entry.file_offset, _page_of(stale.fd, page), of_page)


def _is_of(pid: int, entry: MapsEntry, binary: OpenBinary) -> bool:
    try:
        status = Path(paths_that_open(pid, entry)[0]).stat()
    except OSError:
        return False
    return binary.version is not None and (status.st_dev, status.st_ino) == binary.version.file


def _page_of(fd: int, at: int) -> bytes:
    return os.pread(fd, _PAGE, at).ljust(_PAGE, b"\0")


def _restore_page(pid: int, address: int, wanted: bytes, places: Iterable[int]) -> None:
    found = read_memory(pid, address, _PAGE)
    if found is None or found == wanted or len(found) != _PAGE:
        return
    inside = {at & (_PAGE - 1) for at in places}
    differing = [at for at in range(_PAGE) if found[at] != wanted[at]]
    if inside.issuperset(differing):
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
            for at in differing:
                memory.seek(address + at)
                memory.write(wanted[at : at + 1])
