"""Lookup in DWARF by foreign symbolizers: llvm-symbolizer, and addr2line for what it leaves.

A tool that dies, hangs or prints nonsense is followed by the next, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tracer.late_dataclasses import dataclass
from tracer.symbols.addr2line import ask_addr2line
from tracer.symbols.llvm_symbolizer import ask_llvm_symbolizer, can_ask_about, start_llvm_symbolizer
from tracer.symbols.raw_frame import Query, RawFrame, Reply
from tracer.symbols.source import Source
from tracer.symbols.tool import TIMEOUT_S, Tool, find_tool

BATCH_BYTES = 1 << 28
"""DWARF given to one run of llvm-symbolizer, which keeps all of it in memory."""
TRIAL = 32
"""Addresses asked about to learn whether addr2line knows lines where llvm-symbolizer knows none."""
FAILURES = 3
"""After which a tool is not used any more; one that hangs gets no second chance."""

Found = dict[int, tuple[RawFrame, ...]]


@dataclass(frozen=True)
class Tools:
    """Paths of the symbolizers; None for one that is missing."""

    llvm_symbolizer: str | None
    addr2line: str | None
    timeout_s: float = TIMEOUT_S


def find_tools() -> Tools:
    return Tools(find_tool("llvm-symbolizer"), find_tool("addr2line"))


class DwarfLookup:
    """Asks the tools about addresses; `notes` collects what went wrong."""

    def __init__(self, tools: Tools) -> None:
        self.notes: list[str] = []
        self._tools = tools
        self._llvm = tools.llvm_symbolizer
        self._addr2line = tools.addr2line
        self._failures: dict[str, int] = {}
        self._started: Tool | None = None

    def begin(self, sources: Iterable[Source]) -> None:
        """Start what `ask` is going to need for these. `end` must follow."""
        if self._llvm is not None and self._started is None and any(map(_suits_llvm, sources)):
            self._started = start_llvm_symbolizer(self._llvm)

    def end(self) -> None:
        """End what was started, if nothing was asked."""
        if self._started is not None:
            self._started.end()
            self._started = None

    def ask(self, sources: Mapping[str, Source], addresses: Mapping[str, Sequence[int]]) -> dict[str, Found]:
        """Return by source what DWARF says of its `addresses`; nothing for what could not be looked up."""
        found: dict[str, Found] = {name: {} for name in sources}
        if self._llvm is None and self._addr2line is None and any(s.dwarf for s in sources.values()):
            self._note("neither llvm-symbolizer nor addr2line can be used: no source lines")
        for batch in _batches({n: s for n, s in sources.items() if _suits_llvm(s)}):
            self._ask_llvm({name: _query(sources[name], addresses[name]) for name in batch}, found)
        for name, source in sources.items():
            self._complete(source, addresses[name], found[name])
        return found

    def _complete(self, source: Source, addresses: Sequence[int], found: Found) -> None:
        """Ask addr2line about what is unanswered, and about all where it reads DWARF that the other cannot."""
        if source.dwarf_path is None:
            return
        if len(found) == len(addresses) and not _has_lines(found):
            trial: Found = {}
            self._ask_addr2line(_query(source, addresses[:: len(addresses) // TRIAL + 1]), trial)
            if not _has_lines(trial):
                return
            found.clear()
            found.update(trial)
        self._ask_addr2line(_query(source, [a for a in addresses if a not in found]), found)

    def ask_again(self, source: Source, addresses: Sequence[int]) -> Found:
        """Return what addr2line says, which heeds DWARF's names where llvm-symbolizer heeds a near symbol's."""
        found: Found = {}
        if _suits_llvm(source) and self._tools.llvm_symbolizer is not None:
            self._ask_addr2line(_query(source, addresses), found)
        return found

    def _ask_llvm(self, queries: dict[str, Query], found: dict[str, Found]) -> None:
        """Ask about a batch; where the tool fails, go on behind the binary it failed at."""
        while queries and self._llvm is not None:
            started, self._started = self._started or start_llvm_symbolizer(self._llvm), None
            reply = ask_llvm_symbolizer(started, list(queries.values()), self._tools.timeout_s)
            done = 0
            for (name, query), answers in zip(queries.items(), reply.answers, strict=True):
                found[name].update(answers)
                done += len(answers) == len(query.addresses)
            if reply.failure is None or done == len(queries):
                return
            failed_at = list(queries)[done]
            if not self._goes_on("llvm-symbolizer", reply, queries[failed_at].path):
                self._llvm = None
            queries = dict(list(queries.items())[done + 1 :])

    def _ask_addr2line(self, query: Query, found: Found) -> None:
        if self._addr2line is None or not query.addresses:
            return
        reply = ask_addr2line(self._addr2line, query, self._tools.timeout_s)
        found.update(reply.answers[0])
        if reply.failure is not None and not self._goes_on("addr2line", reply, query.path):
            self._addr2line = None

    def _goes_on(self, tool: str, reply: Reply, path: str) -> bool:
        self._note(f"{tool} {reply.failure} on {path}")
        self._failures[tool] = self._failures.get(tool, 0) + 1
        return not reply.timed_out and self._failures[tool] < FAILURES

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _suits_llvm(source: Source) -> bool:
    """llvm-symbolizer does not follow .gnu_debugaltlink."""
    path = source.dwarf_path
    return path is not None and not source.shares_dwarf and can_ask_about(path)


def _query(source: Source, addresses: Sequence[int]) -> Query:
    return Query(source.dwarf_path or "", tuple(addresses))


def _has_lines(found: Found) -> bool:
    return any(frame.line is not None for frames in found.values() for frame in frames)


def _batches(sources: Mapping[str, Source]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for name, source in sources.items():
        if batch and size + source.dwarf_bytes > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += source.dwarf_bytes
    if batch:
        yield batch
