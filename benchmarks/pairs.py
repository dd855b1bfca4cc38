"""malloc+free pairs and get+put pairs: untraced, floor, refleak, and peers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.commands import Unmeasured
from benchmarks.methods import Floor, Method, Outcome, Preloading, Refleak, Untraced, Work
from benchmarks.peers import peers
from benchmarks.programs import Programs
from benchmarks.rounds import Row, in_turn
from benchmarks.samples import Samples, text_of_ratio, text_of_time
from benchmarks.settings import Settings
from benchmarks.tables import Results, Table

DEPTHS = (5, 20, 60)
_SECONDS_EACH = 0.3
_MOST_STUB_PAIRS = {"nop": 100_000, "plain": 15_000}
"""The first so that all events of a run fit into the ring, however slowly it is read; a plain one is slow."""
_LEAST = 500


def _rows(program: Path, kind: str, threads: int, methods: Sequence[Method], settings: Settings,
          sanitized: Path | None = None, most: int = sys.maxsize) -> dict[str, Row]:  # fmt: skip
    def once(method: Method) -> tuple[Sequence[float], Outcome]:
        count = min(most, settings.count(_SECONDS_EACH * 1e9 / method.pair_ns, _LEAST))
        words = [kind, ",".join(map(str, DEPTHS)), str(count), str(threads)]
        outcome = method.run(Work([program, *words], sanitized=sanitized), settings.timeout_seconds)
        return outcome.finished.numbers, outcome

    return in_turn(methods, once, len(DEPTHS), settings, f"{kind} pairs, {program.name}, {threads} threads")


def _attempt(build: Callable[[], Path]) -> Path | None:
    try:
        return build()
    except Unmeasured:
        return None


def _lines(label: Sequence[str], rows: Mapping[str, Row]) -> list[list[str]]:
    """Return a line for each depth: times of the three, and refleak's ratio to the floor."""
    untraced, floor, refleak = (rows[name] for name in ("untraced", "floor", "refleak"))
    return [
        [*label, str(depth), *(_time(row, index) for row in (untraced, floor, refleak)),
         text_of_ratio(refleak.samples[index].over(floor.samples[index]))]
        for index, depth in enumerate(DEPTHS)
    ]  # fmt: skip


def _time(row: Row, index: int) -> str:
    return text_of_time(row.samples[index].median) if row.samples[index] else "-"


def _notes(rows: Mapping[str, Row]) -> list[str]:
    failed = [f"{name}: {row.reason}" for name, row in rows.items() if row.reason]
    return failed + [f"{name}: {note}" for name, row in rows.items() for note in row.notes]


def malloc_pairs(programs: Programs, settings: Settings) -> Results:
    """Measure malloc+free pairs of 32 bytes."""
    results, lines, notes = Results(), [], []
    for build, label in ((programs.pairs, "no"), (programs.pairs_with_frame_pointers, "yes")):
        for threads in (1, 2):
            rows = _rows(build, "malloc", threads, [Untraced(), Floor(), Refleak()], settings)
            lines += _lines([str(threads), label], rows)
            notes += _notes(rows)
            if threads == 1 and label == "no":
                for index, depth in enumerate(DEPTHS):
                    ratio = rows["refleak"].samples[index].over(rows["floor"].samples[index])
                    results.figures[f"pair/floor {depth}"] = ratio
    header = ["threads", "frame pointers", "depth", "untraced", "floor", "refleak", "refleak / floor"]
    results.tables.append(Table("malloc+free pairs", header, lines, notes))
    return results


def preloaded_pairs(programs: Programs, settings: Settings) -> Results:
    """Measure malloc+free pairs through the library of --preload beside those through libc's own functions."""
    rows = _rows(programs.pairs, "malloc", 1, [Untraced(), Refleak(), Preloading()], settings)
    without, with_it = rows["refleak"].samples, rows["--preload"].samples
    lines = [
        [str(depth), *(_time(row, index) for row in rows.values()), text_of_ratio(with_it[index].over(without[index]))]
        for index, depth in enumerate(DEPTHS)
    ]
    header = ["depth", "untraced", "refleak", "--preload", "--preload / refleak"]
    table = Table("malloc+free pairs with --preload", header, lines, _notes(rows))
    return Results([table], {"preload/without": with_it[0].over(without[0])})


def stub_pairs(programs: Programs, settings: Settings) -> Results:
    """Measure get+put pairs through stubs that begin with a 5-byte nop, and through plain C functions."""
    results, lines, notes = Results(), [], []
    refleak: list[Row] = []
    for build, label in ((programs.pairs, "nop"), (programs.pairs_plain, "plain")):
        rows = _rows(build, "stub", 1, [Untraced(), Floor(), Refleak()], settings, most=_MOST_STUB_PAIRS[label])
        lines += _lines([label], rows)
        notes += _notes(rows)
        refleak.append(rows["refleak"])
        results.figures[f"{label}/floor"] = rows["refleak"].samples[0].over(rows["floor"].samples[0])
    results.figures["nop/plain"] = refleak[0].samples[0].over(refleak[1].samples[0])
    header = ["stub", "depth", "untraced", "floor", "refleak", "refleak / floor"]
    results.tables.append(Table("get+put pairs", header, lines, notes))
    return results


def pairs_of_peers(programs: Programs, settings: Settings) -> Results:
    """Measure malloc+free pairs under the peers; with frame pointers, which the BPF ones need for their stacks."""
    methods: list[Method] = [Untraced(), Refleak(), *peers()]
    sanitized = _attempt(lambda: programs.pairs_sanitized)
    rows = _rows(programs.pairs_with_frame_pointers, "malloc", 1, methods, settings, sanitized)
    refleak = rows["refleak"]
    lines = [[name, *(_beside(row, refleak, index) for index in range(len(DEPTHS))), str(row.rounds), row.reason]
             for name, row in rows.items()]  # fmt: skip
    ratios = [row.over(ours) for row, ours in zip(rows["bcc memleak"].samples, refleak.samples, strict=True)]
    least = min((ratio for ratio in ratios if ratio), key=lambda ratio: ratio.median, default=Samples())
    header = ["tool", *(f"depth {depth}" for depth in DEPTHS), "rounds", "absent because"]
    notes = ["A time for each pair, and in brackets how many times refleak's that is, with its spread.",
             *(f"{name}: {note}" for name, row in rows.items() for note in row.notes)]  # fmt: skip
    table = Table("malloc+free pairs beside the peers", header, lines, notes)
    return Results([table], {"memleak/refleak": least})


def _beside(row: Row, refleak: Row, index: int) -> str:
    ratio = row.samples[index].over(refleak.samples[index])
    if row is refleak or not ratio:
        return _time(row, index)
    return f"{_time(row, index)} [{text_of_ratio(ratio)}]"
