"""The BPF programs: compiled or taken from the cache, and loaded."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from tracer.errors import ProgramRefused
from tracer.kernel import bpf
from tracer.kernel.bpf import ProgramType
from tracer.kernel.bytecode import (
    cache_key,
    compile_programs,
    placeholders,
    read_cached,
    relocate,
    write_cached,
)
from tracer.kernel.later_programs import InterpreterPrograms, LaterPrograms
from tracer.kernel.linking import OWN_STACK, Linked, link, marks
from tracer.kernel.loading import load, verify
from tracer.kernel.maps import Maps
from tracer.kernel.namespaces import own_pid_namespace
from tracer.kernel.sources import bpf_directory, source_text
from tracer.late_dataclasses import dataclass
from tracer.model import records
from tracer.model.snapshot import EVERY_KIND, Loss
from tracer.model.verified import Verified

HOLD_TURNS, HOLD_READS, _RESCHEDULE_NS = 1 << 23, 2, 200_000
"""With the size of DELAY: a thread looks each 3 us or more whether it may go on, and each 0.2 ms or more whether
another one wants its processor. The clock ends a hold; the turns, the most that the kernel allows, take 25 s."""
_AT_ONCE = 4
SLOW_SECONDS = 1.0
"""On a machine where it takes so long to load what every trace needs, 0.15 s elsewhere, what is loaded later could take
longer than a process is held."""

_TAIL_CALLED = ("unknown_free", "unwind", "dump_stack", "freed", "allocated", "mapped")
_REFERENCES = ("reference", "reference_deleted", "holder_freed")
_ON_REFERENCE = "on_reference"
"""For counted objects: few targets have any."""
_INTERPRETERS_TAIL_CALLED = ("interpreters", "interpreters_luajit", "interpreters_keep")
_TABLE = (
    "unwind", "allocated", "mapped", *_REFERENCES, "freed", "dump_stack", "unknown_free", *_INTERPRETERS_TAIL_CALLED,
)  # fmt: skip
"""What is called by its number: in the order of `enum program`."""
_ON_INTERPRETER = "on_interpreter"
_PROBES = ("on_entry", "on_return")
_DESCRIBED = ("on_call", "on_call_return")
"""For functions that specs describe: few targets have any, and a third of the verifier's time goes into these."""
_ON_WRAPPER = "on_wrapper"
"""For the library of --preload."""
_TRACEPOINTS = ("on_fork", "on_exec", "on_exit")
_HOLDS = ("on_hold", "on_mapping")
_HOLD_OF_TREE = "on_hold_of_tree"
"""on_hold once more, to be attached to perf events, which uprobe_multi programs cannot."""
_ON_UNWINDING = ("on_unwinding", "on_unwinding_held", "on_unwinding_passing")
_NAMES = (
    *_TABLE, _ON_INTERPRETER, _ON_REFERENCE, *_PROBES, *_DESCRIBED, _ON_WRAPPER,
    *_TRACEPOINTS, *_HOLDS,
    "on_mapping_passing", *_ON_UNWINDING,
)  # fmt: skip
LOADED_AT_START = (*_PROBES, *_TAIL_CALLED, *_TRACEPOINTS, *_HOLDS)
MADE_AT_START = ("LIVE", "STACKS", "GHOSTS", "FREE_SITES", "EVENTS", "ROWS", "OLDER_GHOSTS", "INHERITED_FREES")
"""Maps that every trace needs, and that it takes long to make."""
_DISPENSABLE = {*_INTERPRETERS_TAIL_CALLED, _ON_INTERPRETER, *_HOLDS}
"""Where the kernel refuses one of these, frames of interpreters or holds are missing, and the rest works."""
_TURNS = (
    "hold", "step", "part_walks", "draw", "compare_outer", "compare_stride", "compare_near", "compare_segment",
    "push_step", "outer_frame", "drop_stale", "find_call", "drop_returned", "is_within", "dump_instance", "mix_word",
    "keep_code", "find_state", "find_end", "python_frame", "leave_lua", "find_live", "lua_call", "luajit", "cut",
    "write_return", "drop_left", "find_operand", "find_ancestor", "find_around", "find_around_inherited",
    "find_held", "tell_held",
)  # fmt: skip
"""The turns of loops (bpf/turns.bpf.c)."""
_TURN_NAMES = [f"turn_{name}" for name in _TURNS]


