"""BPF bytecode: compiled by BCC, which is imported here and nowhere else, and kept in a cache.

The sources are compiled with a placeholder for the descriptor of each map, so that the same bytecode serves every
run: `relocate` puts the descriptors of this run in. That saves BCC's import and clang's second at each start.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from tracer.errors import BccMissing, ProgramRefused
from tracer.files.cache_folder import read_own, write_own

PLACEHOLDER = 0x5EAF0000
"""Placeholder of the first map; the others follow. No real descriptor is that large."""

_NO_BCC = "the Python module of BCC is not installed for this interpreter"
_MAGIC = b"refleak-bpf-1\n"
_LOAD_IMMEDIATE = 0x18


def placeholders(maps: Sequence[str]) -> list[str]:
    """Return the flags that give each map its placeholder."""
    return [f"-DFD_{name}={PLACEHOLDER + index}" for index, name in enumerate(maps)]


def relocate(code: bytes, maps: Sequence[str], descriptors: Mapping[str, int]) -> bytes:
    """Replace the placeholder in each 64-bit load of a map by its file descriptor: only of maps that are loaded one is
    asked for."""
    words = np.frombuffer(bytearray(code), "<u8")
    immediate = words >> np.uint64(32)
    is_map = (words & np.uint64(0xFF) == _LOAD_IMMEDIATE) & (immediate >= PLACEHOLDER)
    is_map &= immediate < PLACEHOLDER + len(maps)
    index = (immediate[is_map] - np.uint64(PLACEHOLDER)).astype(np.int64)
    fds = np.zeros(len(maps), "<u8")
    for loaded in set(index.tolist()):
        fds[loaded] = descriptors[maps[loaded]]
    words[is_map] = words[is_map] & np.uint64(0xFFFFFFFF) | fds[index] << np.uint64(32)
    return words.tobytes()


def compile_programs(source: str, flags: Sequence[str], names: Sequence[str], include: Path) -> dict[str, bytes]:
    """Compile through BCC; raises BccMissing, or ProgramRefused with what clang printed above it."""
    os.environ["BCC_KERNEL_SOURCE"] = str(include.parent)
    try:
        from bcc import BPF
    except ImportError:
        raise BccMissing(_NO_BCC) from None
    try:
        module = BPF(text=source.encode(), cflags=list(flags))
        return {name: module.dump_func(name.encode()) for name in names}
    except Exception as error:
        raise ProgramRefused(f"BCC could not compile the BPF programs: {error}", "") from None


def bcc_version() -> str:
    """Return the version of BCC; raises BccMissing."""
    try:
        import bcc
    except (ImportError, OSError):
        raise BccMissing(_NO_BCC) from None
    if not hasattr(bcc, "BPF"):  # another project of that name
        raise BccMissing(_NO_BCC)
    return str(getattr(bcc, "__version__", "unknown"))


def cache_key(source: str, flags: Sequence[str], headers: Sequence[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (source, *flags, *(header.read_text() for header in headers)):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def read_cached(path: Path) -> dict[str, bytes] | None:
    """Return the programs of a cache file, or None where it is absent or damaged."""
    try:
        data = read_own(path)
        if not data.startswith(_MAGIC):
            return None
        checksum, size = struct.unpack_from("<16sI", data, len(_MAGIC))
        body = data[len(_MAGIC) + 20 :]
        if hashlib.blake2b(body, digest_size=16).digest() != checksum:
            return None
        lengths: Mapping[str, int] = json.loads(body[:size])
        programs, at = {}, size
        for name, length in lengths.items():
            programs[name] = body[at : at + length]
            at += length
        return programs
    except (OSError, ValueError, struct.error):
        return None


def write_cached(path: Path, programs: Mapping[str, bytes]) -> None:
    """Write a cache file at once; a cache that cannot be written is no failure."""
    header = json.dumps({name: len(code) for name, code in programs.items()}).encode()
    body = header + b"".join(programs.values())
    with suppress(OSError):
        write_own(path, _MAGIC, hashlib.blake2b(body, digest_size=16).digest(), struct.pack("<I", len(header)), body)
