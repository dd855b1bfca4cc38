"""The message `Profile` of profile.proto.

Source of the format: github.com/google/pprof, proto/profile.proto; the field numbers below are its own.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from tracer.model.findings import FrameList
from tracer.model.frames import Frame
from tracer.report.code_layout import CodeLayout, Placed, physical
from tracer.report.protobuf_wire import Message
from tracer.report.weights import STACK_NOT_KEPT

_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 10, 11, 12, 13, 14
_NOT_KEPT = Frame(STACK_NOT_KEPT)


class ProfileMessage:
    """A Profile and the numbers of its strings, functions, mappings and locations; `finish` comes last."""

    def __init__(self, types: Iterable[tuple[str, str]], layout: CodeLayout, program: str | None = None) -> None:
        """`types`: name and unit of each value that samples have; `program`: the path of the main one."""
        self.message = Message()
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[FrameList, int] = {}
        self._layout = layout
        # Readers take the first mapping for that of the main program.
        ranges = sorted(layout.ranges, key=lambda placed: placed.path != program)
        self._mappings = {placed: number for number, placed in enumerate(ranges, start=1)}
        for kind, unit in types:
            self._value_type(_SAMPLE_TYPE, kind, unit)

    def duration(self, time_ns: int) -> None:
        self.message.number(_DURATION, time_ns)

    def period(self, kind: str, unit: str, value: int) -> None:
        """Say how many of a unit there are between two samples."""
        self._value_type(_PERIOD_TYPE, kind, unit)
        self.message.number(_PERIOD, value)

    def finish(self, comments: Iterable[str], default_type: str) -> None:
        """Add what the samples need, and what is said of all."""
        for placed, number in self._mappings.items():
            self._mapping(number, placed)
        self.message.numbers(_COMMENT, [self._string(text) for text in comments])
        self.message.number(_DEFAULT_TYPE, self._string(default_type))
        for text in self._strings:
            self.message.block(_STRING, text.encode("utf-8", "backslashreplace"))

    def write(self, stream: BinaryIO) -> None:
        """Write it compressed."""
        with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as compressed:
            compressed.write(bytes(self.message.data))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _value_type(self, field: int, kind: str, unit: str) -> None:
        made = Message()
        made.number(1, self._string(kind))
        made.number(2, self._string(unit))
        self.message.block(field, made.data)

    def sample(
        self, stack: FrameList, values: tuple[int, ...], labels: Mapping[str, str | None],
        numbers: Mapping[str, int],
    ) -> None:
        made = Message()
        # Readers drop a sample without a location.
        made.numbers(1, [self._location(frames) for frames in physical(stack) or [(_NOT_KEPT,)]])
        made.numbers(2, values)
        for key, value in labels.items():
            if value:
                label = Message()
                label.number(1, self._string(key))
                label.number(2, self._string(value))
                made.block(3, label.data)
        for key, number in numbers.items():
            label = Message()
            label.number(1, self._string(key))
            label.number(3, number)
            made.block(3, label.data)
        self.message.block(_SAMPLE, made.data)

    def _location(self, frames: FrameList) -> int:
        known = self._locations.get(frames)
        if known is not None:
            return known
        number = self._locations[frames] = len(self._locations) + 1
        placed = self._layout.range_of(frames[-1])
        made = Message()
        made.number(1, number)
        made.number(2, self._mappings[placed] if placed else 0)
        # Readers look at an address as it is; a return address is past the call, which may be a function's last.
        made.number(3, max(self._layout.address(frames[-1]) - 1, 0))
        for frame in frames:
            line = Message()
            line.number(1, self._function(_name(frame), frame.file or ""))
            line.number(2, frame.line or 0)
            made.block(4, line.data)
        self.message.block(_LOCATION, made.data)
        return number

    def _function(self, name: str, file: str) -> int:
        number = self._functions.get((name, file))
        if number is None:
            number = self._functions[name, file] = len(self._functions) + 1
            made = Message()
            made.number(1, number)
            # Without a system name (3), from which pprof would make names itself: of `<module>` nothing would be left.
            made.number(2, self._string(name))
            made.number(4, self._string(file))
            self.message.block(_FUNCTION, made.data)
        return number

    def _mapping(self, number: int, placed: Placed) -> None:
        """Say of each mapping that it has names: a reader that looked for more could only find a neighbour's."""
        made = Message()
        for field, value in enumerate((number, placed.start, placed.end, placed.file_offset or 0), start=1):
            made.number(field, value)
        made.number(5, self._string(placed.path))
        made.number(6, self._string(placed.build_id or ""))
        for has in (7, 8, 9, 10):
            made.number(has, 1)
        self.message.block(_MAPPING, made.data)


def _name(frame: Frame) -> str:
    """Return the function's name, or its place in the binary: readers drop or merge what has no name."""
    return frame.function or f"{frame.module or '[unknown]'}+{frame.address:#x}"
