"""Live blocks in the front of their map and behind it: none is lost or counted twice, whoever makes and frees it."""

from __future__ import annotations

import pytest
from conftest import Refleak

EXCHANGES, THREADS, KEPT = 60_000, 4, 29


@pytest.mark.parametrize("most", [8_192, 65_536, 4_194_304])
def test_blocks_that_threads_make_and_free_for_each_other(refleak: Refleak, most: int) -> None:
    """Of 8,192 the front has room for 512, so that most of the 6,000 are behind it; of 4 million all have room."""
    run = refleak("--max-objects", str(most), "--reachability", "off", target=("live_churn", EXCHANGES), timeout=120)
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "make_churned", KEPT, 64 * KEPT)]
    made = EXCHANGES * THREADS + KEPT
    assert run.blocks[0] >= made and run.blocks[0] - run.blocks[1] == run.blocks[2]
    assert run.report["errors"] == []
