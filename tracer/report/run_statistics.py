"""Text of what a trace had to do."""

from __future__ import annotations

from collections.abc import Iterator

from tabulate import tabulate

from tracer.model.run_statistics import RunStatistics


def statistics_text(statistics: RunStatistics) -> str:
    """Return tables of walks and rings, and a line for all else, ended by a newline."""
    return "\n".join(_parts(statistics)) + "\n"


def _parts(statistics: RunStatistics) -> Iterator[str]:
    walks = [[w.operation.name.lower(), *map(_grouped, (w.total, w.remembered, w.joined, w.made))]
             for w in statistics.walks]  # fmt: skip
    yield _table(["stack walks for", "all", "remembered", "joined", "made"], walks)
    yield (
        f"frames       {statistics.frames_walked:,} walked, {statistics.frames_joined:,} remembered of joined walks; "
        f"{statistics.forgotten:,} walks cannot be remembered"
    )
    yield f"scripts      {statistics.interpreter_frames:,} frames in {statistics.interpreter_walks:,} walks"
    yield f"copies       {statistics.dumps:,} stacks copied to be walked in user space"
    held = ", ".join(f"{number:,} {reason}" for reason, number in statistics.holds.items())
    yield f"holds        {held or 'none'}"
    rings = [[ring.name, _grouped(ring.records), _grouped(ring.size_bytes)] for ring in statistics.rings]
    yield _table(["ring", "records", "bytes"], rings)


def _grouped(number: int) -> str:
    return f"{number:,}"


def _table(header: list[str], rows: list[list[str]]) -> str:
    return tabulate(rows, header, colalign=("left", *["right"] * (len(header) - 1))) if rows else f"{header[0]} none"
