"""addr2line of binutils, asked about one binary per run.

Output with -a -f -i: the address, then function and file:line of each frame, innermost first (addr2line(1)).
"""

from __future__ import annotations

import re
from dataclasses import replace

from tracer.late_patterns import late_pattern
from tracer.symbols.raw_frame import Query, RawFrame, Reply
from tracer.symbols.tool import TIMEOUT_S, run_tool

_ADDRESS = late_pattern(r"0x([0-9a-f]+)")
_PLACE = late_pattern(r"(.*):(\d{1,9}|\?)(?: \(discriminator \d+\))?", re.ASCII)


def ask_addr2line(tool: str, query: Query, timeout_s: float = TIMEOUT_S) -> Reply:
    """Return what `tool` knows of every address.

    Its function name may be that of a mere neighbour (the nearest symbol, whatever its size): verify it.
    """
    text = "".join(f"{address:#x}\n" for address in query.addresses)
    output = run_tool([tool, "-a", "-f", "-i", "-e", query.path], text, timeout_s)
    reply = parse_addr2line(output.text, query, whole=output.failure is None)
    return Reply(reply.answers, output.failure or reply.failure, output.timed_out)


def parse_addr2line(text: str, query: Query, whole: bool = True) -> Reply:
    """Read the answers; each must name the address asked for, in order, or reading stops there.

    Where the text is not `whole`, its last answer may lack frames and is left out.
    """
    answers: dict[int, tuple[RawFrame, ...]] = {}
    groups = _groups(text.split("\n"))
    if not whole:
        del groups[-1:]
    for address, (stated, lines) in zip(query.addresses, groups, strict=False):
        if stated != address or not lines or len(lines) % 2:
            break
        pairs = zip(lines[::2], lines[1::2], strict=True)
        answers[address] = _without_guess(tuple(_frame(function, place) for function, place in pairs))
    failure = None if len(answers) == len(query.addresses) else "printed what is no answer"
    return Reply((answers,), failure)


def _groups(lines: list[str]) -> list[tuple[int, list[str]]]:
    groups: list[tuple[int, list[str]]] = []
    for line in lines:
        match = _ADDRESS.fullmatch(line)
        if match:
            groups.append((int(match[1], 16), []))
        elif groups and line:
            groups[-1][1].append(line)
    return groups


def _frame(function: str, place: str) -> RawFrame:
    """Without a line, the file is only that of the nearest symbol."""
    match = _PLACE.fullmatch(place)
    line = int(match[2]) if match and match[2].isdecimal() else 0
    return RawFrame(
        None if function in ("", "??") else function,
        match[1] if match and line and match[1] != "??" else None,
        line or None,
    )


def _without_guess(frames: tuple[RawFrame, ...]) -> tuple[RawFrame, ...]:
    """Drop the name of the innermost inlined frame where it is that of the function around it.

    Where a C++ function has no linkage name, addr2line 2.40 names its first frame by the nearest symbol.
    """
    if len(frames) < 2 or frames[0].function != frames[-1].function or (frames[0].file or "").endswith(".c"):
        return frames
    return (replace(frames[0], function=None), *frames[1:])
