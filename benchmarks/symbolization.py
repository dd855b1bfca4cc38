"""Names for many addresses of one library."""

from __future__ import annotations

import random
import time
from pathlib import Path

from benchmarks.programs import Programs
from benchmarks.samples import Samples, text_of_ratio
from benchmarks.settings import Settings
from benchmarks.tables import Results, Table
from tracer.elf.image import PF_X, PT_LOAD, Image
from tracer.model.records import FRAME_BINARY_SHIFT
from tracer.model.snapshot import Binary
from tracer.symbols.symbolizer import Symbolizer

_ADDRESSES = 10_000
_SUBJECTS = ("libLLVM-*.so.1", "libpython3.*.so.1.0", "libc.so.6")
_FOLDER = Path("/usr/lib/x86_64-linux-gnu")


def symbolization(_programs: Programs, settings: Settings) -> Results:
    """Measure how long the names of 10,000 distinct addresses take, all of one library."""
    count, lines, slowest = settings.count(_ADDRESSES, 100), [], Samples()
    for subject in (path for pattern in _SUBJECTS for path in sorted(_FOLDER.glob(pattern))[:1]):
        seconds, named = Samples(), 0
        with Image.open(subject) as image:
            binary = Binary(1, str(subject), image.build_id, str(subject), False)
            keys = _addresses(image, count)
        for index in range(settings.rounds):
            began = time.perf_counter()
            frames = Symbolizer().symbolize(keys, [binary])
            seconds.by_round[index] = time.perf_counter() - began
            named = sum(frame[0].function is not None for frame in frames.values())
        lines.append([subject.name, f"{count:,}", f"{named:,}", text_of_ratio(seconds)])
        if not slowest or seconds.median > slowest.median:
            slowest = seconds
    header = ["library", "addresses", "with a name", "seconds"]
    return Results([Table("Names for addresses at random", header, lines)], {"symbolization": slowest})


def _addresses(image: Image, count: int) -> list[int]:
    text = next(s for s in image.segments if s.type == PT_LOAD and s.flags & PF_X)
    last = text.link_address + text.memory_size - 1
    distinct = random.Random(1).sample(range(text.link_address, last), min(count, last - text.link_address))
    return [1 << FRAME_BINARY_SHIFT | address for address in distinct]
