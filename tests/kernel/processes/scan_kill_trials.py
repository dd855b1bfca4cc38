"""scan_kill_trials.py COUNT SEED: SIGKILL refleak at random moments while it reads a target that runs on.

Each trial attaches to a target of 100 MiB whose threads never wait, ends the trace, and kills refleak some time after
the target was stopped. It prints how many trials there were, in how many the target still stood at the kill, and those
after which a thread did not go on. Needs root.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from live_refleak import PATIENCE_SECONDS, live_refleak, wait_for

SOURCE = Path(__file__).resolve().parents[1] / "reachability" / "lives_on.c"
THREADS, BYTES = 3, 100 << 20
MOST_SECONDS = 0.2
STOPPED = "tT"


@dataclass(frozen=True)
class Trial:
    stood: bool
    """A thread of the target stood when refleak was killed."""
    moment: float
    """Seconds from its stop to the kill."""
    still: list[int]
    """Threads that had not run on long after it."""


def build(folder: Path) -> Path:
    path = folder / SOURCE.stem
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-pthread", "-w", "-o", str(path), str(SOURCE)]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS)
    return path


def states(pid: int) -> dict[int, str]:
    """Return the state of each thread (proc(5)): R, S, t for one that is stopped by its tracer, ..."""
    return {
        int(task.name): (task / "stat").read_text().rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    }


def run_ns(pid: int) -> dict[int, int]:
    """Return how long each thread but the first has run: the first waits for input."""
    tasks = [task for task in Path(f"/proc/{pid}/task").iterdir() if int(task.name) != pid]
    return {int(task.name): int((task / "schedstat").read_text().split()[0]) for task in tasks}


def is_stopped(pid: int) -> bool:
    return any(state in STOPPED for state in states(pid).values())


def trial(program: Path, output: Path, moment: float) -> Trial:
    """Kill refleak `moment` seconds after the target was stopped to be read."""
    with subprocess.Popen(
        [program, str(THREADS), str(BYTES)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as target:
        try:
            assert target.stdout is not None
            assert target.stdout.readline() == b"begun\n"
            with live_refleak(output, "--reachability", "auto", "-p", target.pid) as refleak:
                refleak.wait_until_attached()
                refleak.signal(signal.SIGINT)
                deadline = time.monotonic() + PATIENCE_SECONDS
                while not is_stopped(target.pid) and refleak.process.poll() is None:
                    assert time.monotonic() < deadline, "the target was not stopped"
                began = time.monotonic()
                time.sleep(moment)
                stood = is_stopped(target.pid)
                refleak.signal(signal.SIGKILL)
                moment = time.monotonic() - began
            still = _still(target.pid)
            if not still:
                assert target.stdin is not None
                target.stdin.write(b"\n")
                assert target.stdout.readline() == b"built\n"
            return Trial(stood, moment, still)
        finally:
            target.kill()


def _still(pid: int) -> list[int]:
    """Wait for all threads that never wait to run on; return those that do not."""
    before, still = run_ns(pid), list[int]()

    def all_ran() -> bool:
        now = run_ns(pid)
        still[:] = [tid for tid, ran in before.items() if now.get(tid, 0) <= ran]
        return not still and not is_stopped(pid)

    try:
        wait_for(all_ran, "its threads")
    except AssertionError:
        return still or [pid]
    return []


def main(count: int, seed: int) -> int:
    """Run trials, and return 1 where a target did not go on."""
    chance, stood, bad = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for number in range(1, count + 1):
            done = trial(program, Path(folder) / "r.json", chance.uniform(0, MOST_SECONDS))
            stood += done.stood
            bad += bool(done.still)
            when = "while it stood" if done.stood else "after it went on"
            print(f"{number}: {done.moment * 1e3:.0f} ms after the stop, {when}; still: {done.still}", flush=True)
    print(f"{count} trials, in {stood} the target stood at the kill; {bad} targets did not go on")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
