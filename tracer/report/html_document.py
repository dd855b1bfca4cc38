"""The HTML document's data: findings as lists and dicts, each frame once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracer.model.findings import REMARKS, DominatorNode, ErrorFinding, Findings, Leak, StackCount
from tracer.report.address_words import address_word, counts_references
from tracer.report.amount_words import amount
from tracer.report.cause_entries import CauseEntry, cause_entries, kept_words, same_cause_words
from tracer.report.class_words import CLASSES, below_words
from tracer.report.entry_sentence import error_sentence, leak_sentence
from tracer.report.frame_table import FrameTable
from tracer.report.holder_words import held_by, holder_words
from tracer.report.period_table import period_title, row_place
from tracer.report.scope import command, end
from tracer.report.selection_words import limits, rate
from tracer.report.trend_words import looked_at, trend_sentence, turnover_sentence
from tracer.report.unpaired_sentence import accused, unpaired_sentence
from tracer.report.verdict_line import verdict
from tracer.report.weights import process_names, reported

Json = dict[str, object]
_MOST_NODES = 40
"""Of a line of the tree of holders: the rest is summed up."""


def html_document(findings: Findings) -> Json:
    """Return what web/*.js reads.

    Frames are a FrameTable's; stacks are lists of their numbers, leaf first.
    """
    frames, said = FrameTable(), verdict(findings)
    return {
        "verdict": said.text,
        "style": said.style,
        "doubts": list(findings.coverage_gaps),
        "mode": findings.mode,
        "durationNs": findings.duration_ns,
        "events": findings.events_seen,
        "complete": findings.is_whole,
        "sampling": rate(findings.selection) if findings.selection.is_sampled else None,
        "only": limits(findings),
        "losses": [[loss.count, loss.reason, loss.remedy] for loss in findings.losses],
        "attached": findings.coverage.attached,
        "unresolved": [[u.function, u.reason] for u in findings.coverage.unresolved],
        "notInlined": [[c.function, c.copies, c.reason] for c in findings.coverage.uncovered_instances],
        "names": {str(pid): program for pid, program in process_names(findings).items()},
        "processes": [
            [p.pid, p.parent, command(p), p.started_ns, p.ended_ns, end(p), p.made, p.freed] for p in findings.processes
        ],
        "types": [[r.type, r.created, r.gets, r.puts, r.destroyed, r.outstanding] for r in findings.types],
        "classes": CLASSES,
        "leaks": [document for entry in cause_entries(reported(findings)) for document in _leaks(entry, frames)],
        "errors": [_error(error, frames) for error in findings.errors],
        "holders": [[tree.pid, *_nodes(tree.nodes)] for tree in findings.dominators],
        "survivors": [[s.time_ns, s.count, s.bytes, s.mapped_bytes] for s in findings.survivors],
        "heap": [[p.time_ns, p.live, p.live_bytes, p.made, p.made_bytes] for p in findings.heap_course],
        "periods": [
            [
                period_title(period, period is findings.periods[-1]),
                [[row_place(r), r.made, r.freed, r.outstanding, r.outstanding_bytes] for r in period.rows],
            ]
            for period in findings.periods
        ],
        "suppressed": amount(findings.suppressed),
        "inherited": amount([leak for leak in findings.leaks if leak.state == "inherited"]),
        "notes": list(findings.notes),
        "frames": frames.documents,
    }


def _leaks(entry: CauseEntry, frames: FrameTable) -> list[Json]:
    """Return what is listed, and after it what stands below it: `below` of these is how many they are."""
    lead = _leak(entry.lead, frames) | {
        "below": len(entry.leaks) - 1,
        "sum": entry.count,
        "summary": unpaired_sentence(entry.summed),
        "sameCause": same_cause_words(entry),
        "births": _calls((StackCount(other.stack, other.count) for other in entry.others), frames),
        "kept": kept_words(entry),
    }
    below = [_leak(leak, frames) for leak in entry.leaks[1 : len(entry.leaks) - len(entry.memory)]]
    nothing: Json = {"births": [], "sameCause": "", "kept": ""}
    memory = [_leak(leak, frames) | nothing | {"memory": leak_sentence(leak)} for leak in entry.memory]
    return [lead, *below, *memory]


def _leak(leak: Leak, frames: FrameTable) -> Json:
    return {
        "id": leak.id,
        "kind": leak.kind,
        "type": leak.type,
        "pid": leak.pid,
        "state": leak.state,
        "reachability": leak.reachability,
        "owner": leak.owner,
        "belowOwner": below_words(leak),
        "count": leak.count,
        "bytes": leak.bytes,
        "error": [leak.sample.bytes_error, leak.sample.count_error, leak.kept] if leak.sample else None,
        "least": leak.size_min,
        "most": leak.size_max,
        "trend": leak.trend.word if leak.trend else None,
        "overTime": [text for text in (turnover_sentence(leak), trend_sentence(leak.trend)) if text],
        "freedAt": _calls(leak.freed_at, frames),
        "lookedAt": looked_at(leak) if leak.freed_at else "",
        "ageNs": max((instance.age_ns for instance in leak.instances), default=None),
        "at": [address_word(instance.address, counted=leak.kind == "reference") for instance in leak.instances],
        "stack": frames.of(leak.stack),
        "own": leak.own_frame,
        "start": leak.start or 0,
        "status": leak.stack_status,
        "gets": _calls(leak.gets, frames),
        "puts": _calls(leak.puts, frames),
        "summary": unpaired_sentence(leak),
        "unpaired": [[frames.of(get.stack), accused(leak, get), get.confidence, get.reason] for get in leak.unpaired],
        "notes": list(leak.notes),
        "heldBy": [*filter(None, [leak.holders_and_count]), *held_by(leak.holders)],
    }


def _nodes(nodes: Sequence[DominatorNode]) -> list[object]:
    """Return the documents of those that retain most, and of the others how many they are and what they retain."""
    shown, rest = nodes[:_MOST_NODES], nodes[_MOST_NODES:]
    return [[_node(node) for node in shown], [len(rest), sum(node.retained for node in rest)]]


def _node(node: DominatorNode) -> list[object]:
    return [holder_words(node.holder), node.id, node.count, node.bytes, node.retained, *_nodes(node.below)]


def _calls(calls: Iterable[StackCount], frames: FrameTable) -> list[object]:
    return [[frames.of(call.stack), call.count] for call in calls]


def _error(error: ErrorFinding, frames: FrameTable) -> Json:
    stacks = [
        ("at", error.stack), ("released at", error.released_at),
        ("last got at", error.last_get), ("made at", error.created_at),
    ]  # fmt: skip
    return {
        "sentence": error_sentence(error),
        "remark": error.kind in REMARKS,
        "pid": error.pid,
        "address": address_word(error.address, counted=counts_references(error)),
        "stacks": [[what, frames.of(stack)] for what, stack in stacks if stack is not None],
        "heldBy": held_by(error.holders),
    }
