"""Frames of code in no file, as the recording carries them and the symbolizer shows them."""

from __future__ import annotations

from tracer.model.frames import Frame
from tracer.model.generated import GeneratedFrame
from tracer.model.snapshot import ANONYMOUS, Binary
from tracer.symbols import symbolize

ANYWHERE, IMAGE = 0xDFFF, 0xDFFE
BINARIES = [Binary(ANYWHERE, "", kind=ANONYMOUS), Binary(IMAGE, "[jit] f", kind="jit")]


def shown(key: int, *told: GeneratedFrame) -> Frame:
    [frame] = symbolize([key], BINARIES, generated={key: told[0]} if told else {})[key]
    return frame


def test_what_a_log_told() -> None:
    key = ANYWHERE << 48 | 0x7000
    assert shown(key, GeneratedFrame("f", "a.js", 3, "JavaScript", 0x10)) == Frame(
        "f", "[jit]", file="a.js", line=3, address=0x7000, offset=0x10, kind="jit", language="JavaScript"
    )


def test_what_nobody_told() -> None:
    key = ANYWHERE << 48 | 0x7000
    assert shown(key) == Frame(None, address=0x7000, why_unknown="code in no binary")
    assert shown(5) == Frame(None, address=5, why_unknown="code in no binary")
    assert shown(key, GeneratedFrame(None, why_unknown="it was replaced")) == Frame(
        None, address=0x7000, why_unknown="it was replaced"
    )


def test_an_image_that_is_gone_keeps_the_names_of_its_symbols() -> None:
    frame = shown(IMAGE << 48 | 0x7000, GeneratedFrame("f", offset=4))
    assert (frame.function, frame.module, frame.path, frame.kind, frame.offset) == ("f", "[jit]", "[jit] f", "jit", 4)


def test_an_id_of_nothing_is_said_to_be_unknown() -> None:
    assert shown(0xDFF0 << 48 | 1).why_unknown == "binary 57328 is not known"
