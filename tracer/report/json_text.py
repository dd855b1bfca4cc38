"""JSON as `json.dump(..., indent=1)` writes it, byte for byte, but as it goes along and each frame once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from json import JSONEncoder
from typing import TextIO

from tracer.model.frames import Frame

Json = Mapping[str, object]
_SCALARS = frozenset({str, int, float, bool, type(None)})
_MOST_KEPT = 1 << 16


class JsonText:
    """Writes documents of dicts, lists, strings, numbers, bools and None; and of Frames, which `of_frame` describes.

    An Iterator is written as a list, element by element, where only dicts are around it. Python's own encoder is many
    times slower as soon as it is to indent; here it writes fields without structure, all that stand together at once.
    """

    def __init__(self, of_frame: Callable[[Frame], Json]) -> None:
        self._of_frame = of_frame
        self._flat: dict[int, Callable[[object], str]] = {}
        self._known: dict[tuple[int, int], tuple[Frame, str]] = {}

    def write(self, document: Json, stream: TextIO) -> None:
        """Write one document in ASCII, ended by a newline."""
        for chunk in self._chunks(document, 0):
            stream.write(chunk)
        stream.write("\n")

    def write_line(self, document: Json, stream: TextIO) -> None:
        """Write one document on one line, for a stream of them."""
        stream.write(json.dumps(document, default=self._plain) + "\n")
        stream.flush()

    def _plain(self, value: object) -> object:
        if isinstance(value, Frame):
            return self._of_frame(value)
        if isinstance(value, Iterator):
            return list(value)
        raise TypeError(f"{type(value).__name__} has no JSON")

    def _chunks(self, value: object, level: int) -> Iterator[str]:
        """Yield the text of a value in pieces. `level`: how deep it lies."""
        pad = "\n" + " " * (level + 1)
        if isinstance(value, Mapping) and value:
            lead = "{" + pad
            for key, member in value.items():
                yield f"{lead}{_quoted(key)}: "
                yield from self._chunks(member, level + 1)
                lead = "," + pad
            yield pad[:-1] + "}"
        elif isinstance(value, Iterator):
            lead = "[" + pad
            for member in value:
                yield lead + self._text(member, level + 1)
                lead = "," + pad
            yield "[]" if lead[0] == "[" else pad[:-1] + "]"
        else:
            yield self._text(value, level)

    def _text(self, value: object, level: int) -> str:
        if isinstance(value, Mapping):
            return _enclosed("{", self._members(value, level + 1), "}", level)
        if isinstance(value, list | tuple):
            if value and isinstance(value[0], Frame):
                return _enclosed("[", [self._frame(frame, level + 1) for frame in value], "]", level)
            return _enclosed("[", [self._text(member, level + 1) for member in value], "]", level)
        if isinstance(value, Frame):
            return _enclosed("{", self._members(self._of_frame(value), level + 1), "}", level)
        return _quoted(value)

    def _members(self, members: Json, level: int) -> list[str]:
        """Return the members of a dict as text; those without structure that stand side by side are one piece."""
        pieces, flat = [], {}
        for key, value in members.items():
            if type(value) in _SCALARS:
                flat[key] = value
                continue
            if flat:
                pieces.append(self._encoder(level)(flat)[1:-1])
                flat = {}
            pieces.append(f"{_quoted(key)}: {self._text(value, level)}")
        if flat:
            pieces.append(self._encoder(level)(flat)[1:-1])
        return pieces

    def _encoder(self, level: int) -> Callable[[object], str]:
        """Return what writes a dict's members with a new line and `level` spaces between them."""
        known = self._flat.get(level)
        if known is None:
            known = self._flat[level] = JSONEncoder(separators=(",\n" + " " * level, ": ")).encode
        return known

    def _frame(self, frame: Frame, level: int) -> str:
        """Return the text of a stack's frame: kept, since most frames are of many stacks."""
        known = self._known.get((id(frame), level))
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            # The frame is kept too: while it lives, no other has its id.
            known = self._known[id(frame), level] = (frame, self._text(frame, level))
        return known[1]


_quoted = JSONEncoder().encode


def _enclosed(opening: str, members: Iterable[str], closing: str, level: int) -> str:
    pad = "\n" + " " * level
    body = f",{pad} ".join(members)
    return f"{opening}{pad} {body}{pad}{closing}" if body else opening + closing
