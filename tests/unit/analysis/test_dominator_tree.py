"""What holds memory, from the roots down: exact trees of small graphs of entries."""

from __future__ import annotations

from dataclasses import replace

from test_retained import OTHER, TABLE, block, entry

from tracer.analysis.dominator_tree import dominator_trees
from tracer.model.findings import DominatorNode, Leak

Tree = dict[str, tuple[int, "Tree"]]


def tree(leaks: list[Leak]) -> Tree:
    (only,) = dominator_trees(leaks)
    return of(only.nodes)


def of(nodes: tuple[DominatorNode, ...]) -> Tree:
    return {node.id or node.holder.name or "?": (node.retained, of(node.below)) for node in nodes}


def sized(leak: Leak, size: int, pid: int = 1) -> Leak:
    return replace(leak, bytes=size, pid=pid, reachability="reachable")


def test_what_one_root_leads_to_stands_below_it() -> None:
    leaks = [sized(entry("list", TABLE, block("list")), 60), sized(entry("name", block("list")), 30)]
    assert tree(leaks) == {"cache.table": (90, {"list": (90, {"name": (30, {})})})}


def test_what_two_lead_to_stands_below_what_leads_to_both() -> None:
    leaks = [
        sized(entry("top", TABLE), 1), sized(entry("left", block("top")), 10), sized(entry("right", block("top")), 20),
        sized(entry("leaf", block("left"), block("right")), 100),
    ]  # fmt: skip
    assert tree(leaks) == {
        "cache.table": (131, {"top": (131, {"leaf": (100, {}), "right": (20, {}), "left": (10, {})})})
    }


def test_what_two_roots_lead_to_stands_beside_them() -> None:
    leaks = [sized(entry("mine", TABLE), 5), sized(entry("both", TABLE, OTHER), 7)]
    assert tree(leaks) == {"both": (7, {}), "cache.table": (5, {"mine": (5, {})})}


def test_what_is_lost_is_in_no_tree_nor_holds_anything_there() -> None:
    lost = replace(sized(entry("lost"), 50), reachability="lost")
    hung = replace(sized(entry("hung", block("lost")), 50), reachability="indirect")
    assert dominator_trees([lost, hung]) == ()
    assert tree([lost, hung, sized(entry("kept", TABLE), 3)]) == {"cache.table": (3, {"kept": (3, {})})}


def test_each_process_has_a_tree_that_of_the_most_bytes_first() -> None:
    found = dominator_trees([sized(entry("a", TABLE), 1, 10), sized(entry("a", TABLE), 9, 11)])
    assert [(one.pid, one.nodes[0].retained) for one in found] == [(11, 9), (10, 1)]


def test_a_long_chain_is_no_deeper_than_people_read() -> None:
    leaks = [sized(entry("e0", TABLE), 1), *(sized(entry(f"e{n}", block(f"e{n - 1}")), 1) for n in range(1, 300))]
    (only,) = dominator_trees(leaks)
    depth, nodes = 0, only.nodes
    while nodes:
        depth, nodes = depth + 1, nodes[0].below
    assert only.nodes[0].retained == 300
    assert depth == 61


def test_entries_of_one_line_are_told_apart_by_their_call() -> None:
    """Which of two calls in a line made the holder is known by its address; where it is not, nobody retains."""
    first, second = (
        replace(leak, stack=(replace(leak.stack[0], function="make", address=at), leak.stack[1]))
        for leak, at in ((sized(entry("struct", TABLE), 10), 0x10), (sized(entry("buffer", TABLE), 20), 0x20))
    )

    def held_by(at: int) -> Leak:
        holder = block("make")
        assert holder.stack is not None
        return sized(entry("leaf", replace(holder, stack=(replace(holder.stack[0], address=at), holder.stack[1]))), 5)

    assert tree([first, second, held_by(0x10)])["cache.table"][1]["struct"] == (15, {"leaf": (5, {})})
    assert tree([first, second, held_by(0x20)])["cache.table"][1]["buffer"] == (25, {"leaf": (5, {})})
    assert tree([first, second, held_by(0x30)])["?"] == (5, {"leaf": (5, {})})
