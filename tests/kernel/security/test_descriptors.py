"""The target, its children and what they exec have the open files that they would have: none of refleak's."""

from __future__ import annotations

import pytest
from second_user import under_sudo, users_folder

LIST = "for file in /proc/$$/fd/*; do readlink $file; done; true"
"""Names the folder too, which is closed again by then."""


SCRIPTS = {"program": LIST, "child": f"sh -c '{LIST}'; true", "exec": f"exec sh -c '{LIST}'"}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_no_file_of_refleaks_is_open_in_the_target(script: str) -> None:
    with users_folder() as folder:
        run = under_sudo("-o", folder / "report.json", "--exec", "/bin/sh", "-c", script, cwd=folder)
    assert run.returncode == 0, run.stderr
    opened = {name for name in run.stdout.split() if not name.startswith("pipe:")}
    assert opened == {"/dev/null"}
    assert len(set(run.stdout.split()) - opened) == 2  # its output and its errors


def test_the_numbers_of_open_files_are_those_of_a_shell() -> None:
    with users_folder() as folder:
        run = under_sudo("-o", folder / "report.json", "--exec", "/bin/ls", "/proc/self/fd", cwd=folder)
    assert run.stdout.split() == ["0", "1", "2", "3"]  # the last one is the folder that it lists
