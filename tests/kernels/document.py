"""The tables of docs/kernels.md, made of the results that are kept beside it in kernels.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tests.kernels.results import Outcome, table
from tests.kernels.verdicts import side_by_side


def write_results(document: Path, outcomes: Sequence[Outcome]) -> None:
    """Bring the results beside a document, and its tables, up to date: those of other runs stay."""
    path = document.with_suffix(".json")
    kept = {_key(outcome): outcome for outcome in read_results(path)}
    kept |= {_key(outcome): outcome for outcome in outcomes if not outcome.problem}
    results = sorted(kept.values(), key=_order)
    path.write_text(json.dumps([asdict(outcome) for outcome in results], indent=1) + "\n")
    document.write_text(with_tables(document.read_text(), results))


def read_results(path: Path) -> list[Outcome]:
    if not path.exists():
        return []
    return [_outcome(each) for each in json.loads(path.read_text())]


def _outcome(stored: dict[str, Any]) -> Outcome:
    """Return an Outcome: JSON has lists where it has tuples."""
    known = {field.name for field in fields(Outcome)}
    return Outcome(**{
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items() if name in known
    })  # fmt: skip


def _key(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.version, outcome.suite, outcome.under


def _order(outcome: Outcome) -> tuple[list[int], str, str]:
    """Sort this machine ("here") before older kernels, and these before newer ones."""
    return [int(number) for number in re.findall(r"\d+", outcome.version)], outcome.suite, outcome.under


def with_tables(document: str, results: Sequence[Outcome]) -> str:
    """Return the document with all tables between their marks. Raises ValueError where it has no such marks."""
    verdicts = {_name(outcome): outcome.verdicts for outcome in results if outcome.verdicts}
    tables = {"suites": table(results), "verdicts": side_by_side(verdicts), "costs": costs_table(results)}
    for name, text in tables.items():
        begin, end = (f"<!-- {word}: {name}, by make test-kernels -->" for word in ("begin", "end"))
        first, last = document.index(begin) + len(begin), document.index(end)
        document = f"{document[:first]}\n\n{text}\n{document[last:]}"
    return document


def _name(outcome: Outcome) -> str:
    return f"{outcome.release}, {outcome.under}" if outcome.under else outcome.release


def costs_table(results: Sequence[Outcome]) -> str:
    """Return what each traced call cost on each kernel, and which of the features it lacks."""
    measured = [outcome for outcome in results if outcome.costs]
    names = list(dict.fromkeys(name for outcome in measured for name in outcome.costs))
    rows = (_costs_row(outcome, names, _lacks(outcome.version, results)) for outcome in measured)
    head = f"| kernel | lacks | {' | '.join(names)} | measured |"
    return "\n".join((head, "|---" * (len(names) + 3) + "|", *rows)) + "\n" if measured else ""


def _lacks(version: str, results: Sequence[Outcome]) -> str:
    """Return what `refleak doctor` found missing on this kernel."""
    lacks = next(
        (outcome.lacks for outcome in results if _key(outcome) == (version, "doctor", "")), None
    )
    return "not asked" if lacks is None else ", ".join(lacks) or "nothing"


def _costs_row(outcome: Outcome, names: Sequence[str], lacks: str) -> str:
    cells = [outcome.release, lacks, *_costs_cells(outcome, names), outcome.where]
    return f"| {' | '.join(cells)} |"


def _costs_cells(outcome: Outcome, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        if name not in outcome.costs:
            yield ""
            continue
        traced, alone = outcome.costs[name]
        yield f"{_time(traced)}, {_digits(traced / alone, 2)} x"


def _time(nanoseconds: float) -> str:
    size, unit = (1e3, "µs") if nanoseconds < 1e6 else (1e6, "ms")
    return f"{_digits(nanoseconds / size, 3)} {unit}"


def _digits(number: float, count: int) -> str:
    """Return a number with so many digits that count, as people write it."""
    return f"{float(f'{number:.{count}g}'):,.10g}"
