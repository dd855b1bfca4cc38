"""Programs that patch probed functions, or copy them: said in the report, or refused."""

from __future__ import annotations

import subprocess

import pytest
from conftest import REFLEAK, LiveTarget, Refleak
from patience import TIMEOUT_SECONDS

PATCHES = "process that patches its own code, where probes were: not traced from then on"
COPIES = "start of a probed function that the program copied and runs elsewhere: calls through it are not seen"


@pytest.mark.parametrize(
    ("behaviour", "lost"),
    [("hooks", {PATCHES: 1}), ("copies", {COPIES: 2}), ("protected_hooks", {PATCHES: 1, COPIES: 2})],
)
def test_what_is_not_seen_from_then_on_is_said(refleak: Refleak, behaviour: str, lost: dict[str, int]) -> None:
    run = refleak(target=("behaves_patching", behaviour))
    assert run.status == 5
    assert {loss["reason"]: loss["count"] for loss in run.report["lost"]} == lost
    assert {entry["state"] for entry in run.report["leaks"]} == {"outstanding"}


def test_a_process_that_was_patched_before_is_not_attached_to(live_target: LiveTarget) -> None:
    with live_target("behaves_patching", "hooked_before") as process:
        done = subprocess.run(
            [REFLEAK, "-p", str(process.pid)], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
        assert done.returncode == 65
        assert f"process {process.pid} has changed code of" in done.stderr
        assert len(done.stderr.splitlines()) <= 3
        stdout, _ = process.communicate(b"x\n", TIMEOUT_SECONDS)
        assert stdout == b"1, 1\n"
        assert process.returncode == 5
