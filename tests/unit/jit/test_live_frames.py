"""Call frames that a program registers while it runs: whole sections and single functions, read from its memory."""

from __future__ import annotations

import pytest
from frame_bytes import EhFrame, common
from hypothesis import given
from hypothesis import strategies as st

from tracer.cfi.unwind_rules import Rule
from tracer.cfi.unwind_table import lookup
from tracer.errors import UnsuitableTarget
from tracer.jit.live_frames import read_live_frames
from tracer.model.records import RuleKind

CODE, FRAMES = 0x7F12_3456_7000, 0x7F12_3457_0000
PUSHED = b"\x41\x0e\x10"
"""After one byte of code, CFA = rsp + 16."""


def by_stack_pointer(offset: int) -> Rule:
    return Rule(RuleKind.STACK_POINTER, offset=offset)


class Memory:
    """Memory of a process that gives at most `at_once` bytes a time."""

    def __init__(self, data: bytes, address: int = FRAMES, at_once: int = 1 << 20) -> None:
        self.data, self.address, self.at_once = data, address, at_once
        self.end = address

    def read(self, address: int, size: int) -> bytes | None:
        at = address - self.address
        if not 0 <= at < len(self.data):
            return None
        found = self.data[at : at + min(size, self.at_once)]
        self.end = max(self.end, address + len(found))
        return found


def frames() -> EhFrame:
    return EhFrame(FRAMES).common().function(CODE, 20, PUSHED).function(CODE + 32, 16).function(CODE + 0x100, 8, PUSHED)


@pytest.mark.parametrize("at_once", [1, 7, 1 << 20])
def test_a_section_up_to_its_end(at_once: int) -> None:
    memory = Memory(frames().end() + b"what comes behind it", at_once=at_once)
    found = read_live_frames(FRAMES, memory.read)
    assert found is not None and found.data == frames().end()
    assert found.code == ((CODE, CODE + 48), (CODE + 0x100, CODE + 0x108))  # 12 bytes are padding, 208 are not
    offsets = [lookup(found.table, CODE + at) for at in (0, 1, 32, 0x30, 0x101)]
    assert offsets == [
        by_stack_pointer(8), by_stack_pointer(16), by_stack_pointer(8), Rule(RuleKind.NONE),
        by_stack_pointer(16),
    ]  # fmt: skip
    if at_once == 1:
        assert memory.end == FRAMES + len(frames().end())


@pytest.mark.parametrize(("number", "start", "end"), [(0, 0, 20), (1, 32, 48), (2, 0x100, 0x108)])
def test_one_function_by_itself(number: int, start: int, end: int) -> None:
    """As LLVM registers them where libunwind is the runtime: nothing ends the record."""
    before = EhFrame(FRAMES).common()
    sizes = [len(before.data)]
    for part in ((CODE, 20, PUSHED), (CODE + 32, 16, b""), (CODE + 0x100, 8, PUSHED)):
        sizes.append(len(before.function(*part).data))
    memory = Memory(frames().data[: sizes[number + 1]])
    found = read_live_frames(FRAMES + sizes[number], memory.read)
    assert found is not None and found.code == ((CODE + start, CODE + end),)
    assert lookup(found.table, CODE + start + 1) == by_stack_pointer(8 if number == 1 else 16)


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\0",
        common() + b"\0\0\0\0",
        EhFrame(FRAMES).common(b"").function(CODE, 20).end(),  # no CFA, as LuaJIT's
    ],
    ids=["nothing", "no function", "no rule"],
)
def test_what_describes_nothing_is_none(data: bytes) -> None:
    assert read_live_frames(FRAMES, Memory(data).read) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "its call frames could not be read"),
        (frames().data, "its call frames could not be read"),
        (common() + b"\xff\xff\xff\xff" + bytes(32), "its call frames have no end"),
        (b"\x10\0\0\0\x05\0\0\0" + bytes(16), "its call frames are malformed"),
        (EhFrame(FRAMES).common().function(CODE, 1 << 29).end(), "its call frames are of impossible code"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, reason: str) -> None:
    with pytest.raises(UnsuitableTarget, match=reason):
        read_live_frames(FRAMES, Memory(data).read)


@given(st.data())
def test_changed_bytes_are_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(frames().end())
    for at in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=8)):
        changed[at] = data.draw(st.integers(0, 255))
    begin = data.draw(st.sampled_from([0, len(EhFrame(FRAMES).common().data)]))
    try:
        found = read_live_frames(FRAMES + begin, Memory(bytes(changed)).read)
    except UnsuitableTarget:
        return
    assert found is None or all(0 < start < end <= 1 << 47 for start, end in found.code)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        read_live_frames(FRAMES, Memory(data).read)
    except UnsuitableTarget as error:
        assert "call frames" in str(error)
