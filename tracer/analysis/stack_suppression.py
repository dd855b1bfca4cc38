"""Suppressions of a way through the stack, in valgrind's syntax (Valgrind manual, section 2.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from tracer.analysis.glob import LONGEST, Glob
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.c_library_names import BELOW_MAIN, STARTS
from tracer.model.findings import BAD_FREES, ErrorFinding, FrameList, Leak
from tracer.model.frames import Frame

ELLIPSIS = "..."
LEAK, FREE = "Memcheck:Leak", "Memcheck:Free"
_ALLOCATOR = late_pattern(r"\*al(loc|ign)\*|_Zn\*|_Zn[wa]\w+|operator new.*|([mc]|re|aligned_)alloc|(posix_)?memalign")
_NEW_PATTERN, _NEW = late_pattern(r"_Zn(\*$|[wa])|operator new\b"), late_pattern(r"_Zn[wa]|operator new\b")
"""valgrind replaces each operator new by its own; libstdc++'s operator new[] jumps to the other and leaves no frame."""
_RELEASE = late_pattern(r"\*|\*?(free|realloc)\*?|_Zd\S*|operator delete.*")
FRAME_KINDS = ("fun", "obj", "src")


@dataclass(frozen=True)
class FrameLine:
    """`fun:`, `obj:` or `src:` with a pattern in which `*` and `?` stand for anything; kind "..." is any frames."""

    kind: str
    pattern: str = ""
    written: str | None = None
    """How the programmer wrote the function that the pattern calls as it is linked; None where it does not."""

    def matches(self, frame: Frame) -> bool:
        if self.written is not None and frame.function == self.written:
            return True
        if self.kind == "fun" and _NEW_PATTERN.match(self.pattern) and _NEW.match(frame.function or ""):
            return True
        if self.kind == "fun" and self.pattern == BELOW_MAIN:
            return frame.function in STARTS
        if self.kind == "fun":
            texts: tuple[str | None, ...] = (frame.function,)
        elif self.kind == "obj":
            texts = (frame.path, frame.module)
        else:
            texts = (frame.file, None if frame.file is None else f"{frame.file}:{frame.line}")
        return any(self._glob.matches(text or "") for text in texts)

    @property
    def is_allocator(self) -> bool:
        return self.kind == "fun" and _ALLOCATOR.fullmatch(self.pattern) is not None

    @property
    def is_release(self) -> bool:
        return self.kind == "fun" and _RELEASE.fullmatch(self.pattern) is not None

    @cached_property
    def _glob(self) -> Glob:
        return Glob(self.pattern, one=True)


@dataclass(frozen=True)
class StackSuppression:
    """A block of a suppression file: matches stacks that begin, at the leaf, with its lines.

    The first line may name an allocator, or what frees, that the stack does not, or the caller of what made it.
    """

    name: str
    lines: tuple[FrameLine, ...]
    source: str = ""
    """FILE:LINE it stands at."""
    of_frees: bool = False
    """Whether it is for frees that break a rule, else for leaks."""

    def __str__(self) -> str:
        return self.name

    def matches(self, leak: Leak) -> bool:
        places = {0, int(leak.maker is not None)}  # those without what made it too
        if self.of_frees:
            return False
        return self._lead_through(self.lines, leak.stack, places, may_skip=self.lines[0].is_allocator)

    def matches_error(self, error: ErrorFinding) -> bool:
        if not self.of_frees or error.kind not in BAD_FREES:
            return False
        may_skip = self.lines[0].is_release
        lines = self.lines[1:] if may_skip and self.lines[0].pattern == "*" else self.lines  # what frees is no frame
        return self._lead_through(lines, error.stack, {0}, may_skip=may_skip and lines is self.lines)

    @staticmethod
    def _lead_through(lines: Sequence[FrameLine], stack: FrameList, places: set[int], *, may_skip: bool) -> bool:
        """Follow all ways through the stack at once, so that many `...` cost no more than one."""
        for index, line in enumerate(lines):
            if line.kind == ELLIPSIS:
                places = set(range(min(places), len(stack) + 1))
            else:
                passed = {p + 1 for p in places if p < len(stack) and line.matches(stack[p])}
                places = passed | places if index == 0 and may_skip else passed
            if not places:
                return False
        return True


def parse_block(lines: list[str], source: str) -> StackSuppression | None:
    """Parse the lines between the braces; None for a suppression of something else than a leak or a free.

    Raises ValueError with what is wrong.
    """
    if len(lines) < 2 or ":" not in lines[1]:
        raise ValueError("a block has a name, then `Memcheck:Leak` or `Memcheck:Free`, then the stack")
    if lines[1] not in (LEAK, FREE):
        return None
    frames = tuple(_frames(lines[2:]))
    if not any(line.pattern.strip("*?") for line in frames):
        raise ValueError(f"the stack of `{lines[0][:60]}` would match everything")
    return StackSuppression(lines[0], frames, source, of_frees=lines[1] == FREE)


def _frames(lines: list[str]) -> Iterator[FrameLine]:
    for line in lines:
        kind, colon, pattern = line.partition(":")
        if line == ELLIPSIS:
            yield FrameLine(ELLIPSIS)
        elif len(pattern) > LONGEST:
            raise ValueError(f"a pattern has more than {LONGEST:,} characters")
        elif colon and kind in FRAME_KINDS and pattern:
            yield FrameLine(kind, pattern)
        elif kind != "match-leak-kinds":
            raise ValueError(f"not a line of a stack: {line[:60]!r}")
