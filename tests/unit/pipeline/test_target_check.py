"""Targets that may not be looked at, and what is said of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.errors import NotPermitted
from tracer.pipeline import target_check


@pytest.mark.parametrize(("missing", "hint"), [([], "no capability is missing: "), (["CAP_BPF"], NotPermitted.hint)])
def test_sudo_is_no_hint_for_root(monkeypatch: pytest.MonkeyPatch, missing: list[str], hint: str) -> None:
    def forbidden(_: Path) -> Path:
        raise PermissionError

    monkeypatch.setattr(target_check, "missing_capabilities", lambda: missing)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        monkeypatch.setattr(Path, "readlink", forbidden)
        with pytest.raises(NotPermitted, match=f"process {child.pid} may not be looked at") as refused:
            target_check.check_pids([child.pid])
        assert child.stdin is not None
        child.stdin.close()
    assert refused.value.hint.startswith(hint)
