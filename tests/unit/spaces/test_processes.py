"""Who has not ended, and whose memory living processes began as copies of."""

from __future__ import annotations

from tracer.spaces.processes import ProcessTable


def family() -> ProcessTable:
    """Give 10, its child 11 and that one's child 12, and 13, a child of 10 that shares its memory."""
    table = ProcessTable()
    table.add(10, 0, None, ("main",), 0)
    table.forked(11, 1, 10, 5, shares_memory=False)
    table.forked(12, 1, 11, 6, shares_memory=False)
    table.forked(13, 1, 10, 7, shares_memory=True)
    return table


def test_who_has_not_ended() -> None:
    table = family()
    assert table.living == (10, 11, 12, 13)
    table.exited(11, 0, 8)
    table.exited(11, 0, 9)
    table.exited(13, 0, 9)
    assert table.living == (10, 12)


def test_the_memory_of_ancestors_is_in_use_while_a_descendant_lives() -> None:
    table = family()
    assert table.spaces_in_use == {(10, 0), (11, 1), (12, 1)}
    table.exited(10, 0, 8)
    table.exited(11, 0, 8)
    assert table.spaces_in_use == {(10, 0), (11, 1), (12, 1)}
    table.exited(13, 0, 9)
    assert table.spaces_in_use == {(10, 0), (11, 1), (12, 1)}
    table.execed(12, 2, "/bin/other", 10)
    assert table.spaces_in_use == {(12, 2)}


def test_what_a_child_works_in_is_in_use_though_its_owner_has_ended() -> None:
    table = family()
    for pid in (12, 11, 10):
        table.exited(pid, 0, 8)
    assert table.spaces_in_use == {(10, 0)}
    table.execed(13, 2, "/bin/other", 10)
    assert table.spaces_in_use == {(13, 2)}


def test_a_pid_that_came_round_again_is_another_process() -> None:
    table = family()
    table.exited(12, 0, 8)
    table.forked(12, 7, 10, 9, shares_memory=False)
    assert table.living == (10, 11, 12, 13)
    assert (12, 7) in table.spaces_in_use and (12, 1) not in table.spaces_in_use
