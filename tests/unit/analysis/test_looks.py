"""Looks of the live view: what holds memory, and what that grew by from one to the next."""

from __future__ import annotations

from dataclasses import replace

from hand_made import SECOND, process, snapshot

from tracer.analysis import analyse
from tracer.analysis.top import top_sample
from tracer.model.findings import INDIRECT, LOST, REACHABLE, Findings, Holder, Leak
from tracer.model.frames import Frame
from tracer.model.reachability import Scan
from tracer.model.top import HeldNode, TopSample

TABLE, CACHE = Holder(1, "global", "table.head", module="srv"), Holder(1, "global", "cache", module="srv")
LOOKED = Scan(812, 1, held_ns=2_000_000)


def entry(name: str, count: int, *holders: Holder, reachability: str | None = REACHABLE, pid: int = 812) -> Leak:
    stack = Frame(name, "srv", line=7), Frame("main", "srv", line=9)
    return Leak(
        name, "allocation", "malloc", pid, "outstanding", count, count * 100, stack, True, "",
        reachability=reachability, holders=holders,
    )  # fmt: skip


def block(name: str, count: int) -> Holder:
    return Holder(count, "block", stack=(Frame(name, "srv", line=7), Frame("main", "srv", line=9)))


def found(at: int, *leaks: Leak, scans: tuple[Scan, ...] = (LOOKED,)) -> Findings:
    empty = analyse(snapshot(processes=(process(ended_ns=None), process(813, ended_ns=SECOND))), {})
    return replace(empty, duration_ns=at * SECOND, leaks=leaks, scans=scans)


def list_of(count: int) -> tuple[Leak, ...]:
    """A list at table.head whose nodes have a name each, of which one is lost with each node that came."""
    return (
        entry("node", count, block("node", count - 1), TABLE),
        entry("name", count, block("node", count)),
        *([entry("name", count - 5, reachability=LOST)] if count > 5 else []),
        entry("part", 1, reachability=INDIRECT),
        entry("fixed", 4, CACHE),
    )


def held(nodes: tuple[HeldNode, ...]) -> dict[str, tuple[int, int | None, object]]:
    return {node.id or str(node.holder.name): (node.retained, node.grown, held(node.below)) for node in nodes}


def unlooked(*leaks: Leak) -> tuple[Leak, ...]:
    return tuple(replace(leak, reachability=None, holders=None) for leak in leaks)


def test_a_first_look_says_what_holds() -> None:
    look = top_sample(found(1, *list_of(5)), None).look
    assert look is not None
    assert (look.time_ns, look.before_ns, look.growing, look.lost, look.lost_before) == (
        SECOND, None, None, {812: (1, 100)}, None
    )  # fmt: skip
    (tree,) = look.trees
    assert held(tree.nodes) == {
        "table.head": (1000, None, {"node": (1000, None, {"name": (500, None, {})})}),
        "cache": (400, None, {"fixed": (400, None, {})}),
    }


def test_a_second_look_says_what_grew_and_by_whom_it_is_held() -> None:
    first = top_sample(found(1, *list_of(5)), None)
    between = top_sample(found(2, *unlooked(*list_of(7)), scans=()), first)
    assert between.look is first.look and between.look is not None
    sample = top_sample(found(3, *list_of(9)), between)
    look = sample.look
    assert look is not None and look.growing is not None
    assert held(look.trees[0].nodes) == {
        "table.head": (1800, 800, {"node": (1800, 800, {"name": (900, 400, {})})}),
        "cache": (400, 0, {"fixed": (400, 0, {})}),
    }
    assert (look.before_ns, look.lost, look.lost_before) == (SECOND, {812: (5, 500)}, {812: (1, 100)})
    # four nodes, four names and four names that are lost
    assert look.growing.bytes == 1200
    assert [(one.holder.name, one.bytes) for one in look.growing.retainers] == [("table.head", 800), (None, 400)]
    (name,) = (row for row in sample.rows if row.id == "name")
    assert (dict(name.classes), dict(name.classes_before)) == ({REACHABLE: 9, LOST: 4}, {REACHABLE: 5})
    later = top_sample(found(4, *unlooked(*list_of(9)), scans=()), sample)
    assert later.look == look and {row.classes_before for row in later.rows if row.id == "name"} == {
        name.classes_before
    }  # fmt: skip


def test_what_was_not_there_has_grown_from_nothing() -> None:
    first = top_sample(found(1, *list_of(5)), None)
    rows = {row.id: row for row in top_sample(found(2, *list_of(5), entry("late", 3, CACHE)), first).rows}
    assert (rows["late"].holders_before, rows["fixed"].holders_before) == ((), (CACHE,))


def test_a_process_that_one_look_did_not_see_has_not_grown() -> None:
    """It may be a new one, or one that could not be read then."""
    first = top_sample(found(1, *list_of(5)), None)
    findings = found(2, *list_of(5), entry("other", 9, CACHE, pid=814), scans=(LOOKED, Scan(814, 1)))
    both = replace(findings, processes=(*findings.processes, process(814, ended_ns=None)))
    look = top_sample(both, first).look
    assert look is not None and look.growing is None
    assert {tree.pid: held(tree.nodes)["cache"][:2] for tree in look.trees} == {812: (400, 0), 814: (900, None)}


def test_the_end_of_a_child_is_no_look() -> None:
    """What its memory was read for at its end put "looked into" beside each later sample, and emptied the classes."""
    looked = top_sample(found(1, *list_of(5)), None)
    ended = Scan(813, 1, held_ns=9_000_000)
    after = top_sample(found(2, *unlooked(*list_of(5)), scans=(ended,)), looked)
    assert after.look is looked.look
    assert {row.id: row.classes for row in after.rows} == {row.id: row.classes for row in looked.rows}
    assert top_sample(found(2, *unlooked(*list_of(5)), scans=(ended,)), None).look is None


def test_why_it_was_not_looked_into_stays_until_it_is() -> None:
    refused = top_sample(found(1, scans=(Scan(812, 1, "gdb (pid 7) traces it"),)), None)
    assert (refused.look, refused.not_looked) == (None, "gdb (pid 7) traces it")
    assert top_sample(found(2, scans=()), refused).not_looked == "gdb (pid 7) traces it"
    assert top_sample(found(3), refused).not_looked == ""
    assert isinstance(refused, TopSample)
