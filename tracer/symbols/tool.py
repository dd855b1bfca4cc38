"""Runs of foreign symbolizers: text in, text out, and a reason where it went wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tracer.late_dataclasses import dataclass

TIMEOUT_S = 60.0
GRACE_S = 1.0


@dataclass(frozen=True)
class Output:
    text: str
    failure: str | None = None
    timed_out: bool = False


def find_tool(name: str) -> str | None:
    """Return the path of `name`, else of its newest `name-NN`, as distributions call them."""
    plain = shutil.which(name)
    if plain is not None:
        return plain
    versioned: list[tuple[int, str]] = []
    for directory in os.get_exec_path():
        with suppress(OSError):
            for path in Path(directory).glob(f"{name}-*"):
                match = re.fullmatch(re.escape(name) + r"-(\d+)", path.name)
                if match and os.access(path, os.X_OK):
                    versioned.append((int(match[1]), str(path)))
    return max(versioned)[1] if versioned else None


class Tool:
    """A foreign symbolizer that has been started, and loads while the caller goes on: text in, once, and text out.

    It gets a session of its own, so that Ctrl-C at the terminal does not cost the report its names, and
    no DEBUGINFOD_URLS, since debug files were looked for before.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"} | {"LC_ALL": "C"}
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = ""
        try:
            self._process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=environment, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            self._failure = f"cannot be run ({error})"

    def answer(self, text: str, timeout_s: float = TIMEOUT_S) -> Output:
        """Give it `text` and return what it printed, up to its failure if it fails; then it has ended."""
        process, self._process = self._process, None
        if process is None:
            return Output("", self._failure)
        with process:
            try:
                printed, _ = process.communicate(os.fsencode(text), timeout_s)
            except subprocess.TimeoutExpired:
                _kill(process)
                printed = _left_in_pipe(process)
                return Output(printed.decode("utf-8", "replace"), f"did not answer in {timeout_s:g} s", timed_out=True)
            except BaseException:
                _kill(process)
                raise
        return Output(printed.decode("utf-8", "replace"), _failure(process.returncode))

    def end(self) -> None:
        """End it, if it was asked nothing."""
        if self._process is not None:
            with self._process as process:
                _kill(process)
            self._process = None


def run_tool(arguments: Sequence[str], text: str, timeout_s: float = TIMEOUT_S) -> Output:
    """Run a tool with `text` as its input and return what it printed, up to its failure if it fails."""
    return Tool(arguments).answer(text, timeout_s)


def _left_in_pipe(process: subprocess.Popen[bytes]) -> bytes:
    """Return what a killed tool printed; nothing where a process that it detached holds the pipe open."""
    try:
        return process.communicate(timeout=GRACE_S)[0]
    except subprocess.TimeoutExpired:
        return b""


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _failure(status: int) -> str | None:
    if status == 0:
        return None
    return f"died of signal {-status}" if status < 0 else f"ended with status {status}"
