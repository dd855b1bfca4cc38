"""Words for what something still points at, and what not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracer.model.findings import ALIVE_AT_EXEC, INDIRECT, LOST, POSSIBLE, REACHABLE, STACK_ONLY, Findings, Leak
from tracer.report.amount_words import amount
from tracer.report.amounts import counted, size

CLASSES = {
    LOST: "lost", INDIRECT: "lost with its owner", POSSIBLE: "possibly lost", REACHABLE: "still reachable",
    STACK_ONLY: "held by the last stack",
}  # fmt: skip
SHOWN = (LOST, POSSIBLE)
"""Listed by default; what is lost with its owner is summed up there."""
SHOWABLE = (LOST, INDIRECT, POSSIBLE, STACK_ONLY, REACHABLE)
_HELD = (REACHABLE, STACK_ONLY)
_PARTS = (
    ("lost", (LOST, INDIRECT)), ("possibly lost", (POSSIBLE,)), ("still reachable", _HELD), ("not judged", (None,)),
)  # fmt: skip


def state_word(leak: Leak, otherwise: str) -> str:
    """Return how memory is called that is left: by its class where that is known."""
    if leak.state == "inherited" or leak.kind == "reference" or leak.reachability is None:
        return otherwise
    word = CLASSES.get(leak.reachability, otherwise)
    return word if leak.state in ("leaked", "outstanding") else f"{otherwise}, {word}"


def leaked_amount(leaks: Sequence[Leak]) -> str:
    """Return "1 object of 1 type, lost 820 bytes in 4 blocks, possibly lost 40 bytes in 1 block"."""
    memory = [leak for leak in leaks if leak.kind != "reference"]
    parts = [amount([leak for leak in leaks if leak.kind == "reference"])]
    parts += [_said("lost", [k for k in memory if k.reachability in (LOST, INDIRECT)])]
    parts += [_said("possibly lost", [k for k in memory if k.reachability == POSSIBLE])]
    parts += [amount([k for k in memory if k.reachability not in (LOST, INDIRECT, POSSIBLE)])]
    return ", ".join(filter(None, parts))


def outstanding_amount(leaks: Sequence[Leak]) -> str:
    """Return "lost 512 bytes in 8 blocks, still reachable 896 bytes in 14 blocks"; without classes where none is
    known."""
    if not any(leak.reachability for leak in leaks):
        return amount(leaks)
    memory = [leak for leak in leaks if leak.kind != "reference"]
    parts = [amount([leak for leak in leaks if leak.kind == "reference"])]
    parts += [_said(word, [k for k in memory if k.reachability in classes]) for word, classes in _PARTS]
    return ", ".join(filter(None, parts))


def _said(word: str, leaks: Sequence[Leak]) -> str:
    return f"{word} {amount(leaks)}" if leaks else ""


def held_lines(findings: Findings, shown: Sequence[str]) -> list[str]:
    """Return a line for what is still reachable, one for what only the last stack holds, and one for what was held at
    an exec, if it is not listed; none where it is nothing."""
    lines = []
    for word in _HELD:
        leaks = [leak for leak in findings.held if leak.reachability == word]
        if leaks:
            by = f", from {roots(leaks)}" if word == REACHABLE else ""
            how = "" if word in shown else f" {_how_to_list(leaks)}"
            lines.append(f"{CLASSES[word]}: {amount(leaks)}{by}{how}")
    held_at_exec = [leak for leak in findings.leaks if leak.state == ALIVE_AT_EXEC and leak.is_held]
    hidden = [leak for leak in held_at_exec if leak.reachability not in shown]
    if hidden:
        lines.append(f"still held at an exec: {amount(hidden)} {_how_to_list(hidden)}")
    return lines


def _how_to_list(leaks: Sequence[Leak]) -> str:
    words = [word for word in _HELD if any(leak.reachability == word for leak in leaks)]
    return f"(--show {','.join(words)} lists {'them' if sum(leak.count for leak in leaks) > 1 else 'it'})"


def roots(leaks: Sequence[Leak]) -> str:
    """Return what entries are held by, that by which most are first: "6 globals, stacks"."""
    sums: dict[str, int] = {}
    for leak in leaks:
        reason = (leak.reachability_reason or "").removeprefix("held by ")
        for root in filter(None, reason.split(" or ")):
            sums[root] = sums.get(root, 0) + leak.count
    ranked = sorted(sums, key=lambda root: (-sums[root], root))
    globals_ = _globals(leaks)
    words = _PLURAL | ({"a global": counted(globals_, "global")} if globals_ else {})
    return ", ".join(words.get(root, root) for root in ranked)


def _globals(leaks: Sequence[Leak]) -> int:
    """Return how many variables hold entries; 0 where not all of them are known."""
    found = set()
    for leak in leaks:
        for holder in leak.holders or ():
            if holder.kind == "other":
                return 0
            if holder.kind == "global":
                found.add((holder.module, re.split(r"[.\[]", holder.name)[0] if holder.name else holder.offset))
    return len(found)


_PLURAL = {"a global": "globals", "a stack": "stacks", "a register": "registers", "a mapping": "mappings",
           "perhaps a hidden pointer": "perhaps hidden pointers"}  # fmt: skip


def below_words(leak: Leak) -> str:
    """Return "and 41 blocks, 2.1 KiB below it"; empty where nothing hangs below an entry."""
    if not leak.below_count:
        return ""
    return f"and {counted(leak.below_count, 'block')}, {size(leak.below_bytes)} below it"
