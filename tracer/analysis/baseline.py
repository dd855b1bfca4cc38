"""Only what is new or has grown since a run that is taken as given."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.comparison import compare, error_id
from tracer.analysis.verdict import failing_errors
from tracer.model.comparison import Amount, Change
from tracer.model.findings import INHERITED, Findings, Leak


def against_baseline(findings: Findings, baseline: Findings, name: str) -> Findings:
    """Leave out what the baseline has as much of, and say how many entries that were; note what the others did.

    `name` is what the notes call the baseline. Totals stay those of the whole run.
    """
    changes = {change.id: change for change in compare(baseline, findings).changes if change.after is not None}
    worse = {id_: change for id_, change in changes.items() if change.word in ("new", "grown")}
    leaks = tuple(_noted(leak, worse[leak.id]) for leak in findings.leaks if _stays(leak, worse))
    rules = set(map(error_id, failing_errors(findings)))
    errors = tuple(e for e in findings.errors if error_id(e) not in rules or error_id(e) in worse)
    known = [change for id_, change in changes.items() if id_ not in worse]
    return replace(findings, leaks=leaks, errors=errors, notes=(*findings.notes, _sentence(known, name)))


def _stays(leak: Leak, worse: dict[str, Change]) -> bool:
    return leak.state != INHERITED and not leak.is_held and leak.id in worse


def _noted(leak: Leak, change: Change) -> Leak:
    if change.before is None:
        held = "" if change.held is None else f", which held {_amount(change.held)}"
        note = f"new since the baseline{held}"
    else:
        note = f"grown since the baseline: {_amount(change.before)} then, {_amount(change.after or Amount())} now"
    return replace(leak, notes=(*leak.notes, note))


def _amount(amount: Amount) -> str:
    about = "~" if amount.count_error or amount.bytes_error else ""
    return f"{amount.count:,}" if amount.bytes is None else f"{about}{amount.count:,} ({about}{amount.bytes:,} bytes)"


def _sentence(known: list[Change], name: str) -> str:
    if not known:
        return f"baseline {name}: none of its entries was found again unchanged"
    count = sum((change.after or Amount()).count for change in known)
    size = sum((change.after or Amount()).bytes or 0 for change in known)
    entries = "1 entry is" if len(known) == 1 else f"{len(known):,} entries are"
    return f"baseline {name}: {entries} no more than it has, and not shown ({count:,} in all, {size:,} bytes)"
