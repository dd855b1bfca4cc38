"""Runs the fuzzers: `python tests/unit/fuzz/fuzz_run.py SECONDS [SUBJECT ...]`; failures are told with their seeds.

Damaged input may be refused, in a RefleakError. Anything else that is raised, more than ten seconds for one input, and
more than a gigabyte are failures. How many inputs there were of each kind, how long the slowest took and the peak of
memory are told.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import FrameType

sys.path.extend(map(str, Path(__file__).parents[:2]))

from fuzz_subjects import SUBJECTS, Subject

from tracer.errors import RefleakError

MOST_SECONDS = 10
MOST_BYTES = 1 << 30


class TooSlow(BaseException):
    """One input took longer than any may."""


@dataclass(frozen=True)
class Failure:
    subject: str
    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.subject}, seed {self.seed}: {self.what}"


@contextmanager
def limits() -> Iterator[None]:
    """Let this process have a gigabyte more than it has; what needs more fails."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, hard))
    before = signal.signal(signal.SIGALRM, _too_slow)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow


def try_seed(subject: Subject, seed: int) -> Failure | None:
    data = subject.damaged(seed)
    signal.alarm(MOST_SECONDS)
    try:
        subject.read(data)
    except RefleakError:
        pass
    except (Exception, TooSlow) as error:
        places = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
        said = str(error).strip()[:300]
        return Failure(subject.name, seed, f"{type(error).__name__}: {said} ({' '.join(places[-5:])})")
    finally:
        signal.alarm(0)
    return None


def try_seeds(subject: Subject, seeds: Iterable[int]) -> list[Failure]:
    with limits():
        return [failure for seed in seeds if (failure := try_seed(subject, seed)) is not None]


def main() -> int:
    seconds, wanted = float(sys.argv[1]), sys.argv[2:]
    subjects = [subject for subject in SUBJECTS if not wanted or subject.name in wanted]
    began, failed = int(time.time()), 0
    for subject in subjects:
        until = time.monotonic() + seconds / len(subjects)
        done, slowest, told = 0, 0.0, set[str]()
        with limits():
            for seed in count(began * 1000):
                if time.monotonic() > until:
                    break
                done += 1
                start = time.monotonic()
                failure = try_seed(subject, seed)
                slowest = max(slowest, time.monotonic() - start)
                if failure is not None:
                    failed += 1
                    if failure.what[-60:] not in told:
                        told.add(failure.what[-60:])
                        print(failure, flush=True)
        print(f"{subject.name}: {done:,} inputs, the slowest took {slowest:.2f} s", flush=True)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{failed:,} failures, at most {peak_mib:,} MiB")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
