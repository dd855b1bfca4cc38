"""A page of text: lines of styled spans, made safe for the terminal and the stream as they are written."""

from __future__ import annotations

import os
import shutil
import textwrap
from dataclasses import field
from typing import TextIO

from tracer.late_dataclasses import dataclass

PIPED_WIDTH = 80
_CODES = {"bold": "1", "dim": "2", "bad": "1;31", "good": "1;32", "warn": "1;33"}


@dataclass(frozen=True)
class Span:
    text: str
    style: str = ""
    """A key of the styles, or empty."""


Text = str | Span


@dataclass
class Page:
    width: int = PIPED_WIDTH
    lines: list[tuple[Span, ...]] = field(default_factory=list)

    def line(self, *texts: Text) -> None:
        self.lines.append(tuple(t if isinstance(t, Span) else Span(t) for t in texts if t))

    def blank(self) -> None:
        """Add an empty line, unless the page begins or already has one here."""
        if self.lines and self.lines[-1]:
            self.lines.append(())

    def paragraph(self, text: str, indent: str = "", first: str | None = None) -> None:
        """Add text wrapped to the width; words longer than that stand alone and whole."""
        wrapped = textwrap.wrap(
            text, self.width, initial_indent=indent if first is None else first, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        for line in wrapped:
            self.line(line)

    def heading(self, text: str, style: str = "bold", indent: str = "    ", first: str = "") -> None:
        """Add text in one style, wrapped to the width."""
        at = len(self.lines)
        self.paragraph(text, indent, first)
        self.lines[at:] = [tuple(Span(span.text, style) for span in line) for line in self.lines[at:]]

    def ends(self, left: str, right: str) -> None:
        """Add a line with text at both ends; where it is too narrow, the right one ends the line after the left one."""
        if len(left) + 2 + len(right) > self.width:
            indent = " " * (len(left) - len(left.lstrip(" ")))
            self.paragraph(left.strip(" "), indent + "  ", indent)
            left = ""
        self.line(left, " " * max(2, self.width - len(left) - len(right)), Span(right, "dim"))

    def write(self, stream: TextIO, color: bool | None) -> None:
        """Write all lines, in colours or not, or as the stream says."""
        color = stream_color(stream) if color is None else color
        encoding = getattr(stream, "encoding", None) or "utf-8"
        for line in self.lines:
            text = "".join(_painted(span, encoding, color) for span in line)
            stream.write(text.rstrip(" ") + "\n")


def _painted(span: Span, encoding: str, color: bool) -> str:
    """Escape what could command a terminal or does not fit the stream's encoding: names are the target's to choose."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in span.text)
    if not _fits("\N{PLUS-MINUS SIGN}", encoding):
        safe = safe.replace("\N{PLUS-MINUS SIGN}", "+-")
    safe = safe.encode(encoding, "backslashreplace").decode(encoding)
    return f"\033[{_CODES[span.style]}m{safe}\033[0m" if color and span.style else safe


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def page_for(stream: TextIO, width: int | None) -> Page:
    """Return an empty page, as wide as the stream where no width is given."""
    return Page(stream_width(stream) if width is None else width)


def stream_width(stream: TextIO) -> int:
    """Return the terminal's width, or 80 where the stream is no terminal."""
    return max(40, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns) if _is_terminal(stream) else PIPED_WIDTH


def stream_color(stream: TextIO) -> bool:
    """Tell whether to colour: a terminal that is not dumb, and NO_COLOR (https://no-color.org) is not set."""
    return _is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _is_terminal(stream: TextIO) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())
