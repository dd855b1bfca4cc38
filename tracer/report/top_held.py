"""Held memory in the live view: who holds it, by name, and whose grew since the look before."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

from tracer.model.findings import REACHABLE
from tracer.model.top import HeldNode, Look, TopRow, TopSample
from tracer.report.amounts import counted, duration, size
from tracer.report.class_words import CLASSES
from tracer.report.holder_words import growing_lines, held_by_since, holder_words, is_held
from tracer.report.look_words import look_lines

RETAINED, GROWN = HELD_SORTS = ("retained", "grown")
_AMOUNT = 11
_BOTH_AMOUNTS = 60
"""From so many columns on both amounts are shown; below, what is sorted by."""


def looked(now: TopSample) -> str:
    """Return when the memory was looked into, or why it was not: one line."""
    if now.not_looked:
        return f"not looked into: {now.not_looked}"
    look = now.look
    return "" if look is None else ", ".join((f"looked into at {duration(look.time_ns)}", *look_lines(look.scans)))


def held_words(row: TopRow) -> str:
    """Return who holds most of an entry, for a line of a list, with its class where that is not simply reachable; empty
    where nobody looked."""
    names = list(dict.fromkeys(holder_words(holder) for holder in row.holders or () if is_held((holder,))))
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    first = row.classes[0][0] if row.classes else None
    class_ = CLASSES[first] if first is not None and not (first == REACHABLE and names) else ""
    return ", ".join(filter(None, (class_, f"{names[0]}{more}" if names else "")))


def reached_lines(row: TopRow, look: Look | None) -> list[str]:
    """Return lines on an entry: what was lost, who held the rest and without whom it would be lost, each with what it
    grew by between two looks."""
    lines, then = [], None if row.holders_before is None else dict(row.classes_before)
    if row.classes:
        lines.append(", ".join(f"{n:,} {CLASSES[word]}{_more(n, then, word)}" for word, n in row.classes))
    lines += held_by_since(row.holders, row.holders_before)
    for tree in () if look is None else look.trees:
        for node, above in _walk(tree.nodes, ()):
            if node.id == row.id:
                if above:
                    lines.append(f"without {_any_of(above)} it would be lost")
                if node.below:
                    lines.append(f"without it {size(node.retained - node.bytes)} more would be lost")
    return lines


def _more(count: int, then: dict[str, int] | None, word: str) -> str:
    more = 0 if then is None else count - then.get(word, 0)
    return f" ({more:+,})" if more else ""


def _any_of(above: Sequence[HeldNode]) -> str:
    names = list(dict.fromkeys(holder_words(node.holder) for node in above))
    return names[0] if len(names) == 1 else f"any of {', '.join(names)}"


def _walk(nodes: Sequence[HeldNode], above: tuple[HeldNode, ...]) -> Iterator[tuple[HeldNode, tuple[HeldNode, ...]]]:
    """Return each node with those above it, from the root down."""
    for node in nodes:
        yield node, above
        yield from _walk(node.below, (*above, node))


def held_lines(now: TopSample, sort: str, width: int) -> list[str]:
    """Return the view of what holds memory: what grew and by whom it is retained, then the tree from the roots down."""
    look = now.look
    if look is None:
        return [*_wrapped(f"not looked into: {now.not_looked}" if now.not_looked else "not looked into yet", width),
                *_wrapped("press l: the target stands while its memory is read", width)]  # fmt: skip
    lines = [line for text in _sentences(look, width < _BOTH_AMOUNTS) for line in _wrapped(text, width)]
    shown = HELD_SORTS if width >= _BOTH_AMOUNTS else (sort,)
    heads = "".join(f"{name + '*' * (name == sort):>{_AMOUNT}}" for name in shown)
    lines.append(f"{heads}  by (with what is below)" if width >= _BOTH_AMOUNTS else f"{heads}  by")
    for tree in look.trees:
        if len(look.trees) > 1:
            lines.append(f"process {tree.pid}")
        lines += _tree(tree.nodes, sort, shown, 0, width)
    if not look.trees:
        lines += _wrapped("nothing is known to hold memory (it is not worked out for more than 2,000 entries)", width)
    return lines


def _sentences(look: Look, narrow: bool) -> Iterator[str]:
    """Return what grew since the look before, by whom it is retained (one, if narrow), and what is lost."""
    most = 1 if narrow else 3
    if look.before_ns is None:
        yield from growing_lines(look.growing, narrow=narrow)[:most]
        yield "press l again, later: what has grown by then is told apart"
    else:
        since = f"grew since the look at {duration(look.before_ns)}"
        said = growing_lines(look.growing, since, narrow=narrow)
        if look.growing is not None and not said:
            said = [f"{size(look.growing.bytes)} {since}; nothing retains it alone"]
        yield from said[:most] or [f"nothing that is held {since}"]
    count, amount = (sum(one) for one in zip(*look.lost.values(), strict=True)) if look.lost else (0, 0)
    if look.lost_before is None:
        more = ""
    else:
        grown = sum(now[1] - look.lost_before[pid][1] for pid, now in look.lost.items() if pid in look.lost_before)
        more = f" ({_signed(grown)})" if grown else ""
    if count or more:
        yield f"lost: {size(amount)} in {counted(count, 'block')}{more}"


_RANKS: dict[str, Callable[[HeldNode], tuple[int, int]]] = {
    RETAINED: lambda node: (node.retained, node.grown or 0),
    GROWN: lambda node: (node.grown or 0, node.retained),
}


def _tree(nodes: Sequence[HeldNode], sort: str, shown: Sequence[str], depth: int, width: int) -> Iterator[str]:
    for node in sorted(nodes, key=_RANKS[sort], reverse=True):
        texts = {RETAINED: _short(node.retained), GROWN: "" if node.grown is None else _signed(node.grown)}
        amounts = "".join(f"{texts[name]:>{_AMOUNT}}" for name in shown)
        many = f"{node.count:,} x " if node.id is not None and node.count > 1 else ""
        lead = f"{amounts}  {' ' * min(2 * depth, max(2, width // 4))}{many}"
        yield f"{lead}{_fitted_holder(node, width - len(lead))}"
        yield from _tree(node.below, sort, shown, depth + 1, width)


def _fitted_holder(node: HeldNode, room: int) -> str:
    """Return who it is, without namespaces where they do not fit, and without "a block from" where that does not."""
    whole = holder_words(node.holder)
    if len(whole) <= room:
        return whole
    narrow = holder_words(node.holder, narrow=True)
    return narrow if len(narrow) <= room else narrow.removeprefix("a block from ")


def _short(size_bytes: int) -> str:
    return f"{size_bytes} B" if size_bytes < 1024 else size(size_bytes)


def _signed(size_bytes: int) -> str:
    return f"{'+' if size_bytes >= 0 else '-'}{_short(abs(size_bytes))}"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(10, width - 2), initial_indent="  ", subsequent_indent="    ")
