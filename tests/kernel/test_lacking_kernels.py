"""What a kernel may lack or forbid: refleak says it in a line, and doctor says the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REFLEAK
from patience import TIMEOUT_SECONDS

from tracer.errors import NotPermitted
from tracer.kernel import bpf, lockdown

sys.path.insert(0, str(Path(__file__).parent / "processes"))
from live_refleak import environment

HIDE = 'mount -t tmpfs none "$0" && exec "$@"'


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
        env=environment(), check=False,
    )  # fmt: skip


def test_without_type_information(targets: Path) -> None:
    hidden = ("unshare", "--mount", "sh", "-c", HIDE, "/sys/kernel/btf", REFLEAK)
    trace = _run(*hidden, "--exec", targets / "short")
    assert trace.returncode == 71
    assert trace.stderr.startswith("refleak: cannot read the kernel's type information, /sys/kernel/btf/vmlinux")
    doctor = _run(*hidden, "doctor")
    assert doctor.returncode == 71
    assert "refleak cannot trace here: BTF: " in doctor.stdout


def test_where_no_program_may_read_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    lockdown.check_lockdown()
    load = bpf.load_program

    def refuse(kind: bpf.ProgramType, name: str, code: bytes, **more: object) -> tuple[int, str]:
        if code != lockdown._RETURNS:
            raise OSError(22, "Invalid argument")
        return load(kind, name, code)

    monkeypatch.setattr(bpf, "load_program", refuse)
    with pytest.raises(NotPermitted, match="locked down for confidentiality") as error:
        lockdown.check_lockdown()
    assert "lockdown=integrity" in error.value.hint
