"""A report as the tests ask it: what is alive, by kind and by function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
HOLD_EXPIRED = "a process ran on before its probes were in place"
NOT_HELD = "child that was not traced from its start: it was not made by fork() or vfork()"
"""What a busy machine may lose, and says."""
_TURNS = 4


def functions(stack: Sequence[Json]) -> list[str | None]:
    """Return the names of a stack's frames, leaf first."""
    return [frame["function"] for frame in stack]


def callers(leak: Json) -> list[Json]:
    """Return the stack of an entry without the function that made it."""
    return list(leak["stack"][leak["maker"] is not None :])


@dataclass(frozen=True)
class Run:
    """One run of refleak: its report, exit status and what the target said."""

    report: Json
    status: int
    stdout: str
    stderr: str
    seconds: float
    peak_kilobytes: int

    @property
    def leaks(self) -> list[Json]:
        return list(self.report["leaks"])

    def below(self, function: str, kind: str | None = None) -> list[Json]:
        """Return the leaks whose stack has a function of this name."""
        return [
            leak for leak in self.leaks
            if function in functions(leak["stack"]) and kind in (None, leak["kind"])
        ]  # fmt: skip

    def alive(self, kind: str) -> list[tuple[str | None, str | None, int, int | None]]:
        """Return (type, leaf function, count, bytes) of each leak of a kind, sorted."""
        return sorted(
            (leak["type"], callers(leak)[0]["function"] if leak["stack"] else None, leak["count"], leak["bytes"])
            for leak in self.leaks if leak["kind"] == kind
        )  # fmt: skip

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Return what was made, freed, and is outstanding, and the bytes of that."""
        totals = self.report["totals"]["allocations"]
        return totals["made"], totals["freed"], totals["outstanding"], totals["outstanding_bytes"]

    @property
    def types(self) -> dict[str, tuple[int, int, int, int, int]]:
        """Return type to (created, gets, puts, destroyed, alive)."""
        return {
            row["type"]: (row["created"], row["gets"], row["puts"], row["destroyed"], row["outstanding"])
            for row in self.report["totals"]["references"]
        }

    @property
    def errors(self) -> Counter[tuple[str, str | None]]:
        """Return how many errors there are of each (kind, type)."""
        counts: Counter[tuple[str, str | None]] = Counter()
        for error in self.report["errors"]:
            counts[error["kind"], error["type"]] += error["count"]
        return counts

    @property
    def lost(self) -> dict[str, int]:
        return {loss["reason"]: loss["count"] for loss in self.report["lost"]}

    def check_whole(self, status: int = 0) -> None:
        """Assert that nothing was lost and that the target ended as it should."""
        found = self.status, self.report["lost"], self.report["complete"]
        assert found == (status, [], True), f"{self.lost} {self.stderr}"
        assert self.report["probes"]["unresolved"] == []


def run_in_turns(run: Callable[[int], Run], may_be_lost: Collection[str]) -> Run:
    """Run again, by the number of the turn, what lost nothing but this; where all turns did, something is wrong."""
    for turn in range(_TURNS):
        done = run(turn)
        reasons = {loss["reason"] for loss in done.report["lost"]}
        if not reasons or not reasons <= set(may_be_lost):
            break
    return done
