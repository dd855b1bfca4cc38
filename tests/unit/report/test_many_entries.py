"""What grows with the entries of an analysis, counted: nothing may be made for each that few reports print."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from simulated import Simulation

from benchmarks.entries import of_blocks, of_objects
from tracer.analysis import analyse, signature, stacks
from tracer.analysis.identity import frame_key
from tracer.analysis.siblings import Siblings
from tracer.analysis.stacks import SymbolizedStacks
from tracer.model import balance
from tracer.model.balance import BalanceNode, CallPath, balance_tree
from tracer.model.frames import Frame
from tracer.report import write_text
from tracer.report.text_options import TextOptions


def test_balance_trees_are_made_for_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BalanceNode] = []

    def counting(paths: Mapping[int, CallPath], calls: tuple[tuple[int, int, int], ...]) -> BalanceNode:
        made.append(balance_tree(paths, calls))
        return made[-1]

    monkeypatch.setattr(balance, "balance_tree", counting)
    findings = analyse(*of_objects(300, 50))
    assert len(findings.leaks) == 300 and made == []
    write_text(findings, io.StringIO(), TextOptions(top=11))
    assert len(made) == 11


def test_each_frame_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    named: Counter[Frame] = Counter()

    def counting(frame: Frame) -> str:
        named[frame] += 1
        return frame_key(frame)

    monkeypatch.setattr(stacks, "frame_key", counting)
    findings = analyse(*of_blocks(1009))
    assert len(findings.leaks) == 1009
    assert set(named.values()) == {1}


@pytest.mark.parametrize("at_once", [1, 24, 1000])
def test_signatures_summed_some_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    snapshot, symbols = of_objects(300, 5)
    few = replace(snapshot, objects=snapshot.objects.copy())
    few.objects["stack"] = 1  # one birth: only signatures tell entries apart
    whole = analyse(few, symbols)
    sizes: list[int] = []
    hashes = signature._hashes

    def counting(rows: signature._Rows, *rest: object) -> object:
        sizes.append(len(rows.stack))
        return hashes(rows, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(signature, "_hashes", counting)
    monkeypatch.setattr(signature, "NODES_AT_ONCE", at_once)
    assert analyse(few, symbols) == whole
    assert 1 < len(whole.leaks) <= 300
    assert max(sizes) <= max(9, at_once // 24)  # an object's own calls at least


def test_ends_of_healthy_objects_are_told_by_where_they_were_created() -> None:
    made = Simulation()
    for n in range(5):
        thing = made.create(f"main:{n} new:1")
        made.put(thing, f"main:{n} drop:{n}")
    made.create("main:0 new:1")
    snapshot = made.snapshot()
    siblings = Siblings(SymbolizedStacks(snapshot.stacks, (), made.code.symbols), snapshot.balanced, 0xD50, [])
    births = np.unique(snapshot.balanced.deaths["create_stack"]).tolist()
    found = {birth: siblings.deaths(birth) for birth in births}
    assert [list(ends.values()) for ends in found.values()] == [[1]] * 5
    assert len({ends for each in found.values() for ends in each}) == 5
