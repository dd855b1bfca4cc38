"""Balance trees: exact sums, folding, and the self-check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from simulated import Simulation

from tracer.analysis.call_paths import call_path
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model.balance import BalanceNode, Fold, balance_tree

Row = tuple[str, int, int]


def tree(*rows: Row) -> BalanceNode:
    """Build a tree of (calls, gets, puts)."""
    made = Simulation()
    stacks = [(made.stack(calls), gets, puts) for calls, gets, puts in rows]
    return summed(SymbolizedStacks(made.code.stacks, (), made.code.symbols), stacks)


def summed(table: SymbolizedStacks, references: Sequence[tuple[int, int, int]]) -> BalanceNode:
    return balance_tree({stack: call_path(table.get(stack)) for stack, *_ in references}, references)


def drawn(node: BalanceNode, depth: int = 0) -> list[str]:
    """Return the tree as indented lines."""
    name = f"{node.frame.function}:{node.frame.line or ''}" if node.frame else "all"
    fold = f" ({node.folded.paths}: {node.folded.gets})" if node.folded.paths else ""
    line = f"{' ' * depth}{name} +{node.gets} -{node.puts} = {node.net}{fold}"
    return [line, *(text for child in node.children for text in drawn(child, depth + 1))]


ROWS: tuple[Row, ...] = (
    ("main:9 new:1", 1, 0),
    ("main:10 serve:5 find:20", 4, 0),
    ("main:10 serve:9 release:30", 0, 3),
    ("main:11 log:7 keep:70", 2, 0),
    ("main:11 log:8 drop:75", 0, 2),
    ("main:14 close:17", 0, 1),
)


def test_the_whole_tree() -> None:
    assert drawn(tree(*ROWS)) == [
        "all +7 -6 = 1",
        " main: +7 -6 = 1",
        "  close:17 +0 -1 = -1",
        "  new:1 +1 -0 = 1",
        "  serve: +4 -3 = 1",
        "   find:20 +4 -0 = 4",
        "   release:30 +0 -3 = -3",
        "  log: +2 -2 = 0",
        "   drop:75 +0 -2 = -2",
        "   keep:70 +2 -0 = 2",
    ]


def test_what_is_balanced_is_folded_and_counted() -> None:
    assert drawn(tree(*ROWS).pruned())[:2] == ["all +7 -6 = 1", " main: +7 -6 = 1 (1: 2)"]
    assert len(drawn(tree(*ROWS).pruned())) == 7


def test_an_empty_tree() -> None:
    assert tree() == BalanceNode(None, 0, 0)
    assert tree().self_check()


def test_a_lost_stack_is_a_node_of_its_own() -> None:
    made = summed(SymbolizedStacks({}, (), {}), [(99, 1, 0)])
    assert [child.frame and child.frame.why_unknown for child in made.children] == ["stack not kept"]


def test_the_self_check_finds_a_wrong_sum() -> None:
    whole = tree(*ROWS)
    assert whole.self_check()
    assert not replace(whole, gets=8).self_check()
    assert not replace(whole, folded=Fold(1, 1, 1)).self_check()
    wrong = replace(whole.children[0], children=whole.children[0].children[1:])
    assert not replace(whole, children=(wrong,)).self_check()


paths = st.lists(st.sampled_from(["a:1", "b:1", "b:2", "c:1"]), min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(paths, st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_whole_and_pruned_trees_check_out(rows: list[Row]) -> None:
    whole = tree(*rows)
    assert (whole.gets, whole.puts) == (sum(row[1] for row in rows), sum(row[2] for row in rows))
    assert whole.self_check()
    pruned = whole.pruned()
    assert pruned.self_check()
    assert pruned.pruned() == pruned
    assert all_unbalanced(pruned)


def all_unbalanced(node: BalanceNode) -> bool:
    return all(child.net and all_unbalanced(child) for child in node.children)
