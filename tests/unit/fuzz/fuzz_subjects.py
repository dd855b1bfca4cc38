"""What is fuzzed: each reader of foreign bytes, with a good input to damage."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from built_program import build, run
from full_snapshot import full_snapshot
from mutations import mutated, mutated_text

from tracer.analysis.analysis import analyse
from tracer.analysis.suppression import parse_suppressions
from tracer.binaries.open_binaries import Binaries
from tracer.binaries.start_up import start_up_binaries
from tracer.cfi.fde_index import FrameIndex
from tracer.cfi.unwind_table import build_table, build_table_from_memory
from tracer.cli.main import main
from tracer.dwarf.data_entries import read_entries
from tracer.dwarf.data_types import DataTypes
from tracer.dwarf.debug_facts import read_debug_facts
from tracer.dwarf.stack_variables import StackVariables
from tracer.elf.debug_files import read_debug_link
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.interpreters.code import read_code
from tracer.interpreters.lua.layout import lua_version
from tracer.interpreters.python.layout import python_layout
from tracer.jit.code_log import CodeLog, GeneratedFunction
from tracer.jit.jit_image import read_jit_image
from tracer.jit.jitdump import CodeLoaded, JitdumpReader
from tracer.jit.live_frames import read_live_frames
from tracer.jit.perf_map import PerfMapReader
from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot
from tracer.probing.site_finder import SiteFinder
from tracer.recording.chunks import Chunk, encode_chunk, file_header, read_payload, scan_chunks
from tracer.recording.reader import read_recording
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter
from tracer.report.formats import FORMATS, ReportOptions, write_to_file
from tracer.report.json_reader import read_json
from tracer.report.json_report import write_json
from tracer.sites.costs import default_costs
from tracer.specs.catalogue import Catalogue
from tracer.specs.files import parse_spec
from tracer.specs.presets import preset_names, preset_path
from tracer.symbols.frame_registers import FrameRegisters

SOURCE = """
#include <stdlib.h>
struct refcount { int count; };
struct conn { char *name; struct refcount refs; };
static inline __attribute__((always_inline)) void conn_ref(struct conn *c) { c->refs.count++; }
__attribute__((noinline)) struct conn *conn_new(void) { return calloc(1, sizeof(struct conn)); }
__attribute__((noinline)) void conn_put(struct conn *c) { if (!--c->refs.count) free(c); }
int main(int argc, char **argv) {
	struct conn *c = conn_new();
	for (int i = 0; i < argc; i++) conn_ref(c);
	conn_put(c);
	return c == (struct conn *)argv;
}
"""
SPEC = """
[[type]]
name = "conn"
counter = "member:refs"
create = "conn_new"
get = "conn_ref"
put = "conn_put"
"""


@dataclass(frozen=True)
class Subject:
    """`damaged` gives the input of a seed; `read` may raise nothing but a RefleakError."""

    name: str
    damaged: Callable[[int], bytes]
    read: Callable[[bytes], object]


def folder() -> Path:
    return Path(_folder().name)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def written(data: bytes, name: str = "input") -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


@cache
def program(*flags: str) -> bytes:
    path = build(folder(), SOURCE, "-g", "-O2", *flags)
    return path.read_bytes()


@cache
def stripped() -> bytes:
    """Return a small program: most changes hit its headers and unwind tables."""
    program("-Wl,-z,noseparate-code")
    run("strip", "-o", folder() / "stripped", folder() / "program")
    return (folder() / "stripped").read_bytes()


def read_elf(data: bytes) -> None:
    image = Image(data, "damaged")
    _ = (image.sections, image.build_id, image.interpreter, image.needed, image.soname, read_debug_link(image))
    table = read_symbol_table(image)
    for address in (image.entry, 0, (1 << 64) - 1):
        table.covering(address)
        table.object_covering(address)
        image.link_address_of(address)
        image.file_offset_of(address)
    table.matching("*")
    build_table(image)
    lua_version(image.data)
    with contextlib.closing(Binaries()) as binaries:
        start_up_binaries(binaries, str(written(data)), "damaged")


@cache
def finder() -> SiteFinder:
    described = parse_spec(SPEC, "spec", "spec")
    return SiteFinder(
        default_costs(), references=True, heap=True, mappings=True, catalogue=Catalogue((described,)), interpreters=True
    )


def read_dwarf(data: bytes) -> None:
    image = Image(data, "damaged")
    read_debug_facts(image)
    variables = StackVariables(image, DataTypes(image, read_entries), 6, FrameRegisters(image))
    for address in range(0x1000, 0x2000, 0x40):
        variables.at(address, -24)
    finder().find(image)


@cache
def frames() -> tuple[bytes, int]:
    image = Image(program())
    section = image.section(".eh_frame")
    assert section is not None
    return bytes(image.contents(section)), section.link_address


def read_frames(data: bytes) -> None:
    address = frames()[1]
    build_table_from_memory(data, address)
    read_live_frames(address, lambda at, size: data[at - address : at - address + size] if at >= address else None)
    image = Image(program()[:64] + data, "damaged")
    FrameIndex(image).find(address)


@cache
def jit_object() -> bytes:
    (folder() / "jit.c").write_text(SOURCE)
    run("gcc", "-c", "-O1", "-g", "-o", folder() / "jit.o", folder() / "jit.c")
    data = bytearray((folder() / "jit.o").read_bytes())
    image = Image(bytes(data))
    for section in image.sections:  # as a JIT leaves them: with addresses
        if section.flags & 2:
            struct.pack_into("<Q", data, image.header_offset(section.index) + 16, 0x10000 * (section.index + 1))
    return bytes(data)


def read_jit(data: bytes) -> None:
    def memory(address: int, size: int) -> bytes:
        return bytes(min(size, 1 << 20))

    read_jit_image(data, 0x100000, memory, lambda a, b: True)


def read_perf_map(data: bytes) -> None:
    log, reader = CodeLog(), PerfMapReader()
    for at in range(0, len(data), 4096):
        for line in reader.feed(data[at : at + 4096]):
            log.add(GeneratedFunction(line.start, line.start + line.size, line.name, at, at + 1))
    for address in (0, 0x1000, 0x7F0000000000):
        log.find(address, 0, 1 << 40)


def perf_map() -> bytes:
    draw = random.Random(1)
    lines = [f"{0x1000 + draw.randrange(1 << 16):x} {draw.randrange(1, 4096):x} LazyCompile:~f{i} a.js:{i}:1"
             for i in range(400)]  # fmt: skip
    return "\n".join([*lines, "1000 fffffff big", "7f0000000000 10 far", ""]).encode()


def jitdump() -> bytes:
    out = struct.pack("<4sIIIIIQQ", b"DTiJ", 1, 40, 62, 0, 1, 0, 0)
    for i in range(50):
        places = struct.pack("<QQ", 0x1000 * i, 2) + b"".join(
            struct.pack("<QII", 0x1000 * i + 4 * n, n, 0) + (b"file.c\0" if n else b"\xff\0") for n in range(2)
        )
        load = struct.pack("<IIQQQQ", 1, 1, 0, 0x1000 * (i + 1), 16, i) + b"name\0" + bytes(16)
        move = struct.pack("<IIQQQQQ", 1, 1, 0, 0x1000 * (i + 1), 0x1000 * (i + 2), 16, i)
        for number, body in ((2, places), (0, load), (1, move)):
            out += struct.pack("<IIQ", number, 16 + len(body), i) + body
    return out


def read_jitdump(data: bytes) -> None:
    log, reader = CodeLog(), JitdumpReader()
    for at in range(0, len(data), 1000):
        for event in reader.feed(data[at : at + 1000]):
            if isinstance(event, CodeLoaded):
                log.add(GeneratedFunction(event.start, event.start + event.size, event.name, 0, 1, event.places))


@cache
def recording() -> bytes:
    path = folder() / "good.refleak"
    writer = RecordingWriter(path, Info(), force=True)
    writer.write_snapshot(*full_snapshot())
    writer.close()
    return path.read_bytes()


@cache
def chunks() -> tuple[tuple[Chunk, bytes], ...]:
    with io.BytesIO(recording()) as file:
        file.seek(len(file_header()))
        found = scan_chunks(file, len(recording()), "good").chunks
        return tuple((chunk, read_payload(file, chunk, "good")) for chunk in found)


def damaged_recording(seed: int) -> bytes:
    """Return a recording with a damaged file, or one or two chunks of which are damaged under right checksums."""
    if seed % 8 == 0:
        return mutated(recording(), seed)
    draw = random.Random(seed)
    hit = {draw.randrange(len(chunks())) for _ in range(2)}
    out = file_header()
    for number, (chunk, payload) in enumerate(chunks()):
        assert chunk.type is not None
        change = mutated_text if payload[:1] in (b"{", b"[") and seed % 2 else mutated
        out += encode_chunk(chunk.type, change(payload, seed) if number in hit else payload)
    return out


def report(snapshot: Snapshot, symbols: Symbols) -> None:
    findings = analyse(snapshot, symbols)
    for format_ in FORMATS:
        write_to_file(format_, findings, io.BytesIO(), ReportOptions())


def read_damaged_recording(data: bytes) -> None:
    check_command(["report", str(written(data, "input.refleak")), "--format", "html"])
    found = read_recording(written(data, "input.refleak"))
    report(found.snapshot, found.symbols or {})


@cache
def json_report() -> bytes:
    stream = io.StringIO()
    write_json(analyse(*full_snapshot()), stream)
    return stream.getvalue().encode()


def damaged_json(seed: int) -> bytes:
    """Return a report with other values in some places, or other bytes."""
    if seed % 4 == 0:
        return mutated_text(json_report(), seed)
    draw = random.Random(seed)
    document = json.loads(json_report())
    for _ in range(draw.randint(1, 6)):
        owner = document
        while True:
            keys = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
            if not keys:
                break
            key = draw.choice(keys)
            if not isinstance(owner[key], dict | list) or not owner[key] or draw.randrange(4) == 0:
                owner[key] = draw.choice([None, 0, -1, 1 << 70, "", "x\x1b\n", [], {}, True, 1e308, [[]], "\ud800"])
                break
            owner = owner[key]
    return json.dumps(document).encode()


def read_damaged_json(data: bytes) -> None:
    read_json(data, "damaged")
    other = written(json_report(), "good.json")
    check_command(["diff", str(written(data, "input.json")), str(other)])


def damaged_spec(seed: int) -> bytes:
    good = [SPEC.encode(), *(preset_path(name).read_bytes() for name in preset_names())]
    return mutated_text(good[seed % len(good)], seed)


def read_spec(data: bytes) -> None:
    described = parse_spec(data.decode("utf-8", "replace"), "spec", "spec")
    fuzzed = SiteFinder(default_costs(), references=True, heap=False, mappings=False, catalogue=Catalogue((described,)))
    fuzzed.find(Image(program(), "program"))


SUPPRESSIONS = b"""# comment
leak:^conn_new$
leak:con*ne*w
ref:dso*
{
   name
   Memcheck:Leak
   match-leak-kinds: all
   fun:*alloc*
   ...
   fun:ma?n
   obj:*/lib*
}
"""


def read_suppressions(data: bytes) -> None:
    rules = parse_suppressions(data.decode("utf-8", "replace"), "rules")
    for leak in analyse(*full_snapshot()).leaks:
        for rule in rules:
            rule.matches(leak)


WORDS = (
    "report", "diff", "probes", "discover", "specs", "doctor", "--exec", "--format", "json", "html", "nonsense", "-o",
    "--suppressions", "--spec", "--type", "conn:create=conn_new,get=conn_ref,put=conn_put", "--fail-on", "bytes>1K",
    "leaks,errors", "--top", "-1", "99999999999999999999", "--sample-bytes", "--older", "5m", "--preset", "auto",
    "--debug-dir", "/dev/null", "/dev/zero", "/dev/full", "/", "/proc/self/mem", "", "--", "-p", "0", "--tree",
    "--gen-suppressions", "lsan", "--no-demangle", "GOOD", "SPEC", "PROGRAM", "FIFO", "\x1b[2J", "\n", "\udcff",
    "a" * 5000, "--min-size", "1e9", "0x10", "--source-root", "--baseline", "--error-exitcode", "256", "--allocator",
    "*", "{", "=",
)  # fmt: skip


def command_line(seed: int) -> bytes:
    draw = random.Random(seed)
    first = draw.choice(("report", "diff", "probes", "discover", "specs", "report", "discover", "probes"))
    words = [first, *(draw.choice(WORDS) for _ in range(draw.randint(0, 7)))]
    if draw.randrange(4) == 0:
        at = draw.randrange(len(words))
        changed = os.fsdecode(mutated(os.fsencode(words[at]) or b"-", seed))
        words[at] = changed.replace("\0", "").lstrip("/")  # no file is made outside the folder
    return json.dumps(words).encode()


def read_command_line(data: bytes) -> None:
    pipe = folder() / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    files = {"GOOD": recording, "SPEC": SPEC.encode, "PROGRAM": program}
    words = []
    for word in json.loads(data):
        if word in files:
            word = str(written(files[word](), f"{word}.refleak" if word == "GOOD" else word))
        words.append(str(pipe) if word == "FIFO" else word)
    if words[0] not in ("report", "diff", "probes", "discover", "specs"):
        words.insert(0, "report")  # nothing is ever traced
    with contextlib.chdir(folder()):
        check_command(words)


def check_command(words: list[str]) -> None:
    """Run a command; it may fail, in a few short lines, but not by itself."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    status = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(words)
        except SystemExit as end:  # --help and --version
            status = int(end.code or 0)
    err.flush()
    said = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert status != 70 and "Traceback" not in said, said
    assert status == 0 or said.count("\n") <= 4, said
    assert max(map(len, said.splitlines()), default=0) < 800, said


