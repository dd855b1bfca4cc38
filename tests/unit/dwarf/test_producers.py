"""Whether functions may have been folded, by what compilers say of themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tracer.dwarf.producers import may_be_folded
from tracer.elf.image import Image


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("gcc -g", False), ("gcc -g -O0", False), ("gcc -g -O1", False), ("gcc -g -Og", False), ("gcc -g -O", False),
        ("gcc -g -O2", True), ("gcc -g -O3", True), ("gcc -g -Os", True), ("gcc -g -Ofast", True),
        ("gcc -g -O2 -O1", False), ("gcc -g -O2 -fno-ipa-icf", True), ("gcc -g -O1 -fipa-icf", True),
        ("gcc -g -O1 -fcrossjumping", True), ("gcc -g -O1 -ftree-tail-merge", True),
        ("gcc -g -O2 -fno-ipa-icf -fno-tree-tail-merge", True),
        ("gcc -g -O2 -fno-ipa-icf -fno-tree-tail-merge -fno-crossjumping", False),
        ("gcc -g -O1 -gno-record-gcc-switches", True), ("gcc -gdwarf-4 -O2", True), ("gcc -gdwarf-4 -O1", False),
        ("gcc -O1", True),
    ],
)  # fmt: skip
def test_what_compilers_say(tmp_path: Path, command: str, expected: bool) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([*command.split(), "-o", "a", "a.c"], cwd=tmp_path, check=True)
    assert may_be_folded(Image.open(tmp_path / "a")) is expected


@pytest.mark.parametrize(
    ("version", "expected"), [(9, False), (14, False), (16, False), (17, True), (19, True), (20, True)]
)
def test_clang_from_17_on_may_fold(tmp_path: Path, version: int, expected: bool) -> None:
    """It does not say with what options it ran. One clang makes the file, which another one's version is written to."""
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["clang", "-g", "-O2", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    data = (tmp_path / "a").read_bytes()
    renamed = re.sub(rb"clang version \d\d", b"clang version %2d" % version, data)
    assert renamed != data or version == 14
    (tmp_path / "a").write_bytes(renamed.replace(b"clang version  ", b" clang version "))
    assert may_be_folded(Image.open(tmp_path / "a")) is expected


def test_without_a_file_nothing_is_known() -> None:
    assert may_be_folded(None)


def test_one_run_of_several_is_enough(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int other(void); int main(void) { return other(); }\n")
    (tmp_path / "b.c").write_text("int other(void) { return 0; }\n")
    for name, level in (("a", "-O1"), ("b", "-O2")):
        subprocess.run(["gcc", "-g", level, "-c", f"{name}.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-o", "both", "a.o", "b.o"], cwd=tmp_path, check=True)
    assert may_be_folded(Image.open(tmp_path / "both"))
