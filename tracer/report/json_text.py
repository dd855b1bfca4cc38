"""JSON as `json.dump(..., indent=1)` writes it, byte for byte but for what is to be on one line; as it goes along."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from json import JSONEncoder
from typing import Any, TextIO

Json = Mapping[str, object]
_MOST_KEPT = 1 << 26
"""Characters. What is long is written again and again in a row: the same entry of one process after the other."""
_AT_ANY = -1
"""For a level: what is on one line is the same at each."""
_encoded = JSONEncoder().encode
_quoted: Callable[[Any], str] = json.encoder.encode_basestring_ascii
_PLAIN: Mapping[type, Callable[[Any], str]] = {
    str: _quoted, int: int.__repr__, float: _encoded, type(None): {None: "null"}.__getitem__,
    bool: {True: "true", False: "false"}.__getitem__,
}  # fmt: skip
"""How values are written that have no parts."""


class JsonText:
    """Writes documents of dicts, lists, strings, numbers, bools and None; and of objects that `described` says how to
    describe, by their type; of some types on one line. These, and tuples of them, do not change while one is written.

    An Iterator is written as a list, element by element, where only dicts are around it. Python's own encoder is many
    times slower as soon as it is to indent.
    """

    def __init__(
        self, described: Mapping[type, Callable[[Any], Json]], on_one_line: Collection[type] = ()
    ) -> None:  # fmt: skip
        self._described, self._on_one_line = described, on_one_line
        self._forms: dict[tuple[tuple[str, ...], int], str] = {}
        """Of dicts, by their keys and their level: where each value goes."""
        self._known: dict[tuple[int, int], tuple[object, str]] = {}
        self._known_length = 0

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
        if type(value) in self._described:
            return self._described[type(value)](value)
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
        plain = _PLAIN.get(type(value))
        if plain is not None:
            return plain(value)
        if type(value) is tuple:
            return self._tuple(value, level)
        if type(value) in self._described:
            return self._object(value, level)
        if isinstance(value, Mapping):
            return self._mapping(value, level) if value else "{}"
        if isinstance(value, list):
            pad = "\n" + " " * level
            return f"[{pad} {f',{pad} '.join(self._texts(value, level + 1))}{pad}]" if value else "[]"
        return _encoded(value)

    def _texts(self, values: Iterable[object], level: int) -> list[str]:
        plain, text = _PLAIN.get, self._text
        return [text(value, level) if (write := plain(type(value))) is None else write(value) for value in values]

    def _mapping(self, members: Json, level: int) -> str:
        names = tuple(members)
        form = self._forms.get((names, level))
        if form is None:
            pad = "\n" + " " * level
            keys = f",{pad} ".join(_quoted(name).replace("%", "%%") + ": %s" for name in names)
            form = self._forms[names, level] = f"{{{pad} {keys}{pad}}}"
        return form % tuple(self._texts(members.values(), level + 1))

    def _object(self, value: object, level: int) -> str:
        """Return the text of an object that is described: kept, since most are of many lists."""
        is_line = type(value) in self._on_one_line
        known = self._known.get((id(value), _AT_ANY if is_line else level))
        if known is not None:
            return known[1]
        described = self._described[type(value)](value)
        if is_line:
            return self._keep(value, _AT_ANY, _encoded(described))
        return self._keep(value, level, self._text(described, level))

    def _tuple(self, value: tuple[object, ...], level: int) -> str:
        """Return the text of a list: kept as it is of such objects, which stacks and holders are."""
        if not value or type(value[0]) not in self._described:
            return self._text(list(value), level)
        known = self._known.get((id(value), level))
        return self._keep(value, level, self._text(list(value), level)) if known is None else known[1]

    def _keep(self, value: object, level: int, text: str) -> str:
        if self._known_length > _MOST_KEPT:
            self._known.clear()
            self._known_length = 0
        self._known_length += len(text)
        # The object is kept too: while it lives, no other has its id.
        self._known[id(value), level] = value, text
        return text
