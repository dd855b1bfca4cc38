"""refleak while it runs: with a hand on its target's stdin and stdout, and a wait for it to be under way."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from patience import PATIENCE
from traced_report import Run

REFLEAK = Path(__file__).parents[3] / "refleak"
PATIENCE_SECONDS = 60 * PATIENCE


def environment() -> dict[str, str]:
    """Return this process's environment as a user without sudo has it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}


def wait_for(condition: Callable[[], Any], what: str) -> None:
    """Ask again and again until `condition` holds; fail with what it still was at the end."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (last := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}: {last}"
        select.select([], [], [], 0.02)


def let_end(target: subprocess.Popen[bytes]) -> None:
    """Let a live target go on, with nothing more to come on its stdin, and wait for its end."""
    assert target.stdin is not None
    target.stdin.write(b"x")
    target.stdin.close()
    target.wait()


class LiveRefleak:
    """A refleak in the background, in a process group of its own, and what it reports at its end."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process, self._output = process, output

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> bytes:
        """Read one line that the launched target says."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0], "the target says nothing"
        return self.process.stdout.readline()

    def tell(self, text: bytes) -> None:
        """Write to the launched target's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def child(self) -> int:
        """Return the number of the launched target's process, once there is one."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        wait_for(lambda: children.read_text().split(), "the target")
        return int(children.read_text().split()[0])

    def wait_until_attached(self) -> None:
        """Return when its three tracepoints are attached, which is after all that was there to be probed."""
        wait_for(lambda: self.process.poll() is not None or self._is_armed(), "the probes")
        assert self.process.poll() is None, self.end().stderr

    def _is_armed(self) -> bool:
        links = set()  # a child of refleak's shares its files
        for pid in self._and_children():
            with suppress(OSError):  # it has ended meanwhile
                for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
                    links.update(_tracepoint_links(entry))
        return len(links) == 3

    def _and_children(self) -> tuple[int, ...]:
        """Return the numbers of the process that was started and of its children: refleak's own may be one."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return self.pid, *map(int, children)

    def end(self) -> Run:
        """Close the target's stdin, wait for the end and return the report."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE_SECONDS)
        text = stderr.decode(errors="replace")
        assert "Traceback" not in text, text
        report = json.loads(self._output.read_text()) if self._output.exists() else {}
        return Run(report, self.process.returncode, stdout.decode(errors="replace"), text, 0.0, 0)


def take_turns(refleak: LiveRefleak) -> None:
    """Return when the target `paces`, which is at work all the time, has done some more turns."""
    refleak.tell(b"t")
    assert refleak.line() == b"done\n"


def _tracepoint_links(entry: Path) -> list[str]:
    """Return the lines with the number of a link to a tracepoint in a file of /proc/PID/fdinfo."""
    try:
        text = entry.read_text()
    except OSError:
        return []
    return [line for line in text.splitlines() if line.startswith("link_id:") and "tp_name:" in text]


@contextmanager
def live_refleak(
    output: Path, *words: object, variables: Mapping[str, str] | None = None, prefix: Sequence[str] = (),
    program: Path = REFLEAK, is_job: bool = False,
) -> Iterator[LiveRefleak]:
    """Start refleak with these words after its options for the report; it is killed at the end if it still runs.

    `prefix`: a command that starts it elsewhere. `is_job`: as a shell starts one, which a terminal may stop.
    """
    whole = () if "--reachability" in words else ("--reachability", "off")  # whatever holds the blocks of an entry
    command = [*prefix, str(program), *whole, "--format", "json", "-o", str(output), *map(str, words)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        env=environment() | dict(variables or {}), start_new_session=not is_job, process_group=0 if is_job else None,
    ) as process:  # fmt: skip
        try:
            yield LiveRefleak(process, output)
        finally:
            process.kill()
