"""The profile of pprof: profile.proto, compressed.

Source of the format: github.com/google/pprof, proto/profile.proto; the field numbers below are its own.
"""

from __future__ import annotations

import gzip
from itertools import chain
from typing import BinaryIO

from tracer.model.findings import Findings, FrameList, Leak
from tracer.model.frames import Frame
from tracer.report.code_layout import CodeLayout, Placed, physical
from tracer.report.protobuf_wire import Message
from tracer.report.selection_words import rate
from tracer.report.weights import STACK_NOT_KEPT, process_names, reported, weight

SAMPLE_TYPES = (
    ("inuse_objects", "count"), ("inuse_space", "bytes"), ("alloc_objects", "count"), ("alloc_space", "bytes"),
    ("free_objects", "count"), ("free_space", "bytes"),
)  # fmt: skip
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = 1, 2, 3, 4, 5, 6
_NOT_KEPT = Frame(STACK_NOT_KEPT)
_DURATION, _PERIOD_TYPE, _PERIOD, _COMMENT, _DEFAULT_TYPE = 10, 11, 12, 13, 14


def write_pprof(findings: Findings, stream: BinaryIO) -> None:
    """Write what is outstanding as in use, what was freed again as freed, and both together as allocated.

    Counted objects weigh 1 and no bytes. What was freed of blocks is in `findings.freed`, if that was asked for.
    Labels: kind, type, class, state, process, pid, id, and thread where all was made by one.
    """
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as compressed:
        compressed.write(profile(findings))


def profile(findings: Findings) -> bytes:
    """Return the message `Profile`, not compressed."""
    return bytes(_Profile(findings).message.data)


def _name(frame: Frame) -> str:
    """Return the function's name, or its place in the binary: readers drop or merge what has no name."""
    return frame.function or f"{frame.module or '[unknown]'}+{frame.address:#x}"


def _values(leak: Leak) -> tuple[int, ...]:
    """Return a value for each of SAMPLE_TYPES; of blocks that were freed there are samples of their own."""
    held = weight(leak)
    ended = leak.freed or 0 if leak.kind == "reference" else 0
    return held.count, held.bytes, held.count + ended, held.bytes, ended, 0


def _labels(leak: Leak, names: dict[int, str]) -> dict[str, str | None]:
    return {
        "kind": leak.kind, "type": leak.type, "class": leak.reachability, "state": leak.state,
        "process": names.get(leak.pid), "id": leak.id,
    }  # fmt: skip


def _numbers(leak: Leak) -> dict[str, int]:
    threads = {instance.thread for instance in leak.instances}
    known = len(threads) == 1 and len(leak.instances) == leak.kept
    return {"pid": leak.pid, **({"thread": threads.pop()} if known else {})}


class _Profile:
    """A Profile and the numbers of its strings, functions, mappings and locations."""

    def __init__(self, findings: Findings) -> None:
        leaks = reported(findings)
        self.message = Message()
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[FrameList, int] = {}
        stacks = chain((leak.stack for leak in leaks), (freed.stack for freed in findings.freed))
        self._layout = CodeLayout(findings.code, {frame for stack in stacks for frame in stack})
        # Readers take the first mapping for that of the main program.
        program = findings.processes[0].executable if findings.processes else None
        ranges = sorted(self._layout.ranges, key=lambda placed: placed.path != program)
        self._mappings = {placed: number for number, placed in enumerate(ranges, start=1)}
        for kind, unit in SAMPLE_TYPES:
            self._value_type(_SAMPLE_TYPE, kind, unit)
        names = process_names(findings)
        for leak in leaks:
            self._sample(leak.stack, _values(leak), _labels(leak, names), _numbers(leak))
        for freed in findings.freed:
            self._sample(freed.stack, (0, 0, *(freed.count, freed.bytes) * 2), {}, {})
        for placed, number in self._mappings.items():
            self._mapping(number, placed)
        self.message.number(_DURATION, findings.duration_ns)
        if findings.selection.is_sampled:
            self._value_type(_PERIOD_TYPE, "space", "bytes")
            self.message.number(_PERIOD, findings.selection.sample_bytes)
        self._comment(findings)
        default = "inuse_space" if any(leak.bytes for leak in leaks) else "inuse_objects"
        self.message.number(_DEFAULT_TYPE, self._string(default))
        for text in self._strings:
            self.message.block(_STRING, text.encode("utf-8", "backslashreplace"))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _value_type(self, field: int, kind: str, unit: str) -> None:
        made = Message()
        made.number(1, self._string(kind))
        made.number(2, self._string(unit))
        self.message.block(field, made.data)

    def _sample(
        self, stack: FrameList, values: tuple[int, ...], labels: dict[str, str | None], numbers: dict[str, int]
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
            made.number(2, self._string(name))
            made.number(3, self._string(name))
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

    def _comment(self, findings: Findings) -> None:
        lost = [f"lost {loss.count}: {loss.reason}" for loss in findings.losses]
        said = ["refleak", *lost] if lost or not findings.is_whole else ["refleak: complete, nothing lost"]
        if findings.selection.is_sampled:
            said.append(f"blocks were sampled, {rate(findings.selection)}: their values are estimates")
        self.message.numbers(_COMMENT, [self._string(text) for text in said])
