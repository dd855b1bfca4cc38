"""The live view as text for a terminal of a given size."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import field

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from tracer.late_dataclasses import dataclass
from tracer.model.findings import INDIRECT, POSSIBLE, REACHABLE, STACK_ONLY
from tracer.model.top import TopRow, TopSample
from tracer.report.amounts import counted, duration, size
from tracer.report.class_words import CLASSES
from tracer.report.entry_sentence import error_sentence, fitted_place, stack_text
from tracer.report.names import innermost
from tracer.report.top_held import HELD_SORTS, held_lines, held_words, looked, reached_lines

SORTS = ("bytes", "count", "growth", "since mark")
ENTRIES, TYPES, DETAILS, ERRORS, HELD, HELP = "entries", "types", "details", "errors", "held", "help"
_BARS = " ▁▂▃▄▅▆▇█"
_HEAD = 6
"""Lines above the rows."""
_KEYS = "q quit  ? help  enter stack  s sort  l look  h held  t types  e errors  m mark  p pause"
_HELP = (
    ("up, down, k, j", "select an entry, or scroll"), ("page up, page down", "ten at a time"),
    ("enter", "the whole stack of the entry, and who holds it"), ("escape", "back to the entries"),
    ("s", f"sort by the next of {', '.join(SORTS)}"),
    ("l", "look into the memory: what is lost, who holds the rest; the target stands meanwhile"),
    ("h", "what holds memory, and what that grew by since the look before; s sorts by that"),
    ("t", "counted types"), ("e", "broken rules, with their stacks"),
    ("m", "set a mark: \"since mark\" counts what is newer"), ("p", "pause the view; the target runs on"),
    ("?", "this help"), ("q", "end the trace and write the report"),
)  # fmt: skip
_MADE_IN, _HELD_BY = "made in", "held by"
_OF_WIDTH: tuple[tuple[int, tuple[str, ...]], ...] = (
    (120, (*SORTS, "trend", _HELD_BY)), (80, (*SORTS, "trend")), (60, ("bytes", "count", "growth")),
    (0, ("bytes", "count")),
)  # fmt: skip
"""From so many columns on these are shown, and what is sorted by; the rest is for the function."""
_CLASS = "memory is"
"""Shown in place of the trend or the count, where the memory was looked into and there is no room for its holders."""
_SHORT_CLASSES = {INDIRECT: "lost too", POSSIBLE: "possibly", REACHABLE: "held", STACK_ONLY: "on stack"}
_TYPES_OF_WIDTH: tuple[tuple[int, tuple[str, ...]], ...] = (
    (70, ("alive", "created", "gets", "puts", "destroyed")), (0, ("alive", "created")),
)  # fmt: skip


@dataclass
class TopState:
    """What is shown, and how."""

    title: str
    samples: list[TopSample] = field(default_factory=list)
    view: str = ENTRIES
    sort: str = SORTS[0]
    selected: str | None = None
    """Id of an entry; None for the first."""
    held_sort: str = HELD_SORTS[0]
    """Of the view of what holds memory."""
    scroll: int = 0
    """Of a view that is longer than the screen: lines above it."""
    paused: bool = False
    looking: bool = False
    """The memory is being looked into."""

    @property
    def last(self) -> TopSample:
        return self.samples[-1] if self.samples else TopSample(0)

    def rows(self) -> list[TopRow]:
        """Return the entries in the order that is chosen."""
        keys = {
            "bytes": lambda row: (row.bytes or 0, row.count),
            "count": lambda row: (row.count, row.bytes or 0),
            "growth": lambda row: (row.bytes_per_second, row.count_per_second),
            "since mark": lambda row: (row.bytes_since_mark, row.count_since_mark),
        }
        return sorted(self.last.rows, key=keys[self.sort], reverse=True)

    def index(self) -> int:
        return next((i for i, row in enumerate(self.rows()) if row.id == self.selected), 0)

    def move(self, by: int) -> None:
        """Select another entry, or scroll."""
        if self.view in (DETAILS, ERRORS, HELD, HELP):
            self.scroll = max(0, self.scroll + by)
            return
        rows = self.rows()
        if rows:
            self.selected = rows[min(max(self.index() + by, 0), len(rows) - 1)].id

    def sort_by_next(self) -> None:
        """Sort by the next column: of what holds memory in its view, else of the entries."""
        if self.view == HELD:
            self.held_sort = HELD_SORTS[(HELD_SORTS.index(self.held_sort) + 1) % len(HELD_SORTS)]
        else:
            self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]


def render(state: TopState, width: int, height: int, *, color: bool = True) -> str:
    """Return the screen: at most `height` lines of at most `width` columns, with the terminal's codes for colour."""
    lines = [*_head(state, width), *_body(state, width, max(1, height - _HEAD - 1))]
    lines = lines[: height - 1]
    lines += [Text()] * (height - 1 - len(lines))
    status = "paused  " if state.paused else ""
    lines.append(Text(status + _KEYS, style="reverse"))
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=color, legacy_windows=False, highlight=False,
        color_system="standard" if color else None, emoji=False, markup=False,
    )  # fmt: skip
    out = []
    for line in lines:
        line.plain = _safe(line.plain)
        line.truncate(width, overflow="ellipsis")
        with console.capture() as captured:
            console.print(line, end="", soft_wrap=True)
        out.append(captured.get())
    return "\n".join(out)


