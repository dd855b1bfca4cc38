"""A file that is emptied while it is traced: the trace goes on to its report."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Refleak


@pytest.mark.parametrize("name", ["alloc_functions-static", "liba.so"])
def test_the_program_empties_a_file(refleak: Refleak, targets: Path, tmp_path: Path, name: str) -> None:
    script = "cp $0 $1; $2 $1; : >$1; cp $0 $1; : >$1; exec $3"
    run_it = "/bin/true" if name == "liba.so" else "/usr/bin/env"
    command = ["/bin/sh", "-c", script, str(targets / name), str(tmp_path / "emptied"), run_it, str(targets / "short")]
    run = refleak(target=command)
    assert run.status == 0, run.stderr
    assert [(leak["count"], leak["bytes"]) for leak in run.below("leak_and_leave")] == [(31, 31 * 151)]
