"""Blocks that were freed with a counted object in them, whose memory was used again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import CHECKOUT, Refleak
from traced_report import functions

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("freed") / "freed_holders"
    command = ["gcc", "-O1", "-g", "-fno-builtin", f"-I{CHECKOUT / 'examples'}", "-o", str(path)]
    subprocess.run([*command, str(HERE / "freed_holders.c")], check=True, timeout=100)
    return path


@pytest.mark.parametrize("options", [(), ("--preload",), ("--follow-forks",)])
@pytest.mark.parametrize(("size", "offset", "count"), [
    (8, 0, 90), (40, 32, 90), (64, 24, 90), (70, 56, 90), (512, 504, 90), (3000, 2400, 15),
])  # fmt: skip
def test_what_was_freed_without_a_put_is_named(
    refleak: Refleak, program: Path, size: int, offset: int, count: int, options: tuple[str, ...]
) -> None:
    run = refleak("--reachability", "auto", *options, target=(program, str(size), str(offset), str(count)))
    run.check_whole()
    (leak,) = [leak for leak in run.leaks if leak["kind"] == "reference"]
    assert (leak["count"], leak["instances"][0]["references"]) == (count // 3, 1)
    (holder,) = leak["holders"]
    assert (holder["kind"], holder["offset"], holder["count"]) == ("freed-block", offset, count // 3)
    assert functions(holder["stack"])[:2] == ["list_new", "main"]
    assert functions(holder["freed_at"])[:2] == ["list_delete", "main"]
    assert functions(leak["unpaired"][0]["stack"])[:2] == ["thing_get", "list_new"]


def test_only_the_first_large_ones_are_looked_at(refleak: Refleak, program: Path) -> None:
    run = refleak("--reachability", "auto", target=(program, "3000", "2400", "300"))
    run.check_whole()
    (leak,) = [leak for leak in run.leaks if leak["kind"] == "reference"]
    (holder,) = leak["holders"]
    assert leak["count"] == 100 and 3 <= holder["count"] < 100
