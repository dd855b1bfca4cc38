"""Images as JITs keep them in memory: object files with run-time addresses in their section headers, and libraries."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cfi.unwind_rules import Rule
from tracer.cfi.unwind_table import lookup
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.errors import UnsuitableTarget
from tracer.jit.jit_image import JitImage, read_jit_image
from tracer.jit.relocation import relocated
from tracer.model.records import FRAME_BINARY_SHIFT, FRAME_EXACT, RuleKind
from tracer.model.snapshot import Binary
from tracer.symbols.symbolizer import symbolize

SOURCE = """\
static __attribute__((noinline)) long *inner(long *(*f)(long), long n)
{
	volatile long room[20];

	room[0] = n;
	return f(room[0]) + n;
}

long *outer(long *(*f)(long), long n)
{
	return inner(f, n) + 1;
}
"""
TEXT, FRAMES = 0x7F12_3456_7000, 0x7F12_3456_9000
ADDRESSES = {".text": TEXT, ".eh_frame": FRAMES}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an object file; beside it what ld makes of it at the same addresses."""
    folder = tmp_path_factory.mktemp("jit")
    (folder / "code.c").write_text(SOURCE)
    flags = ["-O1", "-gdwarf-4", "-mcmodel=large", "-fcf-protection=none", "-fno-pie"]
    subprocess.run(["gcc", *flags, "-c", "-o", "code.o", "code.c"], cwd=folder, check=True)
    placed = [f"--section-start={name}={address:#x}" for name, address in ADDRESSES.items()]
    subprocess.run(["ld", "-e", "0", *placed, "-o", "linked", "code.o"], cwd=folder, check=True)
    return folder / "code.o"


def loaded(path: Path) -> bytes:
    """Return an object as a JIT has it: with the addresses of what it loaded."""
    data = bytearray(path.read_bytes())
    image = Image(bytes(data))
    for section in image.sections:
        if section.name in ADDRESSES:
            struct.pack_into("<Q", data, image.header_offset(section.index) + 16, ADDRESSES[section.name])
    return bytes(data)


def no_memory(_address: int, _size: int) -> None:
    return None


def read(data: bytes) -> JitImage:
    made = read_jit_image(data, 0x5000, no_memory, lambda start, end: TEXT <= start < end <= TEXT + 0x1000)
    assert made is not None
    return made


def contents(image: Image, name: str) -> bytes:
    section = image.section(name)
    assert section is not None
    return bytes(image.contents(section))


def test_relocated_as_the_linker_does_it(built: Path) -> None:
    image = read(loaded(built)).image
    with Image.open(built.with_name("linked")) as linked:
        for name in (".debug_line", ".debug_aranges"):
            assert contents(image, name) == contents(linked, name)
        frames = contents(image, ".eh_frame")
        assert contents(linked, ".eh_frame")[: len(frames)] == frames
        ours, theirs = read_symbol_table(image), read_symbol_table(linked)
        for function in ("inner", "outer"):
            [symbol], [expected] = ours.find(function), theirs.find(function)
            assert (symbol.address, symbol.size) == (expected.address, expected.size)


def test_its_code_and_its_unwind_rules(built: Path) -> None:
    made = read(loaded(built))
    with Image.open(built) as image:
        text = image.section(".text")
        assert text is not None
        assert made.code == ((TEXT, TEXT + text.size),)
    assert (made.bias, made.name) == (0, "[jit] inner")
    assert made.table is not None and made.table.first_link_page == TEXT >> 12
    assert lookup(made.table, TEXT) == Rule(RuleKind.STACK_POINTER, 0, 0, 8)
    in_body = [lookup(made.table, TEXT + at) for at in range(text.size)]
    assert Rule(RuleKind.NONE) not in in_body and len(set(in_body)) > 1


