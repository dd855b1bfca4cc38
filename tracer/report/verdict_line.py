"""The verdict in one line: what a stranger reads first and last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tracer.model.findings import POSSIBLE, REMARKS, Findings, Leak
from tracer.model.snapshot import CRASHES
from tracer.report.amounts import counted
from tracer.report.class_words import leaked_amount, outstanding_amount
from tracer.report.page import Span
from tracer.report.scope import end, unseen, untraced
from tracer.report.selection_words import limits


def verdict(findings: Findings) -> Span:
    """Return the verdict: "LEAK" only for a launched target that ended, and in doubt where data were lost."""
    broken = Counter(error.kind for error in findings.errors if error.kind not in REMARKS)
    errors = _errors(broken)
    outstanding = [leak for leak in findings.leaks if leak.state == "outstanding"]
    is_classed = any(leak.reachability for leak in outstanding)
    parts = [_judgement(findings, bool(outstanding), bool(errors), is_classed=is_classed)]
    leaked = leaked_amount(findings.leaked)
    if leaked:
        parts.append(leaked)
    elif outstanding:
        parts.append(outstanding_amount(outstanding))
    if errors:
        parts.append(errors)
    text = parts[0] if len(parts) == 1 else f"{parts[0]}: {', '.join(parts[1:])}"
    past = sum(error.count for error in findings.errors if error.kind == "freed-past-counter")
    text += f"; {counted(past, 'object')} freed past {'its counter' if past == 1 else 'their counters'}" if past else ""
    exec_ = outstanding_amount([leak for leak in findings.leaks if leak.state == "alive-at-exec"])
    text += f"; alive at exec: {exec_}" if exec_ else ""
    if not findings.complete and (leaked or errors or outstanding):
        text += "; but data were lost"
    crash = _crash(findings, {leak.pid for leak in outstanding})
    text += f"; but {crash}" if crash else ""
    bad = bool(leaked or errors)
    if findings.coverage.untraced and (leaked or errors or outstanding):
        text += f"; {untraced(findings)}"
    doubtful = bool(outstanding or crash or unseen(findings))
    style = "bad" if bad else "warn" if doubtful else "good"
    return Span(f"refleak: {text}", style)


def _crash(findings: Findings, holding: Collection[int]) -> str:
    """Return which process crashed, as "it was killed by SIGSEGV", or was killed while it had what nobody judges
    (`holding`: the pids of those that had); empty where none was."""
    ended = findings.last_spaces
    killed = [p for p in ended if p.signal in CRASHES or (p.signal is not None and p.pid in holding)]
    if not killed:
        return ""
    if killed[0] is ended[0]:
        return f"it was {end(killed[0])}"
    if len(killed) > 1:
        said = "crashed" if all(process.signal in CRASHES for process in killed) else "were killed"
        return f"{len(killed)} children {said}"
    return f"its child {killed[0].pid} was {end(killed[0])}"


def _judgement(findings: Findings, outstanding: bool, errors: bool, *, is_classed: bool) -> str:
    if findings.leaked:
        said = "POSSIBLE LEAK" if all(_is_possible(leak) for leak in findings.leaked) else "LEAK"
        return said if findings.complete else f"{said}, as far as seen"
    if outstanding:
        said = "outstanding" if is_classed else "outstanding, not judged"
        return f"ERROR, and {said}" if errors else said
    if errors:
        return "ERROR"
    if doubts := unseen(findings):
        return f"no leak found, but {' and '.join(doubts)}"
    judged = findings.is_judged
    looked_at = limits(findings)
    if looked_at:
        return f"{'no leak' if judged else 'nothing outstanding'} in what was looked at: {looked_at}"
    if judged and findings.held:
        return "clean: nothing lost"
    return "clean" if judged else "clean: nothing made since the trace began is outstanding"


def _is_possible(leak: Leak) -> bool:
    return leak.kind != "reference" and leak.reachability == POSSIBLE


def _errors(kinds: Counter[str]) -> str:
    if not kinds:
        return ""
    words = ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in sorted(kinds.items()))
    return f"{counted(sum(kinds.values()), 'error')} ({words})"
