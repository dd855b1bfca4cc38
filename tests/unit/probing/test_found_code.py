"""Tests of tracer.probing.found_code: a file that was rewritten is seen, whatever its times say."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from tracer.binaries.open_binaries import Binaries
from tracer.probing.found_code import FoundCode

AT = 5000
PROGRAM = Path("/bin/true").read_bytes()


def test_other_code_is_seen_where_the_time_tells_nothing(tmp_path: Path) -> None:
    """Rewritten within a tick of the clock, or by who sets the times back."""
    path, code = tmp_path / "program", FoundCode()
    path.write_bytes(PROGRAM)
    with closing(Binaries()) as binaries:
        binary = binaries.open([str(path)], str(path))
        assert binary is not None
        code.note(binary, [AT])
        assert code.is_there(binary)
        status = path.stat()
        with open(path, "r+b") as file:
            file.seek(AT)
            file.write(bytes([PROGRAM[AT] ^ 1]))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert not code.is_there(binary)


def test_a_file_with_old_times_is_read_once(tmp_path: Path) -> None:
    code = FoundCode()
    with closing(Binaries()) as binaries:
        binary = binaries.open(["/bin/true"], "/bin/true")
        assert binary is not None
        assert binary.stamp is not None
        code.note(binary, [AT])
        assert code.is_there(binary)
        os.close(binary.fd)
        binary.fd = os.open("/bin/true", os.O_PATH)  # it can be asked for its times, and not be read
        assert code.is_there(binary)
