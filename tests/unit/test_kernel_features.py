"""What tests of the kernel need: they are skipped only on kernels that are older than it."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from tracer.kernel import abilities

KERNEL_TESTS = Path(__file__).parents[1] / "kernel"
sys.path.insert(0, str(KERNEL_TESTS))

from features import FEATURES, LACKS, Feature, Missing, why_not  # noqa: E402

NEW = {"thing": Feature(lambda: False, (6, 6)), "there": Feature(lambda: True, (6, 6))}


@pytest.mark.parametrize("release", ["6.1.0-56-amd64", "5.15.3", "6.5", "6.5.99-rc6+deb14"])
def test_an_older_kernel_may_lack_it(release: str) -> None:
    assert why_not("thing", NEW, release) == f"{LACKS} thing"
    assert why_not("there", NEW, release) is None


@pytest.mark.parametrize("release", ["6.6.0", "6.12.118+deb13-amd64", "7.2.13+deb14-amd64", "10.0-rc1"])
def test_a_newer_kernel_must_have_it(release: str) -> None:
    with pytest.raises(Missing, match=r"should have thing, as all do since 6\.6$"):
        why_not("thing", NEW, release)
    assert why_not("there", NEW, release) is None


@pytest.mark.parametrize(
    ("answer", "there"), [(errno.ENXIO, True), (errno.EPROTO, True), (errno.ENOSYS, False), (errno.EPERM, False)]
)
def test_the_system_call_of_optimised_probes(monkeypatch: pytest.MonkeyPatch, answer: int, there: bool) -> None:
    monkeypatch.setattr(abilities.bpf, "system_call_error", lambda number: answer)
    assert abilities.optimises_nops() is there


def test_only_features_that_are_known_are_asked_for() -> None:
    asked = set()
    for path in KERNEL_TESTS.rglob("test_*.py"):
        for line in path.read_text().splitlines():
            if "mark.needs(" in line:
                asked |= set(line.partition("mark.needs(")[2].partition(")")[0].replace('"', "").split(", "))
    assert asked
    assert asked <= set(FEATURES)
