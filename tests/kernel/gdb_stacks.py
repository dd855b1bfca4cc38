"""Runs inside gdb: stop at every so-many-th malloc of the program and write its physical frames.

    gdb -batch -x gdb_stacks.py --args CMD ...

In the environment: REFLEAK_GDB is a JSON object of `libc` (its path), `malloc` (link address), `ignore` (mallocs
passed over before each stop), `stops` and `output` (a file: one JSON line a stop, and
a last one with the program's exit code).
"""

import json
import os
import struct

import gdb

AT_ENTRY = 9
NESTED = {"realloc", "calloc", "reallocarray", "__libc_realloc", "__libc_calloc", "__GI___libc_realloc"}
"""Callers of malloc that are allocation functions themselves: the outer call is the one that counts."""


def mappings(pid):
    """Return (start, end, file offset, path) of each mapping of a file."""
    found = []
    with open(f"/proc/{pid}/maps") as lines:
        for line in lines:
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[5].startswith("/"):
                start, end = (int(word, 16) for word in fields[0].split("-"))
                found.append((start, end, int(fields[2], 16), fields[5].strip()))
    return found


def entry_of(pid):
    with open(f"/proc/{pid}/auxv", "rb") as file:
        return dict(struct.iter_unpack("<QQ", file.read()))[AT_ENTRY]


def physical_frames():
    """Return [path, file offset] of each frame above malloc; None where malloc was called by a relative."""
    known = mappings(gdb.selected_inferior().pid)
    frames, frame = [], gdb.newest_frame().older()
    if frame is not None and frame.name() in NESTED:
        return None
    while frame is not None:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            pc = frame.pc()
            place = next(((path, pc - start + at) for start, end, at, path in known if start <= pc < end), ("", pc))
            frames.append(place)
        frame = frame.older()
    return frames


def main(libc, malloc, ignore, stops, output):
    for command in (
        "set pagination off", "set confirm off", "set debuginfod enabled off", "set auto-load off",
        "set backtrace past-main on", "set backtrace past-entry on", "set backtrace limit 1000",
        "handle all nostop noprint pass", "unset environment LINES", "unset environment COLUMNS",
        "unset environment REFLEAK_GDB", "starti",
    ):  # fmt: skip
        gdb.execute(command, to_string=True)
    pid = gdb.selected_inferior().pid
    gdb.Breakpoint(f"*{entry_of(pid):#x}", internal=True, temporary=True)
    gdb.execute("continue", to_string=True)
    base = next(start for start, _, at, path in mappings(pid) if at == 0 and os.path.realpath(path) == libc)
    stop = gdb.Breakpoint(f"*{base + malloc:#x}", internal=True)
    ended = []
    gdb.events.exited.connect(lambda event: ended.append(getattr(event, "exit_code", None)))
    with open(output, "w") as file:
        for _ in range(stops):
            stop.ignore_count = ignore
            gdb.execute("continue", to_string=True)
            if gdb.selected_inferior().pid == 0:
                break
            frames = physical_frames()
            if frames is not None:
                file.write(json.dumps(frames) + "\n")
        file.write(json.dumps({"exit_code": ended[0] if ended else 0}) + "\n")
    if gdb.selected_inferior().pid:
        gdb.execute("kill", to_string=True)


main(**json.loads(os.environ["REFLEAK_GDB"]))
