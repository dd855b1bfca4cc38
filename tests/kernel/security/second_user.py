"""A second user whose files root looks at: a folder, programs that tell who runs them, and refleak under sudo."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

REFLEAK = Path(__file__).parents[3] / "refleak"
UID = 65534
"""Of `nobody`, whom every system has."""
NO_VARIABLES: Mapping[str, str] = {}

TELL = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
static void tell(void)
{
    char text[32];
    int file = open(WHO, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file >= 0 && write(file, text, snprintf(text, sizeof(text), "%u\n", geteuid())) < 0)
        _exit(99);
    close(file);
}
"""
"""C: appends to the file WHO who runs it."""


@contextmanager
def users_folder() -> Iterator[Path]:
    """Make a folder that the second user owns and can reach; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="second-user-", dir="/tmp"))
    try:
        os.chown(folder, UID, UID)
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def compiled(out: Path, text: str, *flags: object) -> Path:
    """Compile C into a file of the folder; WHO is `who` in it."""
    source = out.with_suffix(".c")
    source.write_text(text)
    who = out.parent / "who"
    subprocess.run(
        ["gcc", f'-DWHO="{who}"', "-o", out, source, *map(str, flags)], check=True, timeout=60, cwd=out.parent
    )
    return out


def told(folder: Path) -> list[str]:
    """Return who ran what tells it, in order."""
    who = folder / "who"
    return who.read_text().split() if who.exists() else []


def as_user(*command: object) -> list[str]:
    """Return the command that runs another one as the second user."""
    return ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *map(str, command)]


def under_sudo(
    *words: object, cwd: Path, variables: Mapping[str, str] = NO_VARIABLES, refleak: Sequence[object] = (REFLEAK,)
) -> subprocess.CompletedProcess[str]:
    """Run refleak as root with the environment that sudo makes for the second user."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    sudo = {"SUDO_UID": str(UID), "SUDO_GID": str(UID), "SUDO_USER": "nobody"}
    return subprocess.run(
        [*map(str, refleak), *map(str, words)], capture_output=True, text=True, errors="replace", cwd=cwd, timeout=120,
        env=environment | sudo | dict(variables), stdin=subprocess.DEVNULL,
    )  # fmt: skip
