"""kill_trials.py COUNT SEED [KIND...]: SIGKILL refleak at random moments; print what its targets felt of it.

Kinds are those of targets/paces.c. Each line of a kind: trials, targets that did not end as they should, the longest
turn of a target in milliseconds (and without refleak), how long after the kill it ended at most, and the longest time
until every BPF link was gone, in seconds.
The figures are those of the machine as it is then. Needs root.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bpf_residue import all_ids

HERE = Path(__file__).parent
REFLEAK = HERE.parents[1] / "refleak"
KINDS = ("blocks", "threads", "forks", "libraries", "execs")
MOST_SECONDS = 1.5
PATIENCE_SECONDS = 300
_LINK_ID = re.compile(r"^link_id:\s*(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """What one kill did; times in seconds."""

    ended_well: bool
    longest: float
    went_on: float
    links_gone: float


def _links() -> frozenset[tuple[str, int]]:
    return frozenset(found for found in all_ids() if found[0] == "link")


def _links_of(pid: int) -> list[str]:
    texts = []
    for entry in Path(f"/proc/{pid}/fdinfo").glob("*"):
        with suppress(OSError):
            texts.append(entry.read_text())
    return [text for text in texts if "link_id:" in text]


def _wait_for_probes(refleak: subprocess.Popen[bytes], *, armed: bool) -> None:
    """Return when the first links are there, or all of the start, or refleak has ended."""
    while refleak.poll() is None:
        links = _links_of(refleak.pid)
        if links and (not armed or len({text for text in links if "tp_name:" in text}) == 3):
            return
        time.sleep(0.01)


def _end(target: subprocess.Popen[bytes]) -> tuple[bool, float, float]:
    """Ask a target to end; return whether it did so as it should, its longest turn, and when that ended."""
    said, _ = target.communicate(b"x", timeout=PATIENCE_SECONDS)
    words = said.split()
    if target.returncode != 0 or words[-1:] != [b"us"]:
        return False, 0.0, 0.0
    took = int(words[-2]) / 1e6
    return True, took, int(words[-4]) / 1e6 + took


def _start(targets: Path, kind: str) -> subprocess.Popen[bytes]:
    target = subprocess.Popen(
        [targets / "paces", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert target.stdout is not None
    target.stdout.readline()
    return target


def untraced(targets: Path, kind: str) -> float:
    """Return the longest turn of a target that runs for a second by itself."""
    with _start(targets, kind) as target:
        time.sleep(1)
        return _end(target)[1]


def trial(targets: Path, kind: str, moment: float, *, armed: bool) -> Trial:
    """Kill refleak `moment` seconds after its first probes, or after all of them are armed."""
    with _start(targets, kind) as target, subprocess.Popen(
        [REFLEAK, "--follow-forks", "-p", str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as refleak:  # fmt: skip
        _wait_for_probes(refleak, armed=armed)
        time.sleep(moment)
        assert refleak.poll() is None, "refleak ended by itself"
        refleak.send_signal(signal.SIGSTOP)  # so that it makes no more while its links are listed
        own = {("link", int(number)) for text in _links_of(refleak.pid) for number in _LINK_ID.findall(text)}
        refleak.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        while _links() & own and time.monotonic() - killed < PATIENCE_SECONDS:
            time.sleep(0.01)
        gone = time.monotonic() - killed
        ended_well, longest, turn_ended = _end(target)
    return Trial(ended_well, longest, max(turn_ended - killed, 0.0), gone)


def main(count: int, seed: int, kinds: list[str]) -> int:
    """Run `count` trials over the kinds in turn; return 1 where a target did not end well."""
    chance = random.Random(seed)
    trials: dict[str, list[Trial]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        targets = Path(folder)
        subprocess.run(["make", "-s", "-C", HERE / "targets", f"OUT={targets}"], check=True)
        alone = {kind: untraced(targets, kind) for kind in kinds}
        for number in range(count):
            kind = kinds[number % len(kinds)]
            trials[kind].append(trial(targets, kind, chance.uniform(0, MOST_SECONDS), armed=number % 4 > 0))
    for kind, found in trials.items():
        bad = sum(not one.ended_well for one in found)
        longest = max((one.longest for one in found), default=0.0)
        went_on = max((one.went_on for one in found), default=0.0)
        gone = max((one.links_gone for one in found), default=0.0)
        print(
            f"{kind:10} {len(found):4} trials, {bad} ended badly, longest turn {longest * 1e3:.0f} ms "
            f"(untraced {alone[kind] * 1e3:.1f} ms), ended {went_on * 1e3:.0f} ms after the kill at most, "
            f"links gone after {gone:.2f} s at most", flush=True,
        )  # fmt: skip
    return int(any(not one.ended_well for found in trials.values() for one in found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(KINDS)))
