"""The kernel's offsets are read once for each start of a kernel, and a cache that is damaged is not believed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracer.kernel import known_offsets as module
from tracer.kernel.btf import MEMBERS
from tracer.kernel.known_offsets import ALTERNATE_STACK, TASK_ITERATOR, kernel_number, known_offsets

OFFSETS = {macro: 8 * index for index, macro in enumerate(MEMBERS)}
NUMBERS = {TASK_ITERATOR: 64_247, ALTERNATE_STACK: 3_008}
ASKED = {"boot": "first", "members": dict(MEMBERS), "names": [TASK_ITERATOR, ALTERNATE_STACK]}


class _Kernel:
    def __init__(self) -> None:
        self.asked = self.asked_for_numbers = 0

    def function(self, name: str) -> int:
        self.asked_for_numbers += 1
        assert name == TASK_ITERATOR
        return NUMBERS[name]

    def offset(self, path: str) -> int:
        self.asked_for_numbers += 1
        assert path == ALTERNATE_STACK
        return NUMBERS[path]

    def offsets(self) -> dict[str, int]:
        self.asked += 1
        return dict(OFFSETS)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> _Kernel:
    made = _Kernel()
    monkeypatch.setattr(module, "kernel_offsets", made.offsets)
    monkeypatch.setattr(module, "_numbers", {})
    monkeypatch.setattr(module, "Btf", lambda _: made)
    return made


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    path = tmp_path / "boot_id"
    path.write_text("first\n")
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(autouse=True)
def _any_folder_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs the tests as root has its temporary files below /tmp, which is none of root's caches."""
    monkeypatch.setattr(module, "read_own", lambda path: path.read_bytes())
    monkeypatch.setattr(module, "write_own", lambda path, data: path.write_bytes(data))


def test_they_are_read_once(kernel: _Kernel, boot: Path, cache: Path) -> None:
    assert known_offsets(cache, boot) == OFFSETS
    assert known_offsets(cache, boot) == OFFSETS
    assert kernel.asked == 1


def test_so_are_other_numbers(
    kernel: _Kernel, boot: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a function's type, and of a member: somebody is held when one of them is asked for."""
    known_offsets(cache, boot)
    monkeypatch.setattr(module, "_numbers", {})
    known_offsets(cache, boot)
    assert (kernel_number(TASK_ITERATOR), kernel_number(ALTERNATE_STACK)) == (64_247, 3_008)
    assert kernel.asked_for_numbers == 2


def test_another_start_of_the_kernel_may_be_of_another_kernel(kernel: _Kernel, boot: Path, cache: Path) -> None:
    known_offsets(cache, boot)
    boot.write_text("second\n")
    known_offsets(cache, boot)
    assert kernel.asked == 2


@pytest.mark.parametrize("damage", [
    "", "[]", "{}", "null", '{"asked": 1, "offsets": {}}',
    json.dumps({"asked": ASKED, "offsets": {}, "numbers": NUMBERS}),
    json.dumps({"asked": ASKED, "offsets": dict.fromkeys(MEMBERS, 1.5), "numbers": NUMBERS}),
    json.dumps({"asked": ASKED, "offsets": OFFSETS, "numbers": {**NUMBERS, TASK_ITERATOR: None}}),
    json.dumps({"asked": {"boot": "first", "members": dict(MEMBERS)}, "offsets": OFFSETS}),
])  # fmt: skip
def test_what_is_not_whole_is_read_anew(kernel: _Kernel, boot: Path, cache: Path, damage: str) -> None:
    (cache / "kernel-offsets.json").write_text(damage)
    assert known_offsets(cache, boot) == OFFSETS
    assert (kernel.asked, known_offsets(cache, boot), kernel.asked) == (1, OFFSETS, 1)


def test_without_the_number_of_a_start_nothing_is_kept(kernel: _Kernel, tmp_path: Path, cache: Path) -> None:
    known_offsets(cache, tmp_path / "absent")
    known_offsets(cache, tmp_path / "absent")
    assert (kernel.asked, list(cache.iterdir())) == (2, [])