def _safe(text: str) -> str:
    """Replace what could command a terminal, one for one: names are the target's to choose."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _head(state: TopState, width: int) -> list[Text]:
    now = state.last
    before = state.samples[-2] if len(state.samples) > 1 else now
    seconds = (now.time_ns - before.time_ns) / 1e9
    rate = (now.bytes - before.bytes) / seconds if seconds > 0 else 0.0
    blocks = f"{size(now.bytes)} in {counted(now.blocks, 'block')}"
    objects = f", {counted(now.objects, 'object')}" if now.objects else ""
    growth = f"{'+' if rate >= 0 else '-'}{size(abs(round(rate)))}/s"
    mark = "no mark yet" if now.mark_ns is None else f"marked at {duration(now.mark_ns)}"
    lost = f"  {now.lost:,} lost" if now.lost else ""
    total = [sample.bytes for sample in state.samples]
    count = [sample.blocks + sample.objects for sample in state.samples]
    parts = [_broken_rules(now), Text("looking into the memory ..." if state.looking else looked(now))]
    if state.looking or state.view == HELD:  # what is waited for comes first
        parts.reverse()
    return [
        Text(f"refleak top  {state.title}", style="bold"),
        Text(f"{duration(now.time_ns)}: {blocks}{objects}, {growth}; {mark}{lost}"),
        Text(f"bytes    {sparkline(total, width - 10)}", style="cyan"),
        Text(f"objects  {sparkline(count, width - 10)}", style="cyan"),
        Text("; ").join(part for part in parts if part),
    ]


def _broken_rules(now: TopSample) -> Text:
    """Return a line on the errors, blank without one."""
    if not now.errors:
        return Text()
    more = f" and {len(now.errors) - 1:,} more" if len(now.errors) > 1 else ""
    count = counted(sum(error.count for error in now.errors), "error")
    return Text(f"{count}: {error_sentence(now.errors[0])}{more}", style="red")


def sparkline(values: Sequence[int], width: int) -> str:
    """Return one bar for each of the last `width` values, from nothing to the largest of them."""
    shown = list(values)[-max(1, width) :]
    most = max(shown, default=0)
    return "".join(_BARS[(value * 8 + most - 1) // most] if most else _BARS[0] for value in shown)


def _body(state: TopState, width: int, room: int) -> list[Text]:
    if state.view == TYPES:
        return _types(state, width, room)
    if state.view == DETAILS:
        return _details(state, room)
    if state.view == ERRORS:
        return _errors(state, room)
    if state.view == HELD:
        return _scrolled(state, [Text(line) for line in held_lines(state.last, state.held_sort, width)], room)
    if state.view == HELP:
        return _help(state, width, room)
    return _entries(state, width, room)


def _entries(state: TopState, width: int, room: int) -> list[Text]:
    shown = next(names for least, names in _OF_WIDTH if width >= least)
    if state.last.look is not None and _HELD_BY not in shown:
        shown = (*(name for name in shown if name not in ("trend", "count" if width < 60 else "")), _CLASS)
    shown = shown if state.sort in shown else (*shown, state.sort)
    head = _head_line(shown, state.sort)
    apart = (width - cell_len(head)) // 2 if _HELD_BY in shown and state.last.look is not None else 0
    rows, at = state.rows(), state.index()
    first = max(0, min(at - room // 2, len(rows) - room))
    lines = [Text(f"{head}{'':{apart}}{_HELD_BY if apart else ''}", style="bold")]
    for index, row in enumerate(rows[first : first + room], start=first):
        text = _row(row, shown, width, apart + len(_MADE_IN) if apart else 0)
        lines.append(Text(_fitted(text, width), style="reverse" if index == at else ""))
    return lines if rows else [*lines, Text("  nothing is outstanding")]


_WIDTHS = {"bytes": 10, "count": 9, "growth": 11, "since mark": 12, "trend": 9, _CLASS: 10}


def _head_line(shown: Sequence[str], sort: str) -> str:
    names = {name: "per s" if name == "growth" else name for name in SORTS}
    heads = (f"{names[name] + '*' * (name == sort):>{_WIDTHS[name]}}" for name in shown if name in SORTS)
    words = "".join(f"{name:<{_WIDTHS[name]}}" for name in ("trend", _CLASS) if name in shown)
    return f"{''.join(heads)}  {words}{_MADE_IN}"


def _row(row: TopRow, shown: Sequence[str], width: int, place_width: int) -> str:
    """Return a line of the list. `place_width`: columns for where it was made, before who holds it; 0: this is not
    shown."""
    of = ""
    if row.kind == "reference":
        amount, growth, since = "", f"{row.count_per_second:+,.1f}", f"{row.count_since_mark:,}"
        of = f"{row.type} from "
    else:
        amount, since = _short(row.bytes or 0), _short(row.bytes_since_mark)
        growth = f"{'+' if row.bytes_per_second >= 0 else '-'}{_short(abs(round(row.bytes_per_second)))}"
    texts = {"bytes": amount, "count": f"{row.count:,}", "growth": growth, "since mark": since}
    cells = "".join(f"{texts[name]:>{_WIDTHS[name]}}" for name in shown if name in SORTS)
    words = {"trend": row.word or "", _CLASS: _short_class(row)}
    lead = f"{cells}  {''.join(f'{words[name]:<{_WIDTHS[name]}}' for name in words if name in shown)}"
    room = place_width - 2 if place_width else width - len(lead)
    place = of + fitted_place(row.stack[row.own_frame or 0] if row.stack else None, room - len(of))
    return f"{lead}{_cut(place, room)}  {held_words(row)}" if place_width else f"{lead}{place}"


def _short_class(row: TopRow) -> str:
    word = row.classes[0][0] if row.classes else None
    return "" if word is None else _SHORT_CLASSES.get(word, CLASSES[word])


def _cut(text: str, width: int) -> str:
    """Return a text of just this width."""
    return set_cell_size(text, width) if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _short(size_bytes: int) -> str:
    return f"{size_bytes} B" if size_bytes < 1024 else size(size_bytes)


def _fitted(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) < width else text


def _types(state: TopState, width: int, room: int) -> list[Text]:
    shown = next(names for least, names in _TYPES_OF_WIDTH if width >= least)
    lines = [Text(f"{''.join(f'{name:>11}' for name in shown)}  type", style="bold")]
    for row in state.last.types[:room]:
        numbers = row.outstanding, row.created, row.gets, row.puts, row.destroyed
        cells = "".join(f"{number:>11,}" for number in numbers[: len(shown)])
        lines.append(Text(f"{cells}  {innermost(row.type, width - len(cells) - 2)}"))
    return lines if len(lines) > 1 else [*lines, Text("  no counted object was made")]


def _details(state: TopState, room: int) -> list[Text]:
    rows = state.rows()
    if not rows:
        return [Text("nothing is outstanding")]
    row = rows[state.index()]
    nouns = ("mapping", "mappings") if row.kind == "mapping" else ("block", "blocks")
    amount = f"{counted(row.count, *nouns)}, {size(row.bytes or 0)} by {row.type}"
    what = f"{row.count:,} x {row.type}" if row.kind == "reference" else amount
    lines = [Text(f"  {line}") for line in [*stack_text(row.stack), *reached_lines(row, state.last.look)]]
    head = Text(f"id {row.id}: {what}{f', {row.word}' if row.word else ''}", style="bold")
    return [head, *_scrolled(state, lines, room)]


def _errors(state: TopState, room: int) -> list[Text]:
    """Return each error with its stacks: the offending call, the release, the birth."""
    lines = []
    for error in state.last.errors:
        lines.append(Text(f"{error_sentence(error)}, pid {error.pid}", style="bold"))
        stacks = ("", error.stack), ("  released at", error.released_at), ("  made at", error.created_at)
        for what, stack in stacks:
            if stack is not None:
                lines += [Text(line) for line in filter(None, (what, *(f"    {line}" for line in stack_text(stack))))]
    return _scrolled(state, lines, room) if lines else [Text("  no rule was broken")]


def _help(state: TopState, width: int, room: int) -> list[Text]:
    """Return the keys, each with what it does."""
    column = max(len(key) for key, _ in _HELP) + 2
    lines = []
    for key, does in _HELP:
        first, *more = textwrap.wrap(does, max(10, width - column - 2))
        lines += [Text(f"  {key:<{column}}{first}"), *(Text(f"  {'':<{column}}{rest}") for rest in more)]
    return _scrolled(state, lines, room)


def _scrolled(state: TopState, lines: list[Text], room: int) -> list[Text]:
    """Return the lines that fit. Where more stand below them, the last line says so."""
    state.scroll = min(state.scroll, max(0, len(lines) - room))
    shown = lines[state.scroll : state.scroll + room]
    below = len(lines) - state.scroll - len(shown)
    if below and len(shown) > 1:
        shown[-1] = Text(f"  {below + 1:,} more lines: down, page down", style="dim")
    return shown