def compiler_flags(maps: Sequence[str], offsets: Mapping[str, int]) -> list[str]:
    """Return the macros that the sources are compiled with; `maps`: the names of all, in their order."""
    macros = {
        "HOLD_TURNS": HOLD_TURNS, "HOLD_READS": HOLD_READS, "RESCHEDULE_NS": _RESCHEDULE_NS, **offsets
    }  # fmt: skip
    values = (f"-D{name}={value}" for name, value in macros.items())
    return ["-DREFLEAK_BPF=1", *values, *placeholders(maps), *marks(_TURNS)]


class ProgramCode(Mapping[str, Linked]):
    """The code of the programs by name. What it needs is linked, and its maps are made, when it is asked for."""

    def __init__(self, functions: Mapping[str, bytes], maps: Maps) -> None:
        self._functions, self._maps = functions, maps

    def __getitem__(self, name: str) -> Linked:
        linked = link(name, {**self._functions, name: OWN_STACK + self._functions[name]}, _TURN_NAMES)
        descriptors = self._maps.fds
        return replace(linked, code=relocate(linked.code, descriptors.names, descriptors))

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


def compiled(
    maps: Maps, offsets: Mapping[str, int], cache: Path, on_compile: Callable[[], None] = lambda: None
) -> ProgramCode:
    """Return the programs' code, made for these maps; from the cache where it was compiled before."""
    directory = bpf_directory()
    source = source_text(directory)
    flags = compiler_flags(maps.fds.names, offsets)
    headers = [*sorted(directory.glob("*.h")), *sorted(directory.glob("include/**/*.h"))]
    path = cache / f"programs-{cache_key(source, flags, headers)}"
    found = read_cached(path)
    if found is None:
        on_compile()
        include = directory / "include"
        found = compile_programs(
            source,
            [f"-I{include}", f"-I{directory}", "-Werror", "-Wno-macro-redefined", "-Wno-unknown-attributes", *flags],
            [*_NAMES, *_TURN_NAMES], include,
        )
        write_cached(path, found)
    return ProgramCode(found, maps)


@dataclass(frozen=True)
class ProbePrograms:
    """What probes of one kind run, by name: the kernel wants the kind to be one for all that call each other."""

    fds: Mapping[str, int]
    """Of those that every trace needs."""
    multi: bool
    """Probes go through uprobe_multi links; else through one perf event each."""
    can_hold: bool
    references: LaterPrograms
    described: LaterPrograms
    wrappers: LaterPrograms
    interpreters: InterpreterPrograms | None = None
    """None where frames of interpreters are not wanted."""

    def get(self, name: str) -> int | None:
        """Return a program, which is loaded now if it is not yet; None where it is not to be had."""
        if name == _ON_INTERPRETER:
            return self.interpreters.fds.get(name) if self.interpreters else None
        if name == _ON_REFERENCE:
            return self.references.fds[name]
        if name == _ON_WRAPPER:
            return self.wrappers.fds[name]
        if name in _DESCRIBED:
            _ = self.references.fds  # which those call
            return self.described.fds[name]
        return self.fds.get(name)

    def close(self) -> None:
        for later in (self.references, self.described, self.wrappers, self.interpreters):
            if later is not None:
                later.close()
        for fd in self.fds.values():
            os.close(fd)


