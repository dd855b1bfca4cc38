"""Suppressions in LeakSanitizer's syntax, and `ref:type` for counted types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from tracer.errors import SpecInvalid
from tracer.model.findings import Leak
from tracer.model.frames import Frame

_HINT = "a suppression is `leak:PATTERN` or `ref:TYPE`, one a line; `#` begins a comment"


@dataclass(frozen=True)
class Suppression:
    """One line of a suppression file.

    `leak`: the pattern is found in the function, source file or binary of any frame of the stack; `*` stands for
    anything, `^` and `$` bind it to the beginning and the end (compiler-rt's sanitizer_common, TemplateMatch).
    `ref`: the pattern is the whole name of a counted type; `*` stands for anything.
    """

    kind: str
    pattern: str
    source: str = ""
    """FILE:LINE it stands at."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.pattern}"

    def matches(self, leak: Leak) -> bool:
        if self.kind == "ref":
            return leak.kind == "reference" and self._whole.fullmatch(leak.type or "") is not None
        return any(self._found_in(frame) for frame in leak.stack)

    def _found_in(self, frame: Frame) -> bool:
        texts = (frame.function, frame.file, frame.path, frame.module)
        return any(text is not None and self._template.search(text) is not None for text in texts)

    @cached_property
    def _template(self) -> re.Pattern[str]:
        body = self.pattern.removeprefix("^").removesuffix("$")
        before = r"\A" if self.pattern.startswith("^") else ""
        after = r"\Z" if self.pattern.endswith("$") else ""
        return re.compile(before + _starred(body) + after, re.DOTALL)

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(_starred(self.pattern), re.DOTALL)


def _starred(pattern: str) -> str:
    return ".*?".join(re.escape(piece) for piece in re.split(r"\*+", pattern))


def parse_suppressions(text: str, name: str) -> tuple[Suppression, ...]:
    """Parse a suppression file's text; `name` is what errors call the file.

    Raises SpecInvalid, with file and line, for what is neither a suppression nor a comment.
    """
    found = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        kind, colon, pattern = line.partition(":")
        if not colon or kind not in ("leak", "ref"):
            raise SpecInvalid(f"{name}:{number}: not a suppression: {line[:60]!r}", _HINT)
        if not pattern.strip("^$* "):
            raise SpecInvalid(f"{name}:{number}: the pattern of `{line[:60]}` would match everything", _HINT)
        found.append(Suppression(kind, pattern.strip(), f"{name}:{number}"))
    return tuple(found)
