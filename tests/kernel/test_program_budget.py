"""The kernel's verifier follows each program in few steps: older ones refuse what takes more, and it is a start's time.

How many steps a program takes differs between kernels, by a factor of three either way; the verifier's own limit is a
million, and 8192 branches that it still has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.kernel.btf import kernel_offsets
from tracer.kernel.maps import Limits, Maps
from tracer.kernel.programs import LOADED_AT_START, MADE_AT_START, compiled, has_uprobe_multi, verify_programs
from tracer.model.verified import Verified

EACH, TOGETHER = 30_000, 165_000
STACK_BYTES = 512
OF_PRELOAD = ("on_wrapper",)
"""Loaded with --preload alone."""


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> list[Verified]:
    maps = Maps.create(Limits())
    try:
        cache = Path(tmp_path_factory.mktemp("cache"))
        return list(verify_programs(maps, kernel_offsets(), cache, multi=has_uprobe_multi()))
    finally:
        maps.close()


def test_the_kernel_takes_all_programs(verified: list[Verified]) -> None:
    assert [program.refusal for program in verified if program.refusal] == []


def test_each_program_is_within_its_budget(verified: list[Verified]) -> None:
    assert min(program.followed for program in verified) > 0
    assert {program.name: program.followed for program in verified if program.followed > EACH} == {}


def test_all_programs_together_are_within_theirs(verified: list[Verified]) -> None:
    assert sum(program.followed for program in verified if program.name not in OF_PRELOAD) <= TOGETHER


def test_what_a_trace_begins_with_is_needed(tmp_path: Path) -> None:
    """And the maps of counted objects, which few targets have, are not: each takes 10 ms to make."""
    maps = Maps.create(Limits())
    try:
        code = compiled(maps, {**kernel_offsets(), "NAMESPACE_LEVEL": 0}, tmp_path)
        assert set(maps.fds) == {"CONSTANTS"}
        _ = [code[name] for name in LOADED_AT_START]
        needed = set(maps.fds)
    finally:
        maps.close()
    assert needed >= set(MADE_AT_START)
    assert not needed & {"OBJECTS", "BY_OBJECT", "TYPES", "HANDLES"}


def test_stacks_are_told(verified: list[Verified]) -> None:
    assert 0 < max(program.stack_bytes for program in verified) <= STACK_BYTES