class Programs:
    """The programs of a trace: its tracepoints' and its probes'."""

    def __init__(self, points: Mapping[str, int], probes: ProbePrograms) -> None:
        self._points, self.probes = points, probes

    def __getitem__(self, tracepoint: str) -> int:
        return self._points[tracepoint]

    @property
    def hold_of_tree(self) -> int | None:
        """The program of holds, for perf events; None where nobody can be held."""
        return self._points.get(_HOLD_OF_TREE) or (self.probes.get("on_hold") if self.can_hold else None)

    @property
    def can_hold(self) -> bool:
        return self.probes.can_hold

    @property
    def interpreters(self) -> InterpreterPrograms | None:
        return self.probes.interpreters

    @property
    def passed_over(self) -> int:
        """Return how many forks, execs and ends of threads the kernel did not hand over: another one was under way."""
        return sum(bpf.passed_over(self._points[name]) for name in _TRACEPOINTS)

    @property
    def losses(self) -> Iterator[Loss]:
        if count := self.passed_over:
            reason = "process event that the kernel did not hand over: it was preempted in another one"
            yield Loss(reason, count, "run it again", EVERY_KIND)

    def close(self) -> None:
        self.probes.close()
        for fd in self._points.values():
            os.close(fd)


def _load_probes(
    code: Mapping[str, Linked], maps: Maps, *, multi: bool, interpreters: bool
) -> ProbePrograms:
    load_one = partial(load, code, attach=bpf.ATTACH_UPROBE_MULTI if multi else 0)
    hold = partial(load_one, kind=ProgramType.KPROBE, sleepable=True)
    table = maps.fds["PROGRAMS"]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # those that the verifier takes longest over first
        probes = [pool.submit(load_one, name, ProgramType.KPROBE) for name in (*_PROBES, *_TAIL_CALLED)]
        unwinding = pool.submit(_load_unwinding, hold, partial(load_one, kind=ProgramType.KPROBE))
        holds = [pool.submit(hold, name) for name in _HOLDS]
    fds = {name: made.result() for name, made in zip((*_PROBES, *_TAIL_CALLED), probes, strict=True)}
    if (unwinder := unwinding.result()) is not None:
        fds[_ON_UNWINDING[0]] = unwinder
    _enter(table, {name: fds[name] for name in _TAIL_CALLED})
    references = LaterPrograms(partial(_load_with_entry, _ON_REFERENCE, _REFERENCES, load_one, table))
    described = LaterPrograms(partial(_load_described, load_one))
    wrappers = LaterPrograms(lambda: {_ON_WRAPPER: load_one(_ON_WRAPPER, ProgramType.KPROBE)})
    walkers = InterpreterPrograms(
        partial(_load_with_entry, _ON_INTERPRETER, _INTERPRETERS_TAIL_CALLED, load_one, table)
    ) if interpreters else None
    can_hold = True
    try:
        fds |= {name: made.result() for name, made in zip(_HOLDS, holds, strict=True)}
    except ProgramRefused:  # no sleepable uprobe programs before Linux 6.0: nothing can be held
        can_hold = False
        fds["on_mapping"] = load_one("on_mapping_passing", ProgramType.KPROBE)
    return ProbePrograms(fds, multi, can_hold, references, described, wrappers, walkers)


def _load_all(
    code: Mapping[str, Linked],
    maps: Maps,
    *,
    multi: bool,
    interpreters: bool,
) -> Programs:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        points = [pool.submit(load, code, name, ProgramType.RAW_TRACEPOINT) for name in _TRACEPOINTS]
        probes = _load_probes(code, maps, multi=multi, interpreters=interpreters)
    fds = {name: made.result() for name, made in zip(_TRACEPOINTS, points, strict=True)}
    if multi and probes.can_hold:
        fds[_HOLD_OF_TREE] = load(code, "on_hold", ProgramType.KPROBE, sleepable=True)
    return Programs(fds, probes)


def _load_unwinding(hold: Callable[..., int], load_one: Callable[..., int]) -> int | None:
    """A thread's stack is written by itself, where the kernel lets it, else by us while it is held; None where it
    can be neither."""
    itself, held, passing = _ON_UNWINDING
    for name, loads in ((itself, hold), (held, hold), (passing, load_one)):
        with suppress(ProgramRefused):
            return loads(name, wants_log=False)
    return None


def _load_described(load_one: Callable[[str, ProgramType], int]) -> dict[str, int]:
    with ThreadPoolExecutor(len(_DESCRIBED)) as pool:
        return dict(zip(_DESCRIBED, pool.map(lambda name: load_one(name, ProgramType.KPROBE), _DESCRIBED), strict=True))


