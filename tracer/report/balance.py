"""Balance trees as lines: who took references and who gave them back."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.late_dataclasses import dataclass
from tracer.model.balance import Balance, BalanceNode, Fold
from tracer.report.amounts import counted
from tracer.report.names import shorten
from tracer.report.page import Page, Span
from tracer.report.stack_lines import name, place

FULL, PRUNED, OFF = "full", "pruned", "off"
TREES = (FULL, PRUNED, OFF)
_MOST_LINES = 40


@dataclass(frozen=True)
class _Row:
    depth: int
    node: BalanceNode
    through: tuple[BalanceNode, ...] = ()
    """Callers with this one child and the same sums: one line for all."""


def add_balance(page: Page, balance: Balance | None, tree: str = PRUNED) -> None:
    """Add a tree, callers first; pruned of all that nets to zero, or whole. `tree`: one of TREES."""
    if balance is None or tree == OFF:
        return
    whole = balance.tree()
    shown = whole.pruned() if tree == PRUNED else whole
    rows = list(_rows(shown, 0))
    most = _MOST_LINES if tree == PRUNED else len(rows)
    if not rows:
        return
    column = max(len(_sums(row.node)) for row in rows)
    page.line(f"    balance: {_sums(shown)}")
    for row in rows[:most]:
        lead = f"      {_sums(row.node):<{column}}  {'  ' * min(row.depth, 12)}"
        calls = _calls(row, page.width - len(lead))
        if len(lead) + len(calls) <= page.width:
            page.line(lead, calls)
        else:
            below = " " * (8 + 2 * min(row.depth, 12))
            page.line(lead)
            page.line(below, _calls(row, page.width - len(below)))
    if len(rows) > most:
        page.line(f"      ... {counted(len(rows) - most, 'more line')} (--balance full shows all)")
    folded = _folded(shown)
    if folded.paths:
        what = f"({counted(folded.paths, 'balanced path')}, {folded.gets:,} taken and {folded.puts:,} put, folded)"
        page.line("      ", Span(what, "dim"))


def _rows(node: BalanceNode, depth: int) -> Iterator[_Row]:
    for child in node.children:
        through = []
        while len(child.children) == 1 and _alike(child, child.children[0]):
            through.append(child)
            child = child.children[0]
        yield _Row(depth, child, tuple(through))
        yield from _rows(child, depth + 1)


def _alike(node: BalanceNode, child: BalanceNode) -> bool:
    return (node.gets, node.puts) == (child.gets, child.puts) and not node.folded.paths


def _sums(node: BalanceNode) -> str:
    return f"+{node.gets:,} -{node.puts:,} = {node.net:+,}" if node.net else f"+{node.gets:,} -{node.puts:,} = 0"


def _calls(row: _Row, room: int) -> str:
    """Return the calls of a row, the innermost with its place; callers only as far as there is room."""
    frame = row.node.frame
    text = "all calls" if frame is None else f"{shorten(name(frame), max(16, room - 24))} {place(frame)}".rstrip()
    for caller in reversed(row.through):
        before = name(caller.frame) if caller.frame is not None else ""
        if len(before) + 3 + len(text) > room:
            return f".. > {text}" if len(text) + 5 <= room else text
        text = f"{before} > {text}"
    return text


def _folded(node: BalanceNode) -> Fold:
    folds = [node.folded, *(_folded(child) for child in node.children)]
    return Fold(sum(f.paths for f in folds), sum(f.gets for f in folds), sum(f.puts for f in folds))
