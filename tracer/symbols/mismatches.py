"""Binaries whose path no longer leads to the file that ran."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.elf.image import Image
from tracer.errors import RefleakError
from tracer.model.snapshot import Binary


def mismatched(binaries: Sequence[Binary]) -> list[str]:
    """Return one warning per binary that was deleted or replaced since it was mapped."""
    warnings = (_warning(binary) for binary in binaries if binary.path.startswith("/"))
    return list(dict.fromkeys(warning for warning in warnings if warning is not None))


def _warning(binary: Binary) -> str | None:
    on_disk, build_id = _on_disk(binary.path)
    if not on_disk:
        return f"{binary.path}: the file that ran is gone{_consequence(binary)}"
    if binary.build_id is not None and build_id != binary.build_id:
        return (
            f"{binary.path}: not the file that ran: build id {build_id or 'none'} on disk,"
            f" {binary.build_id} traced{_consequence(binary)}"
        )
    if binary.build_id is None and binary.deleted:
        return f"{binary.path}: the file that ran was deleted, and another may have its path{_consequence(binary)}"
    return None


def _consequence(binary: Binary) -> str:
    return "" if binary.open_path is not None else "; only a debug file with its build id can name its functions"


def _on_disk(path: str) -> tuple[bool, str | None]:
    """Return whether an ELF file is at `path`, and its build id."""
    try:
        with Image.open(path) as image:
            return True, image.build_id
    except (RefleakError, OSError, ValueError):
        return False, None