def _load_with_entry(
    entry: str, tail_called: Sequence[str], load_one: Callable[[str, ProgramType], int], table: int
) -> dict[str, int]:
    """Load a program for probes, and those that it calls."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        loaded = pool.map(lambda name: load_one(name, ProgramType.KPROBE), (entry, *tail_called))
        fds = dict(zip((entry, *tail_called), loaded, strict=True))
    _enter(table, {name: fds[name] for name in tail_called})
    return fds


def _enter(table: int, programs: Mapping[str, int]) -> None:
    """Put programs where tail calls find them."""
    for name, fd in programs.items():
        bpf.update_element(table, _TABLE.index(name).to_bytes(4, "little"), fd.to_bytes(4, "little"))


def has_uprobe_multi() -> bool:
    """Return whether the kernel knows uprobe_multi links (Linux 6.6): a link to a folder then fails as no file."""
    return_zero = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])
    try:
        program = bpf.load_program(
            ProgramType.KPROBE, "probe_multi", return_zero, attach_type=bpf.ATTACH_UPROBE_MULTI
        )[0]
    except OSError:
        return False
    try:
        bpf.link_uprobes(program, "/", [0], [0], 0, at_return=False)
    except OSError as error:
        return error.errno == errno.EBADF
    finally:
        os.close(program)
    return False


def load_programs(
    maps: Maps, offsets: Mapping[str, int], cache: Path, *, multi: bool, interpreters: bool = True,
    on_compile: Callable[[], None] = lambda: None,
) -> Programs:
    """Load all programs.

    `offsets` are the kernel's struct offsets (btf.kernel_offsets); `interpreters`: with what walks interpreters;
    `on_compile` is called where the programs are not in the cache. The
    numbers of processes are those of this process's pid namespace.
    Raises BccMissing, ProgramRefused, NotPermitted.
    """
    with maps.being_made(MADE_AT_START):
        code = compiled(maps, _in_own_namespace(maps, offsets), cache, on_compile)
        began = time.monotonic()
        programs = _load_all(code, maps, multi=multi, interpreters=interpreters)
    if time.monotonic() - began > SLOW_SECONDS:
        _ = programs.probes.references.fds  # now, and not while somebody is held
    return programs


def verify_programs(maps: Maps, offsets: Mapping[str, int], cache: Path, *, multi: bool) -> Iterator[Verified]:
    """Show each program to the kernel's verifier; raises BccMissing, NotPermitted."""
    code = compiled(maps, _in_own_namespace(maps, offsets), cache)
    attach = bpf.ATTACH_UPROBE_MULTI if multi else 0
    for name in _NAMES:
        if name in _ON_UNWINDING:
            continue
        if name in _TRACEPOINTS:
            yield verify(code, name, ProgramType.RAW_TRACEPOINT)
        else:
            told = verify(code, name, ProgramType.KPROBE, attach, sleepable=name in _HOLDS)
            yield replace(told, is_needed=name not in _DISPENSABLE)
    yield _verified_unwinding(code, attach)


def _verified_unwinding(code: Mapping[str, Linked], attach: int) -> Verified:
    """Return the first of the programs for unwinders that the kernel takes: it is the one that will be used."""
    itself, held, passing = _ON_UNWINDING
    told = [verify(code, itself, ProgramType.KPROBE, attach, sleepable=True)]
    for name in (held, passing):
        if not told[-1].refusal:
            break
        told.append(verify(code, name, ProgramType.KPROBE, attach, sleepable=name == held))
    return replace(told[-1], is_needed=False)


def _in_own_namespace(maps: Maps, offsets: Mapping[str, int]) -> dict[str, int]:
    """Return the values that the programs are compiled with; they are told of the namespace itself in SHARED."""
    namespace = own_pid_namespace(offsets)
    maps.view("SHARED", records.SHARED, 1)["pid_namespace"] = namespace.address
    return {**offsets, "NAMESPACE_LEVEL": namespace.level}
