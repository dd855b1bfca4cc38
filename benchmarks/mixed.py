"""Real loads under every method: how many times their untraced time they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.commands import Unmeasured
from benchmarks.loads import LOADS, Load
from benchmarks.methods import Floor, Method, Outcome, Refleak, Untraced, Work
from benchmarks.peers import Bpftrace, Heaptrack, Memcheck, Memleak
from benchmarks.programs import Programs
from benchmarks.rounds import Row, in_turn
from benchmarks.samples import text_of_ratio, text_of_time
from benchmarks.settings import Settings
from benchmarks.tables import Results, Table

_OWN, _WHOLE = 0, 1


def own_seconds(stamps: Path) -> float:
    """Return how long the process ran that was the last to begin, by what stamp.c wrote; raises Unmeasured."""
    try:
        lines = [(int(pid), int(time)) for pid, time in map(str.split, stamps.read_text().splitlines())]
    except (OSError, ValueError):
        raise Unmeasured("left no stamps") from None
    first: dict[int, int] = {}
    for pid, time in lines:
        first.setdefault(pid, time)
    target = max(first, key=lambda pid: first[pid], default=0)
    times = [time for pid, time in lines if pid == target]
    if len(times) < 2:
        raise Unmeasured("left no stamp at its end")
    return (times[-1] - times[0]) / 1e9


def _rows(load: Load, stamp: Path, settings: Settings) -> dict[str, Row]:
    stamps = settings.folder / "stamps"

    def once(method: Method) -> tuple[Sequence[float], Outcome]:
        stamps.unlink(missing_ok=True)
        environment = {
            **load.environment, "LD_PRELOAD": str(stamp), "STAMP_NAME": load.name, "STAMP_FILE": str(stamps),
        }  # fmt: skip
        outcome = method.run(Work(load.command, environment), settings.timeout_seconds)
        return [own_seconds(stamps), outcome.finished.seconds], outcome

    methods: list[Method] = [Untraced(), Floor(), Refleak(), Memleak(), Bpftrace(), Heaptrack(), Memcheck()]
    return in_turn(methods, once, 2, settings, load.title)


def _line(title: str, rows: Mapping[str, Row]) -> list[str]:
    untraced = rows["untraced"].samples
    own = text_of_time(untraced[_OWN].median * 1e9) if untraced[_OWN] else "-"
    ratios = {name: text_of_ratio(row.samples[_OWN].over(untraced[_OWN])) for name, row in rows.items()}
    whole = text_of_ratio(rows["refleak"].samples[_WHOLE].over(untraced[_WHOLE]))
    return [title, own, ratios["floor"], ratios["refleak"], whole,
            *(ratio for name, ratio in ratios.items() if name not in ("untraced", "floor", "refleak"))]  # fmt: skip


def mixed_loads(programs: Programs, settings: Settings) -> Results:
    """Measure all loads."""
    lines, notes = [], ["LeakSanitizer: needs the programs to be compiled anew."]
    for title, prepare in LOADS.items():
        try:
            load = prepare(settings)
            rows = _rows(load, programs.stamp, settings)
        except Unmeasured as reason:
            notes.append(f"{title}: absent, {reason}")
            continue
        lines.append(_line(load.title, rows))
        notes += [f"{title}, {name}: {row.reason}" for name, row in rows.items() if row.reason]
        notes += [f"{title}, {name}: {note}" for name, row in rows.items() for note in row.notes]
    header = ["load", "untraced", "floor", "refleak", "refleak, whole command", "bcc memleak", "bpftrace script",
              "heaptrack", "memcheck"]  # fmt: skip
    return Results([Table("Real loads, as multiples of the untraced run", header, lines, notes)])
