"""Commands run with a limit of time, in a session of their own that is killed with them."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_DYING_SECONDS = 60
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_HOLD = 'read -r _ && exec "$@" </dev/null'


Command = Sequence[str | Path]


class Unmeasured(Exception):
    """Something could not be measured; the message is the reason, which the tables print."""


@dataclass(frozen=True)
class Finished:
    """A command that ended: what it printed, and when (monotonic clock, ns)."""

    stdout: str
    stderr: str
    status: int
    began_ns: int
    ended_ns: int

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.began_ns) / 1e9

    @property
    def numbers(self) -> list[float]:
        """The lines of standard output that are a number; a tool may have printed others."""
        return [float(line) for line in self.stdout.splitlines() if _NUMBER.fullmatch(line.strip())]

    def checked(self) -> Finished:
        """Return itself; raises Unmeasured where the command failed."""
        if self.status == 0:
            return self
        words = (self.stderr.strip() or self.stdout.strip()).splitlines()
        raise Unmeasured(f"ended with {self.status}" + (f": {words[-1][:100]}" if words else ""))


class Running:
    """A command under way."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, began_ns: int) -> None:
        self._process = process
        self.pid = process.pid
        self._folder = folder
        self.began_ns = began_ns

    @property
    def stdout(self) -> str:
        return (self._folder / "stdout").read_text(errors="replace")

    @property
    def stderr(self) -> str:
        return (self._folder / "stderr").read_text(errors="replace")

    def wait(self, seconds: float) -> Finished:
        """Wait for its end; raises Unmeasured where that takes too long."""
        if not self._ends_within(seconds):
            raise Unmeasured(f"took longer than {seconds:.0f} s")
        ended_ns = time.monotonic_ns()
        self._process.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return Finished(self.stdout, self.stderr, self._process.returncode, self.began_ns, ended_ns)

    def _ends_within(self, seconds: float) -> bool:
        handle = os.pidfd_open(self.pid)
        try:
            return bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)

    def wait_for_words(self, words: str, seconds: float) -> None:
        """Wait until it has printed `words`; raises Unmeasured with its last line where it ends or is too slow."""
        deadline = time.monotonic() + seconds
        while words not in self.stdout + self.stderr:
            if self._ends_within(0.02):
                self.wait(0).checked()
                raise Unmeasured(f"ended before it said {words!r}")
            if time.monotonic() > deadline:
                raise Unmeasured(f"was not ready within {seconds:.0f} s")

    def release(self) -> None:
        """Let a held command go on."""
        assert self._process.stdin is not None
        self.began_ns = time.monotonic_ns()
        self._process.stdin.write(b"\n")
        self._process.stdin.close()

    def end(self, seconds: float = 5.0) -> None:
        """Interrupt what still runs, and kill it and all its children where that does not help."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGINT)
            self._ends_within(seconds)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        if self._process.returncode is None:
            with suppress(subprocess.TimeoutExpired):  # killed, but the kernel still takes its probes away
                self._process.wait(_DYING_SECONDS)


@contextmanager
def running(command: Command, *, environment: Mapping[str, str] | None = None,
            held: bool = False, patience: float = 5.0) -> Iterator[Running]:  # fmt: skip
    """Start a command; at the end nothing of it is left. A `held` one waits for `Running.release` to exec.

    Raises Unmeasured where there is no such command.
    """
    words = [str(word) for word in command]
    if held:
        words = ["/bin/sh", "-c", _HOLD, "sh", *words]
    with tempfile.TemporaryDirectory(prefix="refleak-bench-") as name:
        folder = Path(name)
        began_ns = time.monotonic_ns()
        with open(folder / "stdout", "wb") as stdout, open(folder / "stderr", "wb") as stderr:
            try:
                process = subprocess.Popen(
                    words, stdin=subprocess.PIPE if held else subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                    start_new_session=True, env={**os.environ, **(environment or {})},
                )  # fmt: skip
            except OSError as error:
                raise Unmeasured(f"cannot be run: {error.strerror}") from None
        command_under_way = Running(process, folder, began_ns)
        try:
            yield command_under_way
        finally:
            command_under_way.end(patience)


def run(command: Command, seconds: float, *, environment: Mapping[str, str] | None = None) -> Finished:
    """Run a command to its end; raises Unmeasured where that takes more than `seconds`."""
    with running(command, environment=environment) as process:
        return process.wait(seconds)
