"""Bad input: one line that says what is wrong and one that says what to do, a status of its own, no traceback."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from live_refleak import REFLEAK, environment

from tracer import errors


def refused(*words: object, status: int, says: str, hint: str, **variables: str) -> None:
    """Run refleak; assert how it refuses. The command it is given, if any, must not have run."""
    result = subprocess.run(
        [REFLEAK, *map(str, words)], capture_output=True, text=True, env=environment() | variables, timeout=120,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = result.stderr.splitlines()
    assert result.returncode == status, result.stderr
    assert result.stdout == ""
    assert lines[0].startswith("refleak: ") and says in lines[0], result.stderr
    assert hint in result.stderr.partition("\n")[2]
    assert len(lines) <= 2, result.stderr


def test_no_such_command() -> None:
    refused("--exec", "/nowhere/at-all", status=66, says="/nowhere/at-all", hint="check")
    refused("--exec", "no-such-command-at-all", status=66, says="no-such-command-at-all", hint="check")


def test_a_folder_is_no_command(tmp_path: Path) -> None:
    refused("--exec", tmp_path, status=66, says=str(tmp_path), hint="check")


def test_not_executable(tmp_path: Path) -> None:
    program = tmp_path / "program"
    shutil.copy("/bin/true", program)
    program.chmod(0o644)
    refused("--exec", program, status=errors.NotPermitted.exit_code, says="not executable", hint="chmod +x")


def _executable(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("data", [b"", b"hello, this is no program\n", b"\x7fELF", b"\x7fELF\x02\x01\x01" + b"\0" * 9])
def test_not_an_elf_file(tmp_path: Path, data: bytes) -> None:
    program = _executable(tmp_path / "program", data)
    refused("--exec", program, status=errors.UnsuitableTarget.exit_code, says=str(program), hint="64-bit x86 ELF")


def _patched(tmp_path: Path, at: int, value: bytes) -> Path:
    data = bytearray(Path("/bin/true").resolve().read_bytes())
    data[at : at + len(value)] = value
    return _executable(tmp_path / "program", bytes(data))


def test_32_bits(tmp_path: Path) -> None:
    fields = struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0, 52, 0, 0, 52, 32, 0, 0, 0, 0)
    header = b"\x7fELF\x01\x01\x01" + b"\0" * 9 + fields
    program = _executable(tmp_path / "program", header.ljust(4096, b"\0"))
    refused("--exec", program, status=errors.UnsuitableTarget.exit_code, says="32", hint="64-bit x86 ELF")


@pytest.mark.parametrize("machine", [183, 243])
def test_another_architecture(tmp_path: Path, machine: int) -> None:
    program = _patched(tmp_path, 18, struct.pack("<H", machine))
    refused("--exec", program, status=65, says="another architecture", hint="64-bit x86 ELF")


def test_a_translator_of_code() -> None:
    tool = "/usr/libexec/valgrind/memcheck-amd64-linux"
    refused("--exec", tool, status=65, says=f"{tool} translates the code that it runs", hint="trace the program")


def test_a_process_whose_code_is_translated() -> None:
    with subprocess.Popen(["valgrind", "-q", "/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as target:
        try:
            assert target.stdin is not None and target.stdout is not None
            target.stdin.write(b"said\n")
            target.stdin.flush()
            assert target.stdout.readline() == b"said\n"
            refused("-p", target.pid, status=65, says="translates the code that it runs", hint="trace the program")
        finally:
            target.kill()


def test_no_such_process() -> None:
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    refused("-p", child.pid, status=66, says=f"no process {child.pid}", hint="check")


@pytest.mark.parametrize("pid", ["0", "-1", "99999999"])
def test_no_process_at_all(pid: str) -> None:
    refused(f"--pid={pid}", status=66, says=pid, hint="check")


def test_a_kernel_thread() -> None:
    threads = (
        int(place.parent.name) for place in Path("/proc").glob("[0-9]*/stat")
        if place.read_text().rpartition(")")[2].split()[1] == "2"
    )  # fmt: skip
    refused("-p", next(threads), status=66, says="kernel thread", hint="check")


def test_a_zombie() -> None:
    with subprocess.Popen(["/bin/true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        refused("-p", child.pid, status=66, says="has ended", hint="check")


def test_without_privileges(targets: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    result = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
         str(REFLEAK), "--exec", "/bin/touch", str(marker)],
        capture_output=True, text=True, env=environment() | {"HOME": "/nonexistent"}, cwd="/", timeout=60,
    )  # fmt: skip
    assert result.returncode == errors.NotPermitted.exit_code, result.stderr
    first, second = result.stderr.splitlines()
    for capability in ("CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"):
        assert capability in first
    assert second.strip() == f"sudo {REFLEAK} --exec /bin/touch {marker}"
    assert not marker.exists()


def test_bcc_missing(tmp_path: Path, private_folders: Callable[[], Path]) -> None:
    packages = REFLEAK.parent / ".venv/lib"
    assert packages.is_dir()
    cache = private_folders()
    marker = tmp_path / "ran"
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); sys.modules['bcc'] = None;"
        "from tracer.cli.main import main; sys.exit(main())"
    )
    result = subprocess.run(
        [REFLEAK.parent / ".venv/bin/python", "-c", code, REFLEAK.parent, "--exec", "/bin/touch", marker],
        capture_output=True, text=True, env=environment() | {"REFLEAK_CACHE": str(cache)}, timeout=60,
    )  # fmt: skip
    assert result.returncode == errors.BccMissing.exit_code, result.stderr
    assert "python3-bpfcc" in result.stderr and "Traceback" not in result.stderr
    assert not marker.exists()


@pytest.mark.parametrize("place", ["/nowhere/report.json", "/proc/report.json", "/"])
def test_unwritable_output(tmp_path: Path, place: str) -> None:
    marker = tmp_path / "ran"
    refused("-o", place, "--exec", "/bin/touch", marker, status=74, says=place, hint="check the path")
    assert not marker.exists()


def test_output_that_runs_full() -> None:
    """The report is not lost: it goes where it goes without -o."""
    result = subprocess.run(
        [REFLEAK, "-o", "/dev/full", "--exec", "/bin/true"], capture_output=True, text=True, env=environment(),
        timeout=120,
    )  # fmt: skip
    assert result.returncode == errors.CannotWrite.exit_code, result.stderr
    *report, error, hint = result.stderr.splitlines()
    assert any(line.startswith("refleak: ") for line in report)
    assert error == "refleak: cannot write /dev/full: No space left on device"
    assert "free space" in hint


@pytest.mark.parametrize(
    "words",
    [
        ("--max-objects", "many"), ("--max-objects", "-1"), ("--duration", "soon"), ("--duration", "-1"),
        ("--duration", "nan"), ("--top", "x"), ("--format", "papyrus"), ("--refs-only", "--heap-only"),
        ("--error-exitcode", "x"), ("--ring-size", "1T"), ("--max-threads", ""), ("--no-such-option",),
        ("--user", "no-such-user-at-all"), ("--max-objects", "0"), ("--ring-size", "0"), ("--ring-size", "4G"),
        ("--max-objects", "99999999999999999999"), ("--error-exitcode", "256"), ("--error-exitcode", "-1"),
        ("--top", "-1"), ("--allocator", "/nowhere/liballoc.so"), ("--suppressions", "/nowhere/suppressions"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_bad_options(tmp_path: Path, words: tuple[str, ...]) -> None:
    marker = tmp_path / "ran"
    result = subprocess.run(
        [REFLEAK, *words, "--exec", "/bin/touch", marker], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert result.returncode in (2, 75), result.stderr
    assert "Traceback" not in result.stderr
    assert words[0].strip("-").split()[0] in result.stderr or words[-1] in result.stderr
    assert not marker.exists()


def test_neither_command_nor_process() -> None:
    refused(status=2, says="a command or -p PID", hint="--help")
    refused("--exec", status=2, says="a command or -p PID", hint="--help")
    refused("-p", "1", "--exec", "/bin/true", status=2, says="-p", hint="--help")


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    script = _executable(tmp_path / "script", b"#!/nowhere/interpreter\n")
    refused("--exec", script, status=66, says=str(script), hint="check")


