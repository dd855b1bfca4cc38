"""Ways to run a program: untraced, over the floor, and under refleak."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.commands import Command, Finished, Unmeasured, run, running
from benchmarks.floor import empty_probes
from benchmarks.settings import CHECKOUT

REFLEAK = CHECKOUT / "refleak"


@dataclass(frozen=True)
class Work:
    """A command to run, with the environment that it needs; `sanitized` is the same program with LeakSanitizer."""

    command: Command
    environment: Mapping[str, str] = field(default_factory=dict)
    sanitized: Path | None = None

    @property
    def program(self) -> Path:
        return Path(self.command[0]).resolve()


@dataclass(frozen=True)
class Outcome:
    finished: Finished
    note: str = ""


class Method(Protocol):
    """A way to run a Work; `pair_ns` is about what a malloc+free pair takes, to choose how many to make."""

    name: str
    pair_ns: float

    def run(self, work: Work, seconds: float) -> Outcome:
        """Run it to its end, `seconds` at most; raises Unmeasured."""
        ...


class Untraced:
    name, pair_ns = "untraced", 10.0

    def run(self, work: Work, seconds: float) -> Outcome:
        return Outcome(run(work.command, seconds, environment=work.environment).checked())


class Floor:
    name, pair_ns = "floor", 1_200.0

    def run(self, work: Work, seconds: float) -> Outcome:
        with running(work.command, environment=work.environment, held=True) as process:
            try:
                with empty_probes(process.pid, work.program):
                    process.release()
                    return Outcome(process.wait(seconds).checked())
            except OSError as error:
                raise Unmeasured(f"the probes cannot be attached: {error.strerror}") from None


class Refleak:
    name, pair_ns = "refleak", 2_000.0

    def __init__(self, *options: str) -> None:
        self._options = options

    def run(self, work: Work, seconds: float) -> Outcome:
        with refleak_report() as report:
            command = refleak_command(report, work.command, *self._options)
            finished = run(command, seconds, environment=work.environment).checked()
            return Outcome(finished, loss_of(report))


class Preloading(Refleak):
    name, pair_ns = "--preload", 1_000.0

    def __init__(self) -> None:
        super().__init__("--preload")


@contextmanager
def refleak_report() -> Iterator[Path]:
    """Give a file for a report, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="refleak-bench-") as folder:
        yield Path(folder) / "report.json"


def refleak_command(report: Path, command: Command, *options: str) -> list[str | Path]:
    return [REFLEAK, "-q", "--format", "json", "-o", report, *options, "--exec", *command]


def loss_of(report: Path) -> str:
    """Return what a report says was lost, empty where nothing.

    Raises Unmeasured where there is none, or where it counted nothing: what did not trace was not measured.
    """
    try:
        document = json.loads(report.read_text())
        lost, totals = document["lost"], document["totals"]
        counted = totals["allocations"]["made"] + sum(row["created"] for row in totals["references"])
    except (OSError, ValueError, KeyError):
        raise Unmeasured("there is no report") from None
    if not counted:
        raise Unmeasured("refleak counted nothing")
    return ", ".join(f"{loss['count']:,} lost: {loss['reason']}" for loss in lost)
