"""The names of types that the target gives as strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.kernel import bpf
from tracer.model import records
from tracer.model.records import TypeSource
from tracer.model.snapshot import Mapping

_KEY = np.dtype([("hash", "<u8")])


def read_type_names(map_fd: int, binaries: Binaries, mappings: Sequence[Mapping]) -> dict[int, str]:
    """Return hash to name, of all but classes.

    A literal whose page the target never touched could not be read when it was needed; it stands in its binary's
    file.
    """
    keys, values = bpf.read_hash(map_fd, _KEY, records.TYPE_NAME, 4096)
    return {
        int(key["hash"]):
            _name_in_file(value, binaries, mappings) if value["source"] == TypeSource.UNREAD else _text(value["name"])
        for key, value in zip(keys, values, strict=True)
        if value["source"] != TypeSource.CLASS
    }


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def _name_in_file(value: np.void, binaries: Binaries, mappings: Sequence[Mapping]) -> str:
    """Return the name, unless files of several names, or one that was rewritten, were mapped where it stands."""
    pointer, space = int(value["pointer"]), (int(value["pid"]), int(value["generation"]))
    found = set()
    for mapping in mappings:
        if (mapping.pid, mapping.generation) == space and mapping.start <= pointer < mapping.end:
            binary: OpenBinary = binaries.all[mapping.binary - 1]
            at = pointer - mapping.start + mapping.file_offset
            found.add(None if binary.is_stale else _text(bytes(binary.image.data[at : at + records.NAME_BYTES])))
    name = found.pop() if len(found) == 1 else None
    return f"type named at {pointer:#x}" if name is None else name
