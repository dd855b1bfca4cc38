"""The BPF programs: compiled or taken from the cache, and loaded."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tracer.capture import kernel
from tracer.capture.bytecode import (
    cache_key,
    compile_programs,
    placeholders,
    read_cached,
    relocate,
    write_cached,
)
from tracer.capture.guest_programs import GuestPrograms
from tracer.capture.kernel import ProgramType
from tracer.capture.maps import CALLS_BYTES, DELAY_BYTES, GUEST_BYTES, PAGE_COUNT, ROW_COUNT, THREAD_BYTES, Maps
from tracer.errors import NotPermitted, ProgramRefused

FRAMES_PER_PROGRAM = (32, 8)
"""Frames walked in one program, tail calls do the rest. All 127 in one load too, but take 0.3 s to verify."""
HOLD_TURNS, HOLD_READS = 4000, 20
"""With DELAY_BYTES: a thread is held for 5 to 6 s at most, and looks each 1.4 ms whether it may go on."""
WORD_TURNS, WORD_READS = 4000, 4
"""Of a thread that unwinds: it waits for 1.1 s at most, and looks each 0.3 ms."""
_AT_ONCE = 4

_HEADERS = (
    "abi.h", "maps.bpf.h", "locations.bpf.h", "draws.h", "threads.bpf.h", "memos.bpf.h", "tables.bpf.h", "code.h",
    "tails.bpf.h", "unwind.bpf.h", "stacks.bpf.h", "guests.bpf.h", "python.bpf.h", "lua.bpf.h", "luajit.bpf.h",
    "events.bpf.h", "programs.bpf.h", "selection.bpf.h", "allocations.bpf.h", "calls.bpf.h",
)
_SOURCES = ("allocations.bpf.c", "references.bpf.c", "calls.bpf.c", "probes.bpf.c", "copies.bpf.c", "guests.bpf.c",
            "lifecycle.bpf.c", "mappings.bpf.c", "unwinders.bpf.c")  # fmt: skip
_TAIL_CALLED = ("unwind", "allocated", "mapped", "reference", "reference_deleted", "freed", "copy_stack")
_GUEST_TAIL_CALLED = ("guest", "guest_luajit", "guest_keep")
"""Together in the order of `enum program`."""
_ON_GUEST = "on_guest"
_PROBES = ("on_entry", "on_return", "on_call", "on_call_return")
_TRACEPOINTS = ("on_fork", "on_exec", "on_exit")
_HOLDS = ("on_hold", "on_mapping")
_ON_UNWINDING = ("on_unwinding", "on_unwinding_held", "on_unwinding_passing")
_NAMES = (
    *_TAIL_CALLED, *_GUEST_TAIL_CALLED, _ON_GUEST, *_PROBES, *_TRACEPOINTS, *_HOLDS, "on_mapping_passing",
    *_ON_UNWINDING,
)  # fmt: skip


def bpf_directory() -> Path:
    """Return where the BPF sources are: in the checkout, or installed beside the package."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "bpf"
    return installed if installed.is_dir() else package.parent / "bpf"


def _source(directory: Path) -> str:
    lines = ["#include <uapi/linux/ptrace.h>", "#define REFLEAK_BPF 1"]
    lines += [f'#include "{name}"' for name in _HEADERS]
    for name in _SOURCES:
        lines += [f'#line 1 "{name}"', (directory / name).read_text()]
    return "\n".join(lines)


def compiled(maps: Maps, offsets: Mapping[str, int], frames: int, cache: Path) -> dict[str, bytes]:
    """Return the programs' code by name, made for these maps; from the cache where it was compiled before."""
    directory = bpf_directory()
    source = _source(directory)
    macros = {
        "ROW_COUNT": ROW_COUNT, "PAGE_COUNT": PAGE_COUNT, "THREAD_BYTES": THREAD_BYTES, "DELAY_BYTES": DELAY_BYTES,
        "CALLS_BYTES": CALLS_BYTES, "GUEST_BYTES": GUEST_BYTES, "HOLD_TURNS": HOLD_TURNS, "HOLD_READS": HOLD_READS,
        "WORD_TURNS": WORD_TURNS, "WORD_READS": WORD_READS,
        "FRAMES_PER_PROGRAM": frames, **offsets,
    }
    flags = [*(f"-D{name}={value}" for name, value in macros.items()), *placeholders(list(maps.fds))]
    headers = [directory / name for name in _HEADERS] + sorted(directory.glob("include/**/*.h"))
    path = cache / f"programs-{cache_key(source, flags, headers)}"
    found = read_cached(path)
    if found is None:
        include = directory / "include"
        found = compile_programs(
            source,
            [f"-I{include}", f"-I{directory}", "-Werror", "-Wno-macro-redefined", "-Wno-unknown-attributes", *flags],
            _NAMES, include,
        )
        write_cached(path, found)
    return {name: relocate(code, list(maps.fds.values())) for name, code in found.items()}


