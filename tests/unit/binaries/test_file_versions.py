"""A file that is rewritten in place is another binary; one that only gets another name or owner is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tracer.binaries.open_binaries import Binaries, OpenBinary
from tracer.procfs.maps import MapsEntry


def opened(binaries: Binaries, path: Path) -> OpenBinary:
    found = binaries.open([str(path)], path.name)
    assert found is not None
    return found


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy2("/bin/true", tmp_path / "program"))


def open_files() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def rewrite(path: Path, data: bytes) -> None:
    inode = path.stat().st_ino
    path.write_bytes(data)
    assert path.stat().st_ino == inode


def test_a_rewritten_file_is_another_binary(program: Path) -> None:
    binaries, stale = Binaries(), list[OpenBinary]()
    binaries.on_stale = stale.append
    first = opened(binaries, program)
    assert opened(binaries, program) is first
    entry = MapsEntry(0, 4096, False, False, 0, "1:2", 3, str(program))
    assert binaries.mapped(entry, [str(program)]) is first
    rewrite(program, Path("/bin/false").read_bytes() + bytes(16))
    binaries.recheck()
    second = opened(binaries, program)
    assert (stale, second.id, second.is_stale) == ([first], 2, False)
    assert binaries.mapped(entry, [str(program)]) is second
    assert (first.record.open_path, first.record.deleted) == (None, True)
    assert first.record.build_id != second.record.build_id


def test_the_old_time_does_not_hide_other_bytes(program: Path) -> None:
    binaries, before = Binaries(), program.stat()
    first = opened(binaries, program)
    data = bytearray(program.read_bytes())
    data[24:32] = bytes(8)  # its entry
    rewrite(program, bytes(data))
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert opened(binaries, program) is not first


def test_another_name_or_mode_is_the_same_version(program: Path) -> None:
    binaries = Binaries()
    first = opened(binaries, program)
    program.chmod(0o700)
    program.rename(program.with_name("other"))
    binaries.recheck()
    assert opened(binaries, program.with_name("other")) is first


def test_what_was_no_program_may_become_one(tmp_path: Path) -> None:
    binaries, path = Binaries(), tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    assert binaries.open([str(path)], "program") is None
    assert binaries.open([str(path)], "program") is None
    rewrite(path, Path("/bin/true").read_bytes())
    assert opened(binaries, path).id == 1


def test_all_files_are_closed_at_the_end(program: Path) -> None:
    before = open_files()
    binaries = Binaries()
    opened(binaries, program)
    binaries.add_image("vdso", program.read_bytes())
    binaries.close()
    assert open_files() == before


def test_images_in_no_file_are_known_by_their_bytes_and_are_not_endless(program: Path) -> None:
    binaries, data = Binaries(), program.read_bytes()
    first = binaries.add_image("vdso", data)
    assert first is not None and binaries.add_image("vdso", bytes(data)) is first
    assert binaries.add_image("vdso", b"no image") is None
    made = [binaries.add_image("vdso", data + bytes([number])) for number in range(100)]
    assert made[0] is not None and made[-1] is None
    assert binaries.add_image("vdso", data) is first
    binaries.close()
