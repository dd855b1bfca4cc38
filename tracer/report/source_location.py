"""Source locations of entries: what tools that annotate code need."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote

from tracer.late_dataclasses import dataclass
from tracer.model.findings import FrameList, Leak
from tracer.model.frames import Frame


@dataclass(frozen=True)
class SourceLocation:
    path: str
    """As the compiler wrote it, or below the source root."""
    line: int | None
    relative: bool

    @property
    def uri(self) -> str:
        """RFC 3986; `file:` for an absolute path."""
        quoted = quote(self.path, safe="/", errors="surrogateescape")
        return quoted if self.relative else f"file://{quoted}"


def source_place(frame: Frame, root: str | None) -> SourceLocation | None:
    """Return a frame's place, relative to `root` (an absolute directory) if it lies below; None without a file."""
    if not frame.file:
        return None
    path = PurePosixPath(frame.file)
    if ".." in path.parts:
        path = PurePosixPath(_without_parents(path))
    if path.is_absolute() and root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return SourceLocation(str(path), frame.line, not path.is_absolute())


def _without_parents(path: PurePosixPath) -> str:
    """Take `a/../` out, as lexically as compilers put it in; one that leads out of a relative path stays."""
    kept: list[str] = []
    for part in path.parts:
        if part == ".." and kept and kept[-1] not in ("..", "/"):
            kept.pop()
        elif part != ".." or not path.is_absolute():
            kept.append(part)
    return str(PurePosixPath(*kept))


def main_frame(leak: Leak) -> Frame | None:
    """Return the frame at which a developer starts to read: the first own one, or else the first with a file."""
    if leak.own_frame is not None and leak.own_frame < len(leak.stack):
        return leak.stack[leak.own_frame]
    return first_named(leak.callers or leak.stack)


def first_named(stack: FrameList) -> Frame | None:
    """Return the first frame with a file, or else with a function, or else the first."""
    with_file = next((frame for frame in stack if frame.file is not None), None)
    with_name = next((frame for frame in stack if frame.function is not None), None)
    return with_file or with_name or next(iter(stack), None)
