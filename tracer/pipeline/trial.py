"""Trials: a command runs under a guessed spec, and its functions' calls are counted."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tracer.model.events import ErrorKind
from tracer.model.operations import Operation
from tracer.model.snapshot import Snapshot
from tracer.model.trial import FunctionTrial, Trial
from tracer.pipeline.steps import OnStep, unseen
from tracer.pipeline.trace import Trace
from tracer.pipeline.trace_options import TraceOptions

_COUNTERS = {
    ErrorKind.OVER_PUT: "after_zero", ErrorKind.USE_AFTER_ZERO: "after_zero",
    ErrorKind.DELETE_WHILE_REFERENCED: "while_counted", ErrorKind.REINITIALISED: "reinitialised",
    ErrorKind.FREED_PAST_COUNTER: "freed", ErrorKind.FREED_WHILE_COUNTED: "freed",
}  # fmt: skip


def run_trial(
    command: Sequence[str], spec: str, on_step: OnStep = unseen, on_start: Callable[[Trace], None] = lambda _: None
) -> Trial:  # fmt: skip
    """Run a command to its end under a spec in TOML. `on_start` gets the trace before the command begins."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "guessed.toml"
        path.write_text(spec, encoding="utf-8")
        options = TraceOptions(
            specs=(path,), mappings=False, references=False, interpreters=False, allow_missing=True
        )
        _ = options.catalogue  # reads the file
    trace = Trace.launched(command, options, on_step=on_step)
    on_start(trace)
    trace.begin()
    try:
        trace.run()
        return _trial(tuple(command), trace, trace.snapshot())
    finally:
        trace.close()


def _trial(command: tuple[str, ...], trace: Trace, snapshot: Snapshot) -> Trial:
    functions: dict[tuple[Operation, str], FunctionTrial] = {}
    alive, broken = Counter(snapshot.objects["site"].tolist()), _broken(snapshot)
    for number, site in enumerate(snapshot.sites):
        if not Operation.CREATE <= site.operation <= Operation.DELETE:
            continue
        key = Operation(site.operation), site.function
        calls, unknown = trace.calls_of(number, site.operation)
        found = functions.get(key, FunctionTrial())
        found = replace(
            found, calls=found.calls + calls, unknown=found.unknown + unknown, alive=found.alive + alive[number]
        )
        more = {name: getattr(found, name) + broken[number, name] for name in set(_COUNTERS.values())}
        functions[key] = replace(found, **more)
    losses = tuple(f"{loss.count:,} lost: {loss.reason}" for loss in snapshot.losses if "reference" in loss.hides)
    return Trial(command, trace.exit_status, functions, losses)


def _broken(snapshot: Snapshot) -> Counter[tuple[int, str]]:
    """Return how many errors there are of each site, by the field that counts them."""
    found: Counter[tuple[int, str]] = Counter()
    for row in snapshot.errors:
        kind = ErrorKind(int(row["error"]))
        if kind not in _COUNTERS:
            continue
        found[int(row["site"]), _COUNTERS[kind]] += max(1, int(row["represented"]))
    return found
