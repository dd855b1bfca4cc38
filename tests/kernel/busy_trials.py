"""busy_trials.py RUNNABLE SECONDS [KIND...]: the longest turn of a target beside so many runnable processes.

Kinds are those of targets/paces.c. Each is measured by itself and traced, with as much beside it. Needs root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from kill_trials import HERE, KINDS, PATIENCE_SECONDS, REFLEAK, _end, _start, _wait_for_probes


def longest_turn(targets: Path, kind: str, seconds: float, *, traced: bool) -> float:
    """Return a target's longest turn, in seconds, from when all probes are armed."""
    if not traced:
        with _start(targets, kind) as target:
            time.sleep(seconds)
            return _end(target)[1]
    with subprocess.Popen(
        [targets / "paces", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as target, subprocess.Popen(
        [REFLEAK, "--follow-forks", "-p", str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as refleak:  # fmt: skip
        _wait_for_probes(refleak, armed=True)
        time.sleep(seconds)
        _, longest, _ = _end(target)
        refleak.wait(PATIENCE_SECONDS)
    return longest


def main(runnable: int, seconds: float, kinds: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as beside:
        targets = Path(folder)
        programs = [targets / name for name in ("paces", "liba.so")]
        subprocess.run(["make", "-s", "-C", HERE / "targets", f"OUT={targets}", *programs], check=True)
        for _ in range(runnable):
            busy = beside.enter_context(subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]))
            beside.callback(busy.kill)
        for kind in kinds:
            alone, traced = (longest_turn(targets, kind, seconds, traced=traced) for traced in (False, True))
            print(f"{kind:10} longest turn {traced * 1e3:.0f} ms, untraced {alone * 1e3:.0f} ms, "
                  f"load {os.getloadavg()[0]:.0f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:] or list(KINDS))