@dataclass(frozen=True)
class Programs:
    """File descriptors of the loaded programs by name."""

    fds: Mapping[str, int]
    multi: bool
    """Probes go through uprobe_multi links; else through one perf event each."""
    can_hold: bool
    guests: GuestPrograms | None = None
    """None where frames of interpreters are not wanted."""

    def get(self, name: str) -> int | None:
        """Return a program, or None where it is not to be had."""
        if name == _ON_GUEST:
            return self.guests.fds.get(name) if self.guests else None
        return self.fds.get(name)

    def __getitem__(self, name: str) -> int:
        return self.fds[name]


def _load(code: Mapping[str, bytes], name: str, kind: ProgramType, attach: int = 0, *, sleepable: bool = False) -> int:
    try:
        return kernel.load_program(kind, name, code[name], attach_type=attach, sleepable=sleepable)[0]
    except PermissionError:
        if os.geteuid() != 0:
            raise NotPermitted("loading BPF programs is not permitted") from None
    except OSError:
        pass  # once more, for the verifier's log
    try:
        return kernel.load_program(
            kind, name, code[name], attach_type=attach, sleepable=sleepable, log_bytes=1 << 24
        )[0]
    except OSError as error:
        log = str(error.filename or "")
        last = " | ".join(log.strip().splitlines()[-3:])
        raise ProgramRefused(f"the kernel refused the BPF program {name} ({error.strerror}): {last}", log) from None


def _load_all(code: Mapping[str, bytes], maps: Maps, multi: bool, guests: bool) -> Programs:
    load = partial(_load, code, attach=kernel.ATTACH_UPROBE_MULTI if multi else 0)
    hold = partial(load, kind=ProgramType.KPROBE, sleepable=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # those that the verifier takes longest over first
        holds = [pool.submit(hold, name) for name in _HOLDS]
        probes = [pool.submit(load, name, ProgramType.KPROBE) for name in (*_PROBES, *_TAIL_CALLED)]
        points = [pool.submit(_load, code, name, ProgramType.RAW_TRACEPOINT) for name in _TRACEPOINTS]
        unwinding = pool.submit(_load_unwinding, hold, partial(load, kind=ProgramType.KPROBE))
    fds = {name: made.result() for name, made in zip((*_PROBES, *_TAIL_CALLED), probes, strict=True)}
    if (unwinder := unwinding.result()) is not None:
        fds[_ON_UNWINDING[0]] = unwinder
    fds |= {name: made.result() for name, made in zip(_TRACEPOINTS, points, strict=True)}
    _enter(maps, _TAIL_CALLED, fds)
    later = GuestPrograms(partial(_load_guests, load, maps)) if guests else None
    try:
        fds |= {name: made.result() for name, made in zip(_HOLDS, holds, strict=True)}
    except ProgramRefused:  # no sleepable uprobe programs before Linux 6.0: nothing can be held
        fds["on_mapping"] = load("on_mapping_passing", ProgramType.KPROBE)
        return Programs(fds, multi, can_hold=False, guests=later)
    return Programs(fds, multi, can_hold=True, guests=later)


def _load_unwinding(hold: Callable[[str], int], load: Callable[[str], int]) -> int | None:
    """A thread's stack is written by itself, where the kernel lets it, else by us while it is held; None where it
    can be neither."""
    itself, held, passing = _ON_UNWINDING
    for name, loads in ((itself, hold), (held, hold), (passing, load)):
        with suppress(ProgramRefused):
            return loads(name)
    return None


def _load_guests(load: Callable[[str, ProgramType], int], maps: Maps) -> dict[str, int]:
    fds = {name: load(name, ProgramType.KPROBE) for name in (*_GUEST_TAIL_CALLED, _ON_GUEST)}
    _enter(maps, _GUEST_TAIL_CALLED, fds, len(_TAIL_CALLED))
    return fds


def _enter(maps: Maps, names: Sequence[str], programs: Mapping[str, int], first: int = 0) -> None:
    """Put programs where tail calls find them."""
    for index, name in enumerate(names, start=first):
        key, value = index.to_bytes(4, "little"), programs[name].to_bytes(4, "little")
        kernel.update_element(maps.fds["PROGRAMS"], key, value)


def has_uprobe_multi() -> bool:
    """Return whether the kernel knows uprobe_multi links (Linux 6.6): a link to a folder then fails as no file."""
    return_zero = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])
    try:
        program = kernel.load_program(
            ProgramType.KPROBE, "probe_multi", return_zero, attach_type=kernel.ATTACH_UPROBE_MULTI
        )[0]
    except OSError:
        return False
    try:
        kernel.link_uprobes(program, "/", [0], [0], 0, at_return=False)
    except OSError as error:
        return error.errno == errno.EBADF
    finally:
        os.close(program)
    return False


def load_programs(
    maps: Maps, offsets: Mapping[str, int], cache: Path, *, multi: bool, guests: bool = True
) -> Programs:
    """Load all programs, walking as many frames in one as the verifier accepts.

    `offsets` are the kernel's struct offsets (btf.kernel_offsets); `guests`: with what walks interpreters.
    Raises BccMissing, ProgramRefused, NotPermitted.
    """
    refusal: ProgramRefused | None = None
    for frames in FRAMES_PER_PROGRAM:
        try:
            return _load_all(compiled(maps, offsets, frames, cache), maps, multi, guests)
        except ProgramRefused as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal
