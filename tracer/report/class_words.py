"""Words for what something still points at, and what not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracer.model.findings import (
    ALIVE_AT_EXEC,
    INDIRECT,
    LEAKED,
    LOST,
    OUTSTANDING,
    POSSIBLE,
    REACHABLE,
    STACK_ONLY,
    Findings,
    Leak,
)
from tracer.report.amount_words import amount
from tracer.report.amounts import counted, size

CLASSES = {
    LOST: "lost", INDIRECT: "lost with its owner", POSSIBLE: "possibly lost", REACHABLE: "still reachable",
    STACK_ONLY: "held by the last stack",
}  # fmt: skip
_STATES = {ALIVE_AT_EXEC: "alive at exec"}
SHOWN = (LOST, POSSIBLE)
"""Listed by default; what is lost with its owner is summed up there."""
SHOWABLE = (LOST, INDIRECT, POSSIBLE, STACK_ONLY, REACHABLE)
_HELD = (REACHABLE, STACK_ONLY)
_PARTS = (
    ("lost", (LOST, INDIRECT)), ("possibly lost", (POSSIBLE,)), ("still reachable", _HELD), ("not judged", (None,)),
)  # fmt: skip


def state_word(leak: Leak) -> str:
    """Return how what is left is called: memory by its class where that is known."""
    otherwise = _STATES.get(leak.state, leak.state)
    if leak.state == "inherited" or leak.kind == "reference" or leak.reachability is None:
        return otherwise
    word = CLASSES.get(leak.reachability, otherwise)
    return word if leak.state in ("leaked", "outstanding") else f"{otherwise}, {word}"


def leaked_amount(leaks: Sequence[Leak]) -> str:
    """Return "1 object of 1 type, lost 820 bytes in 4 blocks, possibly lost 40 bytes in 1 block, not freed 9 bytes in 1
    block": the last of processes that were not looked into, without a word where none was."""
    memory = [leak for leak in leaks if leak.kind != "reference"]
    parts = [amount([leak for leak in leaks if leak.kind == "reference"])]
    parts += [_said("lost", [k for k in memory if k.reachability in (LOST, INDIRECT)])]
    parts += [_said("possibly lost", [k for k in memory if k.reachability == POSSIBLE])]
    rest = [k for k in memory if k.reachability not in (LOST, INDIRECT, POSSIBLE)]
    parts += [_said("not freed", rest) if len(rest) < len(memory) else amount(rest)]
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
    """Return a line for what is still reachable, one for what only the last stack holds, and lines for what was held at
    an exec and what was not judged there, if it is not listed; none where it is nothing."""
    lines = []
    for word in _HELD:
        leaks = [leak for leak in findings.leaks if may_hide(leak, findings) and leak.reachability == word]
        if leaks:
            by = f", from {roots(leaks)}" if word == REACHABLE else ""
            how = "" if word in shown else f" {_how_to_list(leaks)}"
            lines.append(f"{CLASSES[word]}: {amount(leaks)}{by}{how}")
    quiet = [leak for leak in findings.leaks if leak.state == ALIVE_AT_EXEC and is_quiet(leak, shown)]
    for what, is_held in (("still held", True), ("not judged", False)):
        leaks = [leak for leak in quiet if leak.is_held is is_held]
        lines += [f"{what} at an exec: {amount(leaks)} {_how_to_list(leaks)}"] if leaks else []
    return lines


def may_hide(leak: Leak, findings: Findings) -> bool:
    """Tell whether something still points at what is left of a program that has ended: be it that data were lost, so
    that nothing is called leaked."""
    if leak.state == LEAKED:
        return leak.is_held
    return leak.state == OUTSTANDING and leak.is_held and findings.is_judged


def is_quiet(leak: Leak, shown: Sequence[str]) -> bool:
    """Tell whether what was alive at an exec is summed up only: what was held, and what may have been."""
    if leak.kind == "reference":
        return False
    word = REACHABLE if leak.reachability is None else leak.reachability
    return word in _HELD and word not in shown


def is_listed(leak: Leak, findings: Findings, shown: Sequence[str]) -> bool:
    """Tell whether an entry is listed: what is below another one is summed up there, what is held in `held_lines`."""
    if leak.state == ALIVE_AT_EXEC:
        return not is_quiet(leak, shown)
    if may_hide(leak, findings):
        return leak.reachability in shown
    if leak.kind == "reference" or leak.reachability is None or leak.state != LEAKED or leak.reachability in shown:
        return True
    return leak.reachability == INDIRECT and leak.owner is None and LOST in shown


def _how_to_list(leaks: Sequence[Leak]) -> str:
    words = [word for word in _HELD if any((leak.reachability or REACHABLE) == word for leak in leaks)]
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


def below_words(*leaks: Leak) -> str:
    """Return "and 41 blocks, 2.1 KiB below it"; empty where nothing hangs below entries."""
    count, amount_of = sum(leak.below_count for leak in leaks), sum(leak.below_bytes for leak in leaks)
    return f"and {counted(count, 'block')}, {size(amount_of)} below it" if count else ""
