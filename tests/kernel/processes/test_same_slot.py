"""A maker and its child wait in one slot where their numbers are as far apart as there are slots: both go on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.model.records import HOLD_SLOTS

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CHILDREN = 5
HOLD_MILLISECONDS = 5000
pytestmark = pytest.mark.needs("holds")


def test_a_child_of_the_same_slot_does_not_keep_its_maker(tmp_path: Path) -> None:
    program = tmp_path / "same_slot"
    subprocess.run(["gcc", "-g", "-O1", "-o", program, HERE / "same_slot.c"], check=True, timeout=60)
    command = [ROOT / "refleak", "-o", tmp_path / "report", "--exec", program, str(CHILDREN), str(HOLD_SLOTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found, longest = map(int, done.stdout.split())
    assert found == CHILDREN
    assert longest < HOLD_MILLISECONDS, "one of the two went on only when its hold ran out"
