"""Namespaces and roots as containers have them, made by util-linux's tools and gone with their first process."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bpf_residue import Residue
from live_refleak import REFLEAK, environment
from patience import TIMEOUT_SECONDS
from traced_report import Run

PID_NAMESPACE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def traced_within(prefix: Sequence[object], output: Path, *words: object, **variables: str) -> Run:
    """Run refleak with these words through a command that makes its surroundings; fail if it leaves anything."""
    command = [*prefix, REFLEAK, "--reachability", "off", "--format", "json", "-o", output, *words]
    residue = Residue()
    result = subprocess.run(
        list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
        env=environment() | variables,
    )  # fmt: skip
    assert residue.left() == []
    assert "Traceback" not in result.stderr, result.stderr
    report = json.loads(output.read_text()) if output.exists() else {}
    return Run(report, result.returncode, result.stdout, result.stderr, 0.0, 0)


def after(*commands: str) -> tuple[str, ...]:
    """Give a prefix that runs shell commands in a new pid and mount namespace, then what follows it."""
    return (*PID_NAMESPACE, "sh", "-ec", "\n".join((*commands, 'exec "$@"')), "sh")


def words(*values: object) -> str:
    return shlex.join(map(str, values))


class Container:
    """A pid namespace that stays until its first process is told to end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        self.first = int(children.read_text().split()[0])

    @property
    def enter(self) -> tuple[str, ...]:
        """Words before a command that is to run in it."""
        return ("nsenter", "--target", str(self.first), "--mount", "--pid")


@contextmanager
def container() -> Iterator[Container]:
    command = (*PID_NAMESPACE, "sh", "-c", "echo ready; read end")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield Container(process)
        finally:
            process.kill()
