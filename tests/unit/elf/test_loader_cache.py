"""glibc's list of libraries: in the formats that ldconfig writes, and damaged."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.elf.loader_cache import MOST_BYTES, parse_loader_cache, read_loader_cache

LDCONFIG = "/sbin/ldconfig"
LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with three libraries, one of them for a newer processor too."""
    place = tmp_path_factory.mktemp("libraries")
    (place / "source.c").write_text("int one;\n")
    (place / "glibc-hwcaps/x86-64-v3").mkdir(parents=True)
    for name in ("liba.so.1", "libb.so.2", "glibc-hwcaps/x86-64-v3/libb.so.2", "libc10.so.3"):
        soname = f"-Wl,-soname,{Path(name).name}"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", place / name, place / "source.c", soname], check=True)
    return place


@pytest.mark.parametrize("format_", ["new", "compat", "old"])
def test_what_ldconfig_writes(folder: Path, tmp_path: Path, format_: str) -> None:
    configuration, written = tmp_path / "conf", tmp_path / "cache"
    configuration.write_text(f"{folder}\n")
    subprocess.run([LDCONFIG, "-c", format_, "-X", "-f", configuration, "-C", written], check=True, timeout=60,
                   capture_output=True)  # fmt: skip
    cache = read_loader_cache(str(written))
    assert cache.find("liba.so.1", LEVELS) == str(folder / "liba.so.1")
    assert cache.find("libc10.so.3", ()) == str(folder / "libc10.so.3")
    if format_ != "old":  # which knows no processors
        assert cache.find("libb.so.2", ()) == str(folder / "libb.so.2")
        assert cache.find("libb.so.2", LEVELS) == str(folder / "glibc-hwcaps/x86-64-v3/libb.so.2")
    assert cache.find("libnothing.so", LEVELS) is None
    listed = subprocess.run([LDCONFIG, "-p", "-C", written], check=True, capture_output=True, text=True).stdout
    plain = {(m[1], m[2]) for m in re.finditer(r"^\t(\S+) \(libc6,x86-64\) => (\S+)$", listed, re.MULTILINE)}
    assert {(name, path) for name in cache.entries for level, path in cache.entries[name] if not level} >= plain
    assert len(plain) > 3


def test_what_is_no_cache_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"")
    os.truncate(tmp_path / "large", MOST_BYTES + 1)
    for name in ("pipe", "large", "missing", ""):
        assert read_loader_cache(str(tmp_path / name)).entries == {}


REAL = Path("/etc/ld.so.cache").read_bytes()


@given(st.integers(0, len(REAL) - 1), st.binary(min_size=1, max_size=8), st.integers(0, len(REAL)))
def test_damaged_ones(at: int, change: bytes, length: int) -> None:
    data = REAL[:at] + change + REAL[at + len(change) :]
    parse_loader_cache(data)
    parse_loader_cache(data[:length])


@given(st.integers(0, 40), st.integers(0, 1 << 32 - 1))
def test_damaged_headers(at: int, value: int) -> None:
    header = bytearray(REAL[:4096])
    struct.pack_into("<I", header, at, value & 0xFFFFFFFF)
    for prefix in (b"", b"ld.so-1.7.0\0\0\0\0\0", b"ld.so-1.7.0\0\xff\xff\xff\x7f"):
        parse_loader_cache(prefix + bytes(header))
