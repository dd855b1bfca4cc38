"""Compare refleak's stacks with gdb's, frame by frame, on a sample of a program's mallocs.

    compare_with_gdb.py [--stops N] [--every N] [--json] -- CMD ...

The program runs twice, without address space randomization and with the same environment: once traced, once in
gdb, which stops at a sample of its mallocs. Each stack that gdb sees there must be among those that refleak took,
each frame at the same address of the same file. With `--stops 0` only the traced run is made, and counted: how many
stacks are whole, weighted by the calls that they stand for.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    # As a script it is to compare this checkout, not what is installed; hence imports below code.
    sys.path.insert(0, str(HERE.parents[1]))

from bpf_residue import all_ids

from tracer.capture.assembly import take_snapshot
from tracer.capture.capture_options import CaptureOptions
from tracer.capture.kernel_start import open_session
from tracer.capture.launch import find_command, launch
from tracer.elf.image import Image
from tracer.elf.symbol_table import read_symbol_table
from tracer.files.cache_folder import cache_directory
from tracer.model.records import FRAME_ADDRESS_MASK, FRAME_BINARY_SHIFT, MAX_FRAMES, StackStatus
from tracer.model.snapshot import Snapshot
from tracer.pipeline.site_finder import cost_model
from tracer.probing.site_finder import SiteFinder

Stack = tuple[tuple[str, int], ...]
"""(basename of the file, link address) of each frame, leaf first."""
WHOLE = (StackStatus.COMPLETE, StackStatus.FRAME_POINTER)
ADDR_NO_RANDOMIZE = 0x0040000
PATIENCE_SECONDS = 10
DISTURBED = 3
"""Exit status where gdb cannot be asked now."""


class Disturbed(Exception):
    """Another tracer is at work, beside which gdb does not see libraries."""


@dataclass(frozen=True)
class Comparison:
    """What a comparison found. `differing`: stacks of gdb's that refleak has not, each with the nearest of its."""

    calls: int
    """Allocations traced; each stands for its stack."""
    whole: int
    """Of these, with a complete stack."""
    statuses: dict[str, int]
    lost: dict[str, int]
    sampled: int
    equal: int
    differing: list[tuple[Stack, Stack]]


def traced(command: Sequence[str]) -> Snapshot:
    """Run a command traced, its output thrown away."""
    finder = SiteFinder(cost_model(cache_directory()), references=False, heap=True, mappings=False)
    path = find_command(command[0])
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    held = launch(command, None)
    session = open_session(CaptureOptions(cache_directory(), follow=False, interpreters=False), lambda: finder)
    try:
        session.launch(held, path)
        session.run()
        return take_snapshot(session)
    finally:
        session.close()


def stacks_of(snapshot: Snapshot) -> dict[int, Stack]:
    """Return the frames of every stack by its id."""
    names = {binary.id: Path(os.path.realpath(binary.path)).name for binary in snapshot.binaries}
    return {
        number: tuple(
            (names.get(frame >> FRAME_BINARY_SHIFT, ""), frame & FRAME_ADDRESS_MASK) for frame in stack.frames
        )
        for number, stack in snapshot.stacks.items()
    }


def libc_of(snapshot: Snapshot) -> tuple[str, int]:
    """Return the path of the libc that was traced, and the link address of its malloc."""
    path = next(os.path.realpath(b.path) for b in snapshot.binaries if Path(b.path).name.startswith("libc.so"))
    with Image.open(path) as image:
        return path, read_symbol_table(image).find("malloc")[0].address


class _Places:
    """Turns file offsets into link addresses."""

    def __init__(self) -> None:
        self._images: dict[str, Image] = {}

    def of(self, frames: Sequence[tuple[str, int]]) -> Stack:
        return tuple(self._place(path, offset) for path, offset in frames[:MAX_FRAMES])

    def _place(self, path: str, offset: int) -> tuple[str, int]:
        if not path:
            return "", offset
        if path not in self._images:
            self._images[path] = Image.open(path)
        address = self._images[path].link_address_of(offset)
        assert address is not None, f"no code at {offset:#x} of {path}"
        return Path(os.path.realpath(path)).name, address


