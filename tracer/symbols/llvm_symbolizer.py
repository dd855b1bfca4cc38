"""llvm-symbolizer, asked about all binaries in one run.

Output: one JSON object per input line since LLVM 13 (llvm-symbolizer(1), --output-style=JSON).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tracer.symbols.raw_frame import Query, RawFrame, Reply
from tracer.symbols.tool import TIMEOUT_S, Tool

ARGUMENTS = ("--output-style=JSON", "--no-demangle", "--inlines", "--functions=linkage")


def start_llvm_symbolizer(path: str) -> Tool:
    """Start it: it takes a tenth of a second to load."""
    return Tool([path, *ARGUMENTS])


def ask_llvm_symbolizer(tool: Tool, queries: Sequence[Query], timeout_s: float = TIMEOUT_S) -> Reply:
    """Return what a tool that was started knows of every address; a failure leaves the later queries unanswered."""
    lines = [f"CODE {_quoted(query.path)} {address:#x}\n" for query in queries for address in query.addresses]
    output = tool.answer("".join(lines), timeout_s)
    reply = parse_llvm_symbolizer(output.text, queries)
    return Reply(reply.answers, output.failure or reply.failure, output.timed_out)


def can_ask_about(path: str) -> bool:
    """Tell whether a path fits into one quoted word of an input line."""
    return "\n" not in path and not ('"' in path and "'" in path)


def _quoted(path: str) -> str:
    return f"'{path}'" if '"' in path else f'"{path}"'


def parse_llvm_symbolizer(text: str, queries: Sequence[Query]) -> Reply:
    """Read the answers; each must name the address asked for, in order, or reading stops there."""
    lines = iter(text.split("\n"))
    answers: list[dict[int, tuple[RawFrame, ...]]] = [{} for _ in queries]
    for answer, query in zip(answers, queries, strict=True):
        for address in query.addresses:
            frames = _frames(next(lines, ""), address)
            if frames is None:
                return Reply(tuple(answers), "printed what is no answer")
            answer[address] = frames
    return Reply(tuple(answers))


def _frames(line: str, address: int) -> tuple[RawFrame, ...] | None:
    try:
        answer = json.loads(line)
        if _number(answer["Address"]) != address:
            return None
        return tuple(_frame(symbol) for symbol in answer.get("Symbol", ()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _frame(symbol: dict[str, object]) -> RawFrame:
    """Without a line, the file may be only that of the nearest symbol."""
    line = symbol.get("Line")
    known_line = line if isinstance(line, int) and line > 0 else None
    return RawFrame(
        _known(symbol.get("FunctionName")),
        _known(symbol.get("FileName")) if known_line is not None else None,
        known_line,
        _number(symbol.get("StartAddress")),
    )


def _known(text: object) -> str | None:
    return text if isinstance(text, str) and text not in ("", "??", "<invalid>") else None


def _number(text: object) -> int | None:
    return int(text, 16) if isinstance(text, str) and text else None
