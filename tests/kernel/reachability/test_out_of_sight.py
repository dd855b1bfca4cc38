"""Blocks that are held where the process itself cannot look."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

from conftest import Refleak


def test_what_is_held_out_of_sight_is_not_lost(refleak: Refleak, tmp_path: Path) -> None:
    """A block that only epoll had was called lost, with all below it; so was what stands in memory without rights,
    and what only a timer, or a thread's stack for signals, has."""
    source = Path(__file__).with_name("out_of_sight.c")
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-Wall", "-pthread", "-o", str(tmp_path / source.stem), str(source)]
    subprocess.run(command, check=True, timeout=100)
    run = refleak("--reachability", "auto", target=(tmp_path / source.stem,))
    makers = ["make_in_kernel", "make_below", "make_for_timer", "make_signal_stack", "make_sealed", "make_write_only"]
    found: Counter[tuple[str, str]] = Counter()
    for maker in [*makers, "map_twice", "make_lost"]:
        for leak in run.below(maker):
            found[leak["reachability"], maker] += leak["count"]
    assert found == {
        ("reachable", "make_in_kernel"): 8, ("reachable", "make_below"): 8, ("reachable", "make_sealed"): 5,
        ("reachable", "make_write_only"): 11, ("reachable", "make_for_timer"): 6, ("reachable", "make_signal_stack"): 2,
        ("reachable", "map_twice"): 2, ("lost", "make_lost"): 3,
    }  # fmt: skip
