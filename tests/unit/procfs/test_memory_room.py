"""How much memory may still be used: the least of what the machine and each cgroup have left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.procfs.memory_room import MemoryRoom, memory_room

MIB = 1 << 20


def system(root: Path, cgroup: str, **files: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 9999 kB\nMemAvailable:   2048 kB\n")
    (root / "proc/self/cgroup").write_text(cgroup)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def group(folder: str, limit: object, used: int, reclaimed: int = 0, *, version: int = 2) -> dict[str, str]:
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    row = "total_inactive_file" if version == 1 else "inactive_file"
    files = {names[0]: f"{limit}\n", names[1]: f"{used}\n", "memory.stat": f"anon 5\n{row} {reclaimed}\n"}
    return {f"{folder}/{name}".lstrip("/"): text for name, text in files.items()}


def test_the_machine_without_cgroups(tmp_path: Path) -> None:
    assert memory_room(system(tmp_path, "")) == MemoryRoom(2 * MIB, "this machine")
    assert memory_room(tmp_path / "nowhere") is None


@pytest.mark.parametrize(("outer", "inner", "expected"), [
    ("max", MIB, MemoryRoom(MIB - 700 + 300, "the cgroup /a/b")),
    (900, MIB, MemoryRoom(200, "the cgroup /a")),
    ("max", "max", MemoryRoom(2 * MIB, "this machine")),
    (100, "max", MemoryRoom(0, "the cgroup /a")),
])  # fmt: skip
def test_the_least_of_a_branch(tmp_path: Path, outer: object, inner: object, expected: MemoryRoom) -> None:
    files = group("a", outer, 700) | group("a/b", inner, 700, 300)
    assert memory_room(system(tmp_path, "0::/a/b\n", **files)) == expected


def test_the_first_version_of_cgroups(tmp_path: Path) -> None:
    files = group("memory/a", MIB, 1000, 24, version=1) | group("memory", 9223372036854771712, 5, version=1)
    cgroup = "5:cpu,cpuacct:/other\n4:memory:/a\n0::/a\n"
    assert memory_room(system(tmp_path, cgroup, **files)) == MemoryRoom(MIB - 976, "the cgroup /a")


def test_a_container_has_its_own_as_the_root(tmp_path: Path) -> None:
    """Its name is the machine's, and not to be seen there."""
    files = group("memory", MIB, 0, version=1)
    found = memory_room(system(tmp_path, "4:memory:/docker/1234\n", **files))
    assert found == MemoryRoom(MIB, "the cgroup /")


@pytest.mark.parametrize("text", ["", "nonsense", "0:", "0::\n", ":::::\n", "4:memory\n", "0::/../../a\n"])
def test_what_makes_no_sense_says_nothing(tmp_path: Path, text: str) -> None:
    assert memory_room(system(tmp_path, text, **group("a", "-5", 0))) == MemoryRoom(2 * MIB, "this machine")
