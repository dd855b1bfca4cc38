"""Say at once, in one line, why a target cannot be traced."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tracer.architecture.current import ARCHITECTURE
from tracer.elf.image import Image
from tracer.elf.translator import is_translator
from tracer.errors import NoSuchTarget, NotPermitted, UnsuitableTarget
from tracer.files.plain_file import read_start
from tracer.kernel.namespaces import check_namespaces
from tracer.model.visible import visible

_LONGEST_FIRST_LINE = 256
"""BINPRM_BUF_SIZE of Linux."""
_CAPABILITIES = {39: "CAP_BPF", 38: "CAP_PERFMON", 19: "CAP_SYS_PTRACE", 21: "CAP_SYS_ADMIN"}

_FORBIDDEN = (
    "no capability is missing: a security module (SELinux, AppArmor, Landlock), a sandbox or the user namespace of that"
    " process forbids it"
)


def missing_capabilities() -> list[str]:
    """Return the names of the capabilities that tracing needs and this process lacks."""
    status = Path("/proc/self/status").read_text()
    effective = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff"))
    return [name for bit, name in _CAPABILITIES.items() if not effective >> bit & 1]


def check_privileges() -> None:
    """Raise NotPermitted with what is missing, before anything is started."""
    missing = missing_capabilities()
    if missing:
        raise NotPermitted(f"tracing is not permitted: {', '.join(missing)} missing")
    check_namespaces()


def check_program(path: str) -> None:
    """Raise what is wrong with a program that is to be launched; a script is judged by its interpreter."""
    try:
        start = read_start(path, _LONGEST_FIRST_LINE)
    except OSError as error:
        raise UnsuitableTarget(f"cannot read {path}: {error.strerror}", "check the command's path") from None
    if start.startswith(b"#!"):
        _check_interpreter(path, start[2:].partition(b"\n")[0])
    elif start and not start.startswith(b"\x7fELF") and b"\0" not in start:
        hint = f"refleak traces 64-bit x86 ELF programs; a script begins with #!/bin/sh, or: refleak sh {path}"
        raise UnsuitableTarget(f"{path} is a text without a first line that says what runs it", hint)
    else:
        _check_image(path, path)


def _check_interpreter(path: str, line: bytes) -> None:
    """Raise NoSuchTarget where the kernel would say of the script that it does not exist: execve(2)."""
    name = next(iter(re.split(rb"[ \t]", line.strip(b" \t"), maxsplit=1)), b"")
    if not name.startswith(b"/") or Path(os.fsdecode(name)).exists():
        return
    shown = visible(os.fsdecode(name.removesuffix(b"\r")))
    ending = "; lines end with \\r\\n there: sed -i 's/\\r$//' FILE" if name.endswith(b"\r") else ""
    raise NoSuchTarget(f"{path} wants to be run by {shown}, which is not there", f"check its first line{ending}")


def check_allocators(paths: Sequence[Path]) -> None:
    """Raise what is wrong with libraries that are to be allocators; a program without one is another matter."""
    for path in paths:
        _check_image(str(path), str(path))


def _check_image(path: str, name: str) -> None:
    with Image.open(path, name) as image:
        if image.machine != ARCHITECTURE.elf_machine:
            raise UnsuitableTarget(f"{name} is for another architecture (ELF machine {image.machine})")
        if is_translator(image, name):
            raise UnsuitableTarget(
                f"{name} translates the code that it runs, and would stumble over probes",
                "trace the program without it",
            )


def check_pids(pids: Sequence[int]) -> None:
    """Raise what is wrong with processes that are to be attached to; of several, one may be of another kind."""
    unsuitable = []
    for pid in pids:
        try:
            _check_pid(pid)
        except UnsuitableTarget as error:
            unsuitable.append(error)
    if unsuitable and len(unsuitable) == len(pids):
        raise unsuitable[0]


def _check_pid(pid: int) -> None:
    if not Path(f"/proc/{pid}").is_dir():
        raise NoSuchTarget(f"there is no process {pid}")
    if pid == os.getpid():
        raise NoSuchTarget("refleak cannot trace itself", "give the number of another process")
    try:
        executable = str(Path(f"/proc/{pid}/exe").readlink())
    except FileNotFoundError:
        raise NoSuchTarget(f"process {pid} is a kernel thread or has ended") from None
    except PermissionError:
        said = f"process {pid} may not be looked at"
        raise NotPermitted(said, *[] if missing_capabilities() else [_FORBIDDEN]) from None
    _check_image(f"/proc/{pid}/exe", executable)
