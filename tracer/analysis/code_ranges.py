"""Code ranges of binaries."""

from __future__ import annotations

from tracer.model.findings import CodeRange
from tracer.model.snapshot import Snapshot


def code_ranges(snapshot: Snapshot) -> tuple[CodeRange, ...]:
    """Return the executable mappings in link addresses, those of equal binaries once, by path and start."""
    binaries = {binary.id: binary for binary in snapshot.binaries}
    found = {
        CodeRange(
            path=binaries[m.binary].path,
            build_id=binaries[m.binary].build_id,
            start=m.link_address,
            end=m.link_address + m.end - m.start,
            file_offset=m.file_offset,
            fixed=m.link_address == m.start,
        )
        for m in snapshot.mappings
        if m.executable and m.link_address is not None and m.binary in binaries
    }
    return tuple(sorted(found, key=lambda r: (r.path, r.build_id or "", r.start, r.end, r.file_offset, r.fixed)))