def gdb_stacks(command: Sequence[str], libc: str, malloc: int, every: int, stops: int) -> list[Stack]:
    """Return the stacks that gdb sees at every so-many-th malloc.

    Raises Disturbed where another tracer works all the time: gdb hears of libraries by a breakpoint in the loader,
    which a tracer that follows forks has probed in every process, and then gdb does not hear of them.
    """
    request: dict[str, object] = {"libc": libc, "malloc": malloc, "ignore": every - 1, "stops": stops}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        links = _link_count()
        if is_loader_probed():
            select.select([], [], [], 0.2)
            continue
        lines, complaint = _look(command, request)
        if is_loader_probed() or links != _link_count():
            continue
        assert lines and json.loads(lines[-1]) == {"exit_code": 0}, f"{lines[-1:]} {complaint}"
        places = _Places()
        return [places.of(json.loads(line)) for line in lines[:-1]]
    raise Disturbed("another tracer follows the forks of every process")


def is_loader_probed() -> bool:
    """Tell whether the loader's code differs in this process from what is in its file."""
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
        for line in maps:
            fields = line.split()
            if len(fields) == 6 and Path(fields[5]).name.startswith("ld-linux") and "x" in fields[1]:
                start, end = (int(word, 16) for word in fields[0].split("-"))
                memory.seek(start)
                with open(fields[5], "rb") as file:
                    file.seek(int(fields[2], 16))
                    return memory.read(end - start) != file.read(end - start)
    return False


def _link_count() -> int:
    """Return a number that differs when somebody has made or removed a BPF link."""
    return hash(frozenset(found for found in all_ids() if found[0] == "link"))


def _look(command: Sequence[str], request: dict[str, object]) -> tuple[list[str], str]:
    """Run gdb once; return the lines that gdb_stacks.py wrote, and what gdb complained of."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as output:
        gdb = ["gdb", "-nx", "-q", "-batch", "-x", str(HERE / "gdb_stacks.py"), "--args", *command]
        result = subprocess.run(
            gdb, env=os.environ | {"REFLEAK_GDB": json.dumps(request | {"output": output.name})},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        return Path(output.name).read_text().splitlines(), result.stderr


def nearest(stack: Stack, known: Sequence[Stack]) -> Stack:
    """Return the known stack that agrees with `stack` on most frames from the leaf."""

    def agreement(other: Stack) -> int:
        pairs = zip(stack, other, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(stack), len(other)))

    return max(known, key=agreement, default=())


def compare(command: Sequence[str], stops: int, every: int) -> Comparison:
    """Trace a command, look at it with gdb, and say where the two differ."""
    snapshot = traced(command)
    stacks = stacks_of(snapshot)
    statuses = dict.fromkeys((status.name for status in StackStatus), 0)
    for row in snapshot.totals:
        statuses[snapshot.stacks[int(row["stack"])].status.name] += int(row["made"])
    known = frozenset(stacks.values())
    seen = gdb_stacks(command, *libc_of(snapshot), every, stops) if stops else []
    differing = [stack for stack in seen if stack not in known]
    return Comparison(
        calls=sum(statuses.values()),
        whole=sum(statuses[status.name] for status in WHOLE),
        statuses={name: count for name, count in statuses.items() if count},
        lost={loss.reason: loss.count for loss in snapshot.losses},
        sampled=len(seen),
        equal=len(seen) - len(differing),
        differing=[(stack, nearest(stack, list(known))) for stack in differing],
    )


def _print(comparison: Comparison) -> None:
    print(f"{comparison.calls:,} allocations, {comparison.whole:,} with a complete stack: {comparison.statuses}")
    for reason, count in comparison.lost.items():
        print(f"lost {count:,}: {reason}")
    if comparison.sampled:
        print(f"{comparison.equal} of {comparison.sampled} stacks equal to gdb's")
    for ours, theirs in ((known, seen) for seen, known in comparison.differing):
        print("differs:")
        for depth in range(max(len(ours), len(theirs))):
            here, there = (_place(stack, depth) for stack in (theirs, ours))
            print(f"  {'=' if here == there else '!'} gdb {here:40} refleak {there}")


def _place(stack: Stack, depth: int) -> str:
    return f"{stack[depth][0]}+{stack[depth][1]:#x}" if depth < len(stack) else "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stops", type=int, default=20, help="stacks to look at with gdb (20)")
    parser.add_argument("--every", type=int, default=101, help="mallocs from one to the next (101)")
    parser.add_argument("--json", action="store_true", help="for programs to read")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    try:
        comparison = compare(arguments.command, arguments.stops, arguments.every)
    except Disturbed as error:
        print(error, file=sys.stderr)
        return DISTURBED
    os.dup2(out, 1)
    if arguments.json:
        print(json.dumps(asdict(comparison)))
    else:
        _print(comparison)
    return 0 if comparison.equal == comparison.sampled else 1


if __name__ == "__main__":
    sys.exit(main())
