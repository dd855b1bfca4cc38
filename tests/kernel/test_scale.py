"""Much of everything: millions of live blocks, and limits that are too small."""

from __future__ import annotations

from conftest import Refleak

BLOCKS = 2_000_000


def test_two_million_live_blocks(refleak: Refleak) -> None:
    run = refleak(target=("many_live", BLOCKS), timeout=300)
    print(f"\n{BLOCKS:,} live blocks: {run.seconds:.1f} s, peak {run.peak_kilobytes / 1024:.0f} MiB")
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_many", BLOCKS, 16 * BLOCKS)]
    assert run.blocks == (BLOCKS, 0, BLOCKS, 16 * BLOCKS)


def test_blocks_that_do_not_fit_are_counted_with_the_remedy(refleak: Refleak) -> None:
    run = refleak("--max-objects", "101", target=("many_live", 1009))
    assert run.status == 0 and run.report["complete"] is False
    [loss] = run.report["lost"]
    assert (loss["count"], loss["remedy"]) == (1009 - 101, "--max-objects")
    assert run.alive("allocation") == [("malloc", "leak_many", 101, 16 * 101)]
    assert run.blocks[:2] == (1009, 0)


def test_objects_that_do_not_fit_are_counted_with_the_remedy(refleak: Refleak) -> None:
    run = refleak("--refs-only", "--max-objects", "12", target=("refs_leak",))  # room for 3 objects
    assert run.status == 0 and run.report["complete"] is False
    assert {loss["remedy"] for loss in run.report["lost"]} == {"--max-objects"}
    assert sum(alive for *_, alive in run.types.values()) == 3


def test_stacks_that_do_not_fit_are_counted_with_the_remedy(refleak: Refleak) -> None:
    run = refleak("--max-stacks", "1", target=("munmap_parts", "fixed"))
    assert run.report["complete"] is False
    assert {loss["remedy"] for loss in run.report["lost"]} == {"--max-stacks"}


def test_events_that_do_not_fit_are_counted_with_the_remedy(refleak: Refleak) -> None:
    run = refleak("--refs-only", "--ring-size", "4096", target=("refs_threads",))
    assert run.report["complete"] is False
    assert {loss["remedy"] for loss in run.report["lost"]} == {"--ring-size"}
    assert run.leaks == []  # the objects are followed in the kernel, whatever becomes of the events


def test_threads_that_were_not_followed_make_no_leak(refleak: Refleak) -> None:
    """Blocks that they freed seem to be alive; 885 were called leaks."""
    run = refleak("--max-threads", "2", "--error-exitcode", "9", target=("threads",))
    assert {loss["remedy"] for loss in run.report["lost"]} == {"--max-threads"}
    assert run.report["complete"] is False
    assert {leak["state"] for leak in run.leaks} <= {"outstanding"}
    assert run.status == 0
    assert not run.leaks or "event of one thread too many" in run.report["doubts"][0]
