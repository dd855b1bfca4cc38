"""What the kernel may have of a file that was rewritten, beside what it has now."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tracer.binaries.file_version import FileVersion
from tracer.probing.former_code import FormerCode

PUSH, ENDBR, MOVE = "55", "f30f1efa", "b801000000"
REST = "4889e54883ec1090"


@dataclass
class Binary:
    code: str
    inode: int = 1
    version: FileVersion = field(init=False)

    def __post_init__(self) -> None:
        self.version = FileVersion(1, self.inode, 100, 0, 0, b"")

    def code_at(self, file_offset: int) -> bytes:
        return bytes.fromhex(self.code)


@pytest.mark.parametrize(
    ("before", "now", "differs"),
    [
        (PUSH + REST, PUSH + REST, False),
        (PUSH + REST, PUSH + "c390909090909090", False),
        (ENDBR + PUSH, ENDBR + MOVE, False),
        (PUSH + REST, ENDBR + PUSH, True),
        (MOVE + REST, "b802000000" + REST, True),
        (PUSH, MOVE, True),
        (PUSH + REST, "", True),
        ("06" + REST, "06" + PUSH, True),  # no instruction
    ],
)
def test_the_first_instruction_counts(before: str, now: str, differs: bool) -> None:
    former = FormerCode()
    former.note(Binary(before), {0x10: bytes.fromhex(before)})  # type: ignore[arg-type]
    assert former.differing(Binary(now), [0x10, 0x20]) == ({0x10} if differs else set())  # type: ignore[arg-type]
    assert former.differing(Binary(now, inode=2), [0x10]) == set()  # type: ignore[arg-type]


def test_what_was_there_first_stays() -> None:
    former = FormerCode()
    for code in (PUSH + REST, MOVE + REST):
        former.note(Binary(code), {0x10: bytes.fromhex(code)})  # type: ignore[arg-type]
    assert former.differing(Binary(PUSH + REST), [0x10]) == set()  # type: ignore[arg-type]
    assert former.differing(Binary(MOVE + REST), [0x10]) == {0x10}  # type: ignore[arg-type]
