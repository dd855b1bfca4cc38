"""Policy of `--fail-on`: whether a run counts as failed.

A policy is a list of conditions; one that holds is enough. They look at what is reported: what a suppression or the
baseline set aside, what was inherited by fork and what was alive at exec never fail a run.

    leaks         anything leaked: references that nobody put, and memory that is lost or possibly lost; all that is not
                  freed where it was not looked into what still points at it
    lost          memory is lost for certain
    possible      memory may be lost: only pointers into its middle are left
    reachable     memory was not freed, though something points at it; that on the last stack only is `stack`
    errors        a rule of counting or of allocation was broken
    outstanding   anything is alive at the end of a trace that its target outlived
    incomplete    data were lost, nothing of a program that ran was probed, or not all functions of a type or of an
                  allocator were
    bytes>SIZE    leaked or outstanding blocks and mappings exceed SIZE together (64K, 1M, 2G)
    count>N       leaked or outstanding objects, blocks and mappings are more than N together
    NAME          an object of this type leaked or is outstanding; `*` stands for anything. type:NAME for a type that
                  is named like one of the words above, or that need not occur
"""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase

from tracer.analysis.verdict import failing_errors
from tracer.late_dataclasses import dataclass
from tracer.model.findings import INDIRECT, LEAKED, LOST, OUTSTANDING, POSSIBLE, REACHABLE, STACK_ONLY, Findings, Leak

_CLASSES = {"lost": (LOST, INDIRECT), "possible": (POSSIBLE,), "reachable": (REACHABLE,), "stack": (STACK_ONLY,)}
WORDS = ("leaks", "errors", "outstanding", "incomplete", *_CLASSES)
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Condition:
    kind: str
    """One of the words, or "bytes", "count", "type"."""
    limit: int = 0
    name: str = ""
    is_type: bool = False
    """The user has said that it is a type's name."""

    def broken_by(self, findings: Findings) -> str | None:
        """Return what breaks it, as a phrase; None where nothing does."""
        counted = [k for k in findings.leaks if k.state in (LEAKED, OUTSTANDING) and not k.is_held]
        if self.kind in _CLASSES:
            return self._class_broken_by(findings)
        match self.kind:
            case "leaks":
                return _phrase(len(findings.leaked), "entry leaked", "entries leaked")
            case "errors":
                return _phrase(len(failing_errors(findings)), "error", "errors")
            case "outstanding":
                outstanding = [leak for leak in counted if leak.state == OUTSTANDING]
                return _phrase(len(outstanding), "entry outstanding", "entries outstanding")
            case "incomplete":
                return _unseen(findings)
            case "type":
                return self._type_broken_by(counted)
        amount = sum(leak.bytes or 0 if self.kind == "bytes" else leak.count for leak in counted)
        about = "~" if any(leak.sample for leak in counted) else ""
        return f"{self.kind} {about}{amount:,} > {self.limit:,}" if amount > self.limit else None

    def _class_broken_by(self, findings: Findings) -> str | None:
        found = [k for k in findings.leaks if k.state == LEAKED and k.reachability in _CLASSES[self.kind]]
        memory = [leak for leak in found if leak.kind != "reference"]
        return _phrase(len(memory), f"entry {self.kind}", f"entries {self.kind}")

    def _type_broken_by(self, counted: list[Leak]) -> str | None:
        found = [k for k in counted if k.kind == "reference" and fnmatchcase(k.type or "", self.name)]
        total = sum(leak.count for leak in found)
        return f"{total:,} x {', '.join(sorted({leak.type or '' for leak in found}))}" if found else None


@dataclass(frozen=True)
class Policy:
    conditions: tuple[Condition, ...]

    def broken_by(self, findings: Findings) -> tuple[str, ...]:
        """Return a phrase for each condition that holds; empty where the run has passed."""
        phrases = (condition.broken_by(findings) for condition in self.conditions)
        return tuple(phrase for phrase in phrases if phrase is not None)

    def unknown(self, findings: Findings) -> str | None:
        """Return a name that no type has that was probed or occurred, None where there is none: it may be misspelt."""
        missing = [missing.type for missing in findings.coverage.missing]
        known = (*findings.type_names, *missing)
        asked = (c.name for c in self.conditions if c.kind == "type" and not c.is_type)
        return next((name for name in asked if not any(fnmatchcase(type_, name) for type_ in known)), None)


ANY_FINDING = Policy((Condition("leaks"), Condition("errors")))
"""What --error-exitcode alone means."""


def parse_policy(text: str) -> Policy:
    """Parse a list such as `leaks,errors` or `bytes>1M,dso`. Raises ValueError with a sentence."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(f"{text!r} is not a list such as leaks,errors or bytes>1M,count>10 or a type's name")
    return Policy(tuple(map(_condition, words)))


def _condition(word: str) -> Condition:
    if word in WORDS:
        return Condition(word)
    kind, sign, limit = (part.strip() for part in word.partition(">"))
    if sign and kind in ("bytes", "count"):
        return Condition(kind, _number(limit, word))
    if kind in ("bytes", "count"):
        raise ValueError(f"{word!r} lacks its limit: {kind}>10")
    if not word.startswith("type:") and ("=" in word or (sign and "<" not in word)):
        raise ValueError(f"{word!r} is no word and no type: a limit is bytes>10 or count>10, for all together")
    meant = get_close_matches(word.lower(), WORDS, 1, 0.8) or _with_letters_swapped(word.lower())
    if meant:
        raise ValueError(f"{word!r} is not one of {', '.join(WORDS)}: did you mean {meant[0]}? "
                         f"A type of that name is type:{word}")
    return Condition("type", name=word.removeprefix("type:"), is_type=word.startswith("type:"))


def _with_letters_swapped(word: str) -> list[str]:
    """Return the word of which this is one with two neighbours swapped, an `s` at its end apart."""
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    return [known for known in WORDS if not swapped.isdisjoint((known, known.removesuffix("s")))]


def _unseen(findings: Findings) -> str | None:
    if not findings.complete:
        return "data were lost"
    untraced = _phrase(len(findings.coverage.untraced), "program not traced", "programs not traced")
    return untraced or (f"not all of {', '.join(findings.partly_seen)} was seen" if findings.partly_seen else None)


def _number(text: str, word: str) -> int:
    factor = _SUFFIXES.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"{word!r} has no number such as 10, 64K or 1M after `>`")
    return int(digits) * factor


def _phrase(count: int, one: str, many: str) -> str | None:
    return f"{count:,} {one if count == 1 else many}" if count else None
