"""A launched program has the environment of whoever calls refleak: nothing is added, and nothing has another value."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import REFLEAK
from patience import TIMEOUT_SECONDS

PATHS = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


@pytest.mark.parametrize(
    "variables",
    [
        {}, PATHS, PATHS | {"LANG": "C"}, PATHS | {"LC_CTYPE": "C"}, PATHS | {"LC_CTYPE": "POSIX", "LANG": "C.UTF-8"},
        PATHS | {"LC_ALL": "C.UTF-8"}, PATHS | {"PWD": "/no/such/folder"}, PATHS | {"PWD": "{folder}"},
        PATHS | {"OLDPWD": "/no/such/folder", "SHLVL": "7", "_": "x=y"},
        PATHS | {"A": "", "B": "x\nPWD=/y", "C": "=\xe9"},
        PATHS | {"PYTHONPATH": "/no/such/folder", "PYTHONHOME": "/no/such/folder", "PYTHONUTF8": "1"},
    ],
)  # fmt: skip
def test_it_is_the_callers(tmp_path: Path, variables: dict[str, str]) -> None:
    """Who is called through sudo gets a user's HOME, USER and LOGNAME; that is not so here."""
    given = {name: value.replace("{folder}", str(tmp_path)) for name, value in variables.items()}

    def shown(*words: object) -> list[bytes]:
        done = subprocess.run(
            list(map(str, words)), env=given, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=TIMEOUT_SECONDS, check=True,
        )  # fmt: skip
        return sorted(done.stdout.split(b"\0"))

    command = ("/usr/bin/env", "-0")
    assert shown(REFLEAK, "--exec", *command) == shown(*command)
