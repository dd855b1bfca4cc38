"""What a process that is not traced pays while another one is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from benchmarks.commands import Unmeasured, run, running
from benchmarks.programs import Programs
from benchmarks.rates import traced_target, wait_for_pid
from benchmarks.samples import Samples, text_of_ratio, text_of_time
from benchmarks.settings import Settings
from benchmarks.tables import Results, Table

_RATE = 1_000
"""Events per second of the traced one: enough to be alive, too few to take the processors away."""
_ALONE = "untraced"
_PAIRS, _FORKS = 20_000_000, 300

Neighbour = Callable[[], AbstractContextManager[None]]


@contextmanager
def _untraced(programs: Programs) -> Iterator[None]:
    with running([programs.paced, str(_RATE), "600"]) as process:
        wait_for_pid(process)
        yield


@contextmanager
def _traced(programs: Programs, option: str) -> Iterator[None]:
    with traced_target(programs, _RATE, option):
        yield


def _neighbours(programs: Programs) -> Mapping[str, Neighbour]:
    return {
        _ALONE: lambda: _untraced(programs),
        "--no-follow-forks": lambda: _traced(programs, "--no-follow-forks"),
        "--follow-forks": lambda: _traced(programs, "--follow-forks"),
    }


def _figures(programs: Programs, settings: Settings) -> tuple[float, float]:
    """Return nanoseconds for a malloc+free pair and for a fork+exec, of a process of its own each."""
    pairs = run([programs.pairs, "malloc", "5", str(settings.count(_PAIRS)), "1"], settings.timeout_seconds)
    forks = run([programs.forks, str(settings.count(_FORKS, 10))], settings.timeout_seconds)
    if not pairs.checked().numbers or not forks.checked().numbers:
        raise Unmeasured("printed no numbers")
    return pairs.numbers[0], forks.numbers[0]


def bystanders(programs: Programs, settings: Settings) -> Results:
    """Measure a process beside one that is untraced, traced, and traced with its forks."""
    found = {name: (Samples(), Samples()) for name in _neighbours(programs)}
    notes: list[str] = []
    for index in range(settings.rounds):
        for name, neighbour in _neighbours(programs).items():
            try:
                with neighbour():
                    values = _figures(programs, settings)
            except Unmeasured as reason:
                notes.append(f"{name}: {reason}")
                continue
            for samples, value in zip(found[name], values, strict=True):
                samples.by_round[index] = value
    ratios = {name: tuple(mine.over(alone) for mine, alone in zip(both, found[_ALONE], strict=True))
              for name, both in found.items()}  # fmt: skip
    lines = [[name, *(_cell(mine, ratio) for mine, ratio in zip(both, ratios[name], strict=True))]
             for name, both in found.items()]  # fmt: skip
    table = Table("An unrelated process, beside a target that is", ["target", "malloc+free", "fork+exec"], lines, notes)
    figures = {f"bystander {what} {name}": ratio for name in ratios if name != _ALONE
               for what, ratio in zip(("pair", "fork"), ratios[name], strict=True)}  # fmt: skip
    return Results([table], figures)


def _cell(samples: Samples, ratio: Samples) -> str:
    if not samples or set(ratio.by_round.values()) == {1.0}:
        return text_of_time(samples.median) if samples else "-"
    return f"{text_of_time(samples.median)} [{text_of_ratio(ratio)}]"