def test_names_and_lines(built: Path, tmp_path: Path) -> None:
    made = read(loaded(built))
    path = tmp_path / "image"
    path.write_bytes(bytes(made.image.data))
    [outer] = read_symbol_table(made.image).find("outer")
    key = 7 << FRAME_BINARY_SHIFT | FRAME_EXACT | outer.address
    binary = Binary(7, made.name, open_path=str(path), kind="jit")
    [frame] = symbolize([key], [binary])[key]
    assert (frame.function, frame.line, frame.kind, frame.module) == ("outer", 10, "jit", "[jit]")
    assert frame.file is not None and Path(frame.file).name == "code.c"


def test_frames_without_relocations_are_read_from_the_process(built: Path) -> None:
    with Image.open(built.with_name("linked")) as linked:
        live = contents(linked, ".eh_frame")
    data = bytearray(loaded(built))
    image = Image(bytes(data))
    table = image.section(".rela.eh_frame")
    frames = image.section(".eh_frame")
    assert table is not None and frames is not None
    struct.pack_into("<I", data, image.header_offset(table.index), 0)  # its name
    asked = []

    def memory(address: int, size: int) -> bytes:
        asked.append((address, size))
        return live[:size]

    made = read_jit_image(bytes(data), 0x5000, memory, lambda start, end: True)
    assert asked == [(FRAMES, frames.size)]
    assert made.table is not None and lookup(made.table, TEXT) == Rule(RuleKind.STACK_POINTER, 0, 0, 8)


def test_a_relocation_that_is_not_known_is_not_believed(built: Path) -> None:
    data = bytearray(loaded(built))
    image = Image(bytes(data))
    table = image.section(".rela.eh_frame")
    assert table is not None
    struct.pack_into("<I", data, table.file_offset + 8, 9)  # R_X86_64_GOTPCREL
    assert relocated(Image(bytes(data)))[1] == {".eh_frame"}
    assert read(bytes(data)).table is None


def test_a_program_stands_where_its_headers_say_or_where_it_was_registered(built: Path) -> None:
    data = built.with_name("linked").read_bytes()
    assert read(data).bias == 0
    library = built.with_name("library")
    subprocess.run(["ld", "-shared", "-e", "0", "-o", library, built], check=True)
    with Image.open(library) as image:
        text = image.section(".text")
        assert text is not None
        start, size = text.link_address, text.size
    base = 0x7F00_0000_0000
    at = base + start
    made = read_jit_image(library.read_bytes(), base, no_memory, lambda a, b: at <= a < b <= at + size)
    assert (made.bias, made.code) == (base, ((at, at + size),))


@pytest.mark.parametrize("data", [b"", b"rubbish", b"\x7fELF\x02\x01" + bytes(100)])
def test_no_image(data: bytes) -> None:
    with pytest.raises(UnsuitableTarget):
        read(data)


def test_an_object_of_data_only_has_nothing_to_follow(tmp_path: Path) -> None:
    (tmp_path / "d.c").write_text("int number = 7;\n")
    subprocess.run(["gcc", "-c", "d.c", "-o", "d.o"], check=True, cwd=tmp_path)
    assert read_jit_image((tmp_path / "d.o").read_bytes(), 0x5000, no_memory, lambda start, end: True) is None


def test_code_that_is_nowhere(built: Path) -> None:
    with pytest.raises(UnsuitableTarget, match="no code at an address"):
        read(built.read_bytes())
    with pytest.raises(UnsuitableTarget, match="at no address of the process"):
        read_jit_image(loaded(built), 0x5000, no_memory, lambda start, end: False)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_images(built: Path, data: st.DataObject) -> None:
    changed = bytearray(loaded(built))
    places = st.one_of(
        st.integers(0, 63), st.integers(0, len(changed) - 1),
        st.integers(len(changed) - 64 * 24, len(changed) - 1),  # section headers
    )  # fmt: skip
    for at in data.draw(st.lists(places, min_size=1, max_size=6)):
        changed[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(changed)))
    try:
        memory = b"\x14\0\0\0\0\0\0\0\x01zR\0" * 100
        made = read_jit_image(bytes(changed[: cut or None]), 0x5000, lambda _, size: memory[:size], lambda *_: True)
    except UnsuitableTarget:
        return
    assert all(start < end for start, end in made.code)
    read_symbol_table(made.image).covering(TEXT)