def of_text(good: Callable[[], bytes]) -> Callable[[int], bytes]:
    return lambda seed: mutated_text(good(), seed)


def of_bytes(good: Callable[[], bytes]) -> Callable[[int], bytes]:
    return lambda seed: mutated(good(), seed)


SUBJECTS = (
    Subject("elf", of_bytes(stripped), read_elf),
    Subject("elf-with-symbols", of_bytes(program), read_elf),
    Subject("dwarf", of_bytes(program), read_dwarf),
    Subject("dwarf-4", of_bytes(partial(program, "-gdwarf-4")), read_dwarf),
    Subject("compressed-dwarf", of_bytes(partial(program, "-gz")), read_dwarf),
    Subject("unwind", lambda seed: mutated(frames()[0], seed), read_frames),
    Subject("jit-image", of_bytes(jit_object), read_jit),
    Subject("perf-map", of_text(perf_map), read_perf_map),
    Subject("jitdump", of_bytes(jitdump), read_jitdump),
    Subject("recording", damaged_recording, read_damaged_recording),
    Subject("json-report", damaged_json, read_damaged_json),
    Subject("spec", damaged_spec, read_spec),
    Subject("suppressions", of_text(lambda: SUPPRESSIONS), read_suppressions),
    Subject("command-line", command_line, read_command_line),
    Subject("script", lambda seed: bytes(random.Random(seed).randbytes(4096)), read_code),
    Subject("python", lambda seed: random.Random(seed).randbytes(4096),
            lambda data: python_layout(int.from_bytes(data[:4], "little"), data, ())),
)  # fmt: skip
