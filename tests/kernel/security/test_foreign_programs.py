"""Nothing that the target brings along runs with root's rights: its loader, its auditors, its user's Python."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from second_user import REFLEAK, TELL, UID, as_user, compiled, told, under_sudo, users_folder

AUDITOR = TELL + """
unsigned la_version(unsigned version) { return version; }
__attribute__((constructor)) static void loaded(void) { tell(); }
"""
INTERPRETER = r"""
#include <fcntl.h>
#include <sys/syscall.h>
static long call(long number, long first, long second, long third, long fourth)
{
    register long r10 __asm__("r10") = fourth;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}
void _start(void)
{
    char text[16], *at = text + sizeof(text);
    long file = call(SYS_openat, AT_FDCWD, (long)WHO, O_WRONLY | O_CREAT | O_APPEND, 0666);
    unsigned long user = call(SYS_geteuid, 0, 0, 0, 0);
    *--at = '\n';
    do
        *--at = '0' + user % 10;
    while (user /= 10);
    call(SYS_write, file, (long)at, text + sizeof(text) - at, 0);
    call(SYS_exit_group, 0, 0, 0, 0);
}
"""
MAIN = "#include <stdlib.h>\nint main(void) { return malloc(7) == NULL; }\n"
NEEDS = "int helper(void);\nint main(void) { return helper(); }\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    with users_folder() as made:
        yield made


def audited(folder: Path) -> Path:
    """Make a program that has an auditor of its own (DT_AUDIT)."""
    compiled(folder / "evil.so", AUDITOR, "-shared", "-fPIC")
    return compiled(folder / "m", MAIN, "-Wl,--audit=./evil.so")


def audited_for_others(folder: Path) -> Path:
    """Make a program whose library has one (DT_DEPAUDIT)."""
    compiled(folder / "evil.so", AUDITOR, "-shared", "-fPIC")
    return compiled(folder / "m", MAIN, "-Wl,--depaudit=./evil.so")


def interpreted(folder: Path) -> Path:
    """Make a program with a loader of its own (PT_INTERP). Root may own it: a link can lead to any program."""
    flags = ("-static-pie", "-fPIE", "-O1", "-nostdlib", "-fno-stack-protector", "-mno-sse")
    loader = compiled(folder / "loader", INTERPRETER, *flags)
    return compiled(folder / "m", MAIN, f"-Wl,--dynamic-linker={loader}")


PROGRAMS = pytest.mark.parametrize("make", [audited, audited_for_others, interpreted])
Make = Callable[[Path], Path]


@PROGRAMS
def test_the_user_sees_that_it_runs(folder: Path, make: Make) -> None:
    """Without refleak: the traps of this test are ones."""
    subprocess.run(as_user(make(folder)), cwd=folder, timeout=60)
    assert set(told(folder)) == {str(UID)}


@PROGRAMS
def test_probes_runs_nothing(folder: Path, make: Make) -> None:
    make(folder)
    listed = under_sudo("probes", "./m", cwd=folder)
    assert "Traceback" not in listed.stderr
    assert told(folder) == []


@PROGRAMS
def test_a_launched_program_is_run_by_its_user_alone(folder: Path, make: Make) -> None:
    make(folder)
    traced = under_sudo("--exec", "./m", cwd=folder)
    assert "Traceback" not in traced.stderr
    assert set(told(folder)) == {str(UID)}


@PROGRAMS
def test_a_program_that_an_attached_process_becomes(folder: Path, make: Make) -> None:
    make(folder)
    script = "import os; print('ready', flush=True); os.read(0, 1); os.execv('./m', ['./m'])"
    with subprocess.Popen(
        as_user("/usr/bin/python3", "-I", "-c", script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
        bufsize=0,
    ) as target:  # fmt: skip
        assert target.stdout is not None and target.stdin is not None
        assert target.stdout.readline() == b"ready\n"
        report = folder / "report.json"
        command = [REFLEAK, "-o", report, "--format", "json", "-p", str(target.pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=folder) as refleak:
            try:
                _wait_until_armed(refleak)
                target.stdin.write(b"x")
                target.wait(60)
                errors = refleak.communicate(timeout=60)[1].decode()
            finally:
                refleak.kill()
    assert "Traceback" not in errors and report.exists(), errors
    assert set(told(folder)) == {str(UID)}


def _wait_until_armed(refleak: subprocess.Popen[bytes]) -> None:
    """Return once its three tracepoints are attached, which is after all that was there to be probed."""
    deadline = time.monotonic() + 60
    while refleak.poll() is None and time.monotonic() < deadline:
        kinds = []
        for entry in Path(f"/proc/{refleak.pid}/fdinfo").iterdir():
            try:
                kinds.append(entry.read_text())
            except OSError:
                continue
        if sum("tp_name:" in text and "link_id:" in text for text in kinds) == 3:
            return
        select.select([], [], [], 0.02)
    raise AssertionError("refleak did not attach")


CUSTOMIZE = "import os\nwith open({who!r}, 'a') as file: file.write(f'{{os.geteuid()}}\\n')\n"


@pytest.mark.parametrize("variable", ["HOME", "PYTHONUSERBASE", "PYTHONPATH", "PYTHONSTARTUP"])
def test_python_takes_nothing_from_the_users_home(folder: Path, variable: str) -> None:
    base = folder / ".local" if variable == "HOME" else folder
    site = base / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    site.mkdir(parents=True)
    for place in (site, folder):
        for name in ("usercustomize.py", "sitecustomize.py"):
            (place / name).write_text(CUSTOMIZE.format(who=str(folder / "who")))
    value = str(folder / "usercustomize.py") if variable == "PYTHONSTARTUP" else str(folder)
    variables = {variable: value}
    if variable in ("HOME", "PYTHONUSERBASE", "PYTHONPATH"):  # the trap is one
        python = Path(sys.prefix) / "bin/python" if variable == "PYTHONPATH" else Path("/usr/bin/python3")
        subprocess.run([python, "-c", ""], env=os.environ | variables, check=True, timeout=60)
        assert told(folder) != []
        (folder / "who").unlink()
    outcome = under_sudo("probes", "/bin/true", cwd=folder, variables=variables)
    assert outcome.returncode == 0, outcome.stderr
    outcome = under_sudo("--exec", "/bin/true", cwd=folder, variables=variables)
    assert outcome.returncode == 0, outcome.stderr
    assert told(folder) == []
