"""Specs in TOML files; an error names the file and the line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tracer.errors import CannotRead, SpecInvalid
from tracer.files.plain_file import read_named
from tracer.late_patterns import late_pattern
from tracer.specs.description import DescribedFunction, DescribedType, Description
from tracer.specs.functions import MEMORY_OPERATIONS, REFERENCE_OPERATIONS, Defaults, parse_function
from tracer.specs.value_syntax import parse_class, parse_memory

_TOP = ("name", "description", "libraries", "type", "allocator")
_OF_TYPE = ("name", "counter", "class", "libraries", *REFERENCE_OPERATIONS)
_OF_ALLOCATOR = ("name", "libraries", "wraps", "memory", *MEMORY_OPERATIONS)
_LARGEST_SPEC = 1 << 24
_AT_LINE = late_pattern(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


def read_spec_file(path: Path) -> Description:
    """Read a spec; raises CannotRead, or SpecInvalid with FILE:LINE."""
    try:
        text = read_named(path, _LARGEST_SPEC).decode()
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}", "check the path after --spec") from None
    except UnicodeDecodeError:
        raise SpecInvalid(f"{path}:1: is not UTF-8 text") from None
    return parse_spec(text, str(path), path.stem)


def parse_spec(text: str, source: str, name: str) -> Description:
    """Return what the TOML `text` describes; `source` is how errors call it. Raises SpecInvalid."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        raise SpecInvalid(f"{source}:{line}: {_AT_LINE.sub('', str(error))}") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise SpecInvalid(f"{source}:1: it cannot be read: {error}") from None
    return _Reader(text, source).description(document, name)


class _Reader:
    """Checks a document, and finds the line of what is wrong: tomllib keeps no places of values."""

    def __init__(self, text: str, source: str) -> None:
        self._lines = text.splitlines()
        self._source = source
        self._from = 0
        """The line where the table begins that is being read."""

    def description(self, document: dict[str, Any], name: str) -> Description:
        self._known(document, _TOP)
        libraries = self._texts(document, "libraries")
        types: list[DescribedType] = []
        for kind, parse in (("type", self._type), ("allocator", self._allocator)):
            tables = document.get(kind, [])
            if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
                raise self._wrong(kind, f"write [[{kind}]], a table for each")
            for number, table in enumerate(tables):
                self._from = self._header(kind, number)
                types.append(parse(table, libraries))
        self._from = 0
        if not types:
            raise self._wrong("", "it has neither a [[type]] nor an [[allocator]]")
        name = self._text(document, "name") or name
        return Description(name, tuple(types), self._text(document, "description"), self._source, libraries)

    def _type(self, table: dict[str, Any], libraries: tuple[str, ...]) -> DescribedType:
        self._known(table, _OF_TYPE)
        counter = self._offset(table, "counter", "member:refcnt")
        defaults = self._defaults(table, libraries, counter, self._class(table))
        functions = self._functions(table, REFERENCE_OPERATIONS, defaults)
        return DescribedType(defaults.type_name, functions)

    def _offset(self, table: dict[str, Any], key: str, example: str) -> str:
        value = table.get(key, "")
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise self._wrong(key, f"{key} is an offset or a text such as \"{example}\"")
        return str(value)

    def _class(self, table: dict[str, Any]) -> str:
        text = self._offset(table, "class", "*8+0")
        try:
            if text:
                parse_class(text)
        except ValueError as error:
            raise self._wrong("class", str(error)) from None
        return text

    def _allocator(self, table: dict[str, Any], libraries: tuple[str, ...]) -> DescribedType:
        self._known(table, _OF_ALLOCATOR)
        wraps = table.get("wraps", False)
        if not isinstance(wraps, bool):
            raise self._wrong("wraps", "wraps is true or false")
        defaults = self._defaults(table, libraries, "")
        try:
            memory = parse_memory(self._text(table, "memory"))
        except ValueError as error:
            raise self._wrong("memory", str(error)) from None
        return DescribedType(defaults.type_name, self._functions(table, MEMORY_OPERATIONS, defaults), wraps, memory)

    def _defaults(self, table: dict[str, Any], libraries: tuple[str, ...], counter: str, class_: str = "") -> Defaults:
        name = self._text(table, "name")
        if not name:
            raise self._wrong("", "it has no name")
        return Defaults(name, counter, self._texts(table, "libraries") or libraries, class_)

    def _functions(self, table: dict[str, Any], operations: dict[str, Any], defaults: Defaults) -> tuple[
        DescribedFunction, ...
    ]:  # fmt: skip
        found = []
        for key, operation in operations.items():
            for text in self._texts(table, key):
                try:
                    found.append(parse_function(text, operation, defaults))
                except ValueError as error:
                    raise self._wrong(text, str(error)) from None
        if not found:
            raise self._wrong("", f"{defaults.type_name!r} names no function; give {', '.join(operations)}")
        return tuple(found)

    def _known(self, table: dict[str, Any], keys: tuple[str, ...]) -> None:
        for key in table:
            if key not in keys:
                raise self._wrong(key, f"there is no {key!r} here; there are {', '.join(keys)}")

    def _text(self, table: dict[str, Any], key: str) -> str:
        value = table.get(key, "")
        if not isinstance(value, str):
            raise self._wrong(key, f"{key} is a text")
        return value

    def _texts(self, table: dict[str, Any], key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self._wrong(key, f"{key} is a text or a list of texts")
        return tuple(texts)

    def _header(self, kind: str, number: int) -> int:
        header = re.compile(rf"\s*\[\[\s*[\"']?{kind}[\"']?\s*\]\]")
        lines = [index for index, line in enumerate(self._lines) if header.match(line)]
        return lines[number] if number < len(lines) else 0

    def _wrong(self, text: str, reason: str) -> SpecInvalid:
        """Return the error at the first line from the table's on that holds `text`."""
        lines = range(self._from, len(self._lines))
        at = next((index for index in lines if text and text in self._lines[index]), self._from)
        return SpecInvalid(f"{self._source}:{at + 1}: {reason}")
