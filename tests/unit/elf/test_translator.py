"""Programs that translate others are known by where they are linked, or named, and by what they read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracer.elf.image import Image
from tracer.elf.translator import is_translator

SOURCE = 'const char *word = "{}"; int main(void) {{ return 0; }}'


def program(folder: Path, name: str, word: str, *flags: str) -> bool:
    """Build a program that holds a word; return what is thought of it."""
    (folder / "main.c").write_text(SOURCE.format(word))
    subprocess.run(["gcc", "-o", folder / name, folder / "main.c", *flags], check=True, timeout=60)
    with Image.open(folder / name) as image:
        return is_translator(image, str(folder / name))


TOOL = ("-static", "-Wl,-Ttext-segment=0x58000000")


@pytest.mark.parametrize(
    ("name", "word", "flags", "expected"),
    [
        ("memcheck-amd64-linux", "VALGRIND_LAUNCHER", TOOL, True),
        ("memcheck-amd64-linux", "VALGRIND_LAUNCHER", ("-static",), False),
        ("memcheck-amd64-linux", "nothing", TOOL, False),
        ("valgrind.bin", "VALGRIND_LAUNCHER", (), True),
        ("valgrind-listener", "VALGRIND_LAUNCHER", (), False),
        ("qemu-x86_64", "QEMU_LD_PREFIX", (), True),
        ("qemu-x86_64-static", "QEMU_LD_PREFIX", ("-static",), True),
        ("qemu-img", "nothing", (), False),
        ("debugger", "QEMU_LD_PREFIX", (), False),
    ],
)
def test_what_is_one(tmp_path: Path, name: str, word: str, flags: tuple[str, ...], expected: bool) -> None:
    assert program(tmp_path, name, word, *flags) == expected


def test_a_word_on_the_edge_of_what_is_read_at_once(tmp_path: Path) -> None:
    program(tmp_path, "qemu-x", "QEMU_LD_PREFIX")
    data = (tmp_path / "qemu-x").read_bytes()
    start = data.index(b"QEMU_LD_PREFIX")
    head = data[:start].ljust((1 << 20) - 3, b"\0")
    assert is_translator(Image(head + data[start:]), "qemu-x")
    assert not is_translator(Image(head), "qemu-x")


def test_the_tools_of_valgrind() -> None:
    tools = ("memcheck", "callgrind", "massif", "none")
    places = (
        Path(folder) / f"{tool}-amd64-linux"
        for folder in ("/usr/libexec/valgrind", "/usr/lib/valgrind")
        for tool in tools
    )
    found = [place for place in places if place.exists()]
    if not found:
        pytest.skip("valgrind is not installed")
    for tool in found:
        with Image.open(tool) as image:
            assert is_translator(image, str(tool)), tool
