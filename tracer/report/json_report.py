"""The JSON report: the contract that other programs rely on; described by docs/report.schema.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from tracer import __version__
from tracer.model.balance import BalanceNode
from tracer.model.findings import (
    ErrorFinding,
    Findings,
    Growing,
    Holder,
    Instance,
    Leak,
    StackCount,
    UnpairedGet,
)
from tracer.model.frames import Frame
from tracer.model.late_holders import whole
from tracer.model.periods import Period
from tracer.model.reachability import Resident, Scan
from tracer.model.selection import ANY_SIZE, Sample
from tracer.model.snapshot import Coverage, Process
from tracer.model.trends import Durations, Trend
from tracer.report.json_text import Json, JsonText
from tracer.report.mapped_totals import mapped_totals
from tracer.report.unpaired_sentence import unpaired_sentence

FORMAT, VERSION = "refleak-report", 1
_HOLDERS_FRAMES = 20
"""Of a holder's stacks. An entry has up to seventeen: with whole stacks the report of a deep program has 1 GB."""


def write_json(findings: Findings, stream: TextIO) -> None:
    """Write one JSON document, in ASCII, ended by a newline. Sizes in bytes, times in ns since the trace began."""
    JsonText(DESCRIBED, ON_ONE_LINE).write(document(findings), stream)


def write_json_line(findings: Findings, stream: TextIO) -> None:
    """Write the same document on one line, for a stream of them."""
    JsonText(DESCRIBED).write_line(document(findings), stream)


def document(findings: Findings) -> dict[str, object]:
    """Return the report as what JsonText writes; entries are made one by one, as it comes to them."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tool": {"name": "refleak", "version": __version__},
        "doubts": list(findings.coverage_gaps),
        "mode": findings.mode,
        "duration_ns": findings.duration_ns,
        "target_ended": findings.target_ended,
        "events_seen": findings.events_seen,
        "complete": findings.is_whole,
        "lost": [{"reason": o.reason, "count": o.count, "remedy": o.remedy} for o in findings.losses],
        "sampling": _sampling(findings),
        "only": _only(findings),
        "probes": _probes(findings.coverage),
        "processes": [_process(process) for process in findings.processes],
        "totals": _totals(findings),
        "scans": [scan_document(scan) for scan in findings.scans],
        "growing": growing_document(findings.growing),
        "leaks": (_leak(leak) for leak in findings.leaks),
        "errors": [_error(error) for error in findings.errors],
        "suppressed": {
            "count": sum(leak.kept for leak in findings.suppressed),
            "bytes": sum(_kept_bytes(leak) or 0 for leak in findings.suppressed),
            "entries": (_leak(leak) for leak in findings.suppressed),
        },
        "periods": [_period(period) for period in findings.periods],
        "notes": list(findings.notes),
    }


def _sampling(findings: Findings) -> Json | None:
    """Return the rate, and what of blocks is outstanding as the totals have it: suppressed ones too, no copies."""
    blocks = findings.allocations
    if not findings.selection.is_sampled:
        return None
    return {
        "sample_bytes": findings.selection.sample_bytes,
        "estimated": _estimated(blocks.outstanding, blocks.outstanding_bytes, blocks.sample or Sample()),
    }


def _only(findings: Findings) -> Json | None:
    """Return what the report is limited to; None where it is not."""
    selection = findings.selection
    if not selection.is_by_size and not findings.older_ns:
        return None
    most = selection.max_size if selection.max_size < ANY_SIZE else None
    return {"min_size": selection.min_size, "max_size": most, "older_ns": findings.older_ns}


def _estimated(count: int, size: int, sample: Sample | None) -> Json | None:
    if sample is None:
        return None
    return {"count": count, "bytes": size, "count_error": sample.count_error, "bytes_error": sample.bytes_error}


def _kept_bytes(leak: Leak) -> int | None:
    return leak.bytes if leak.sample is None else leak.sample.bytes


def _probes(coverage: Coverage) -> Json:
    return {
        "attached": coverage.attached,
        "unresolved": [
            {"operation": u.operation, "type": u.type, "function": u.function, "reason": u.reason}
            for u in coverage.unresolved
        ],
        "untraced": [{"pid": u.pid, "program": u.program, "reason": u.reason} for u in coverage.untraced],
        "missing": [{"type": m.type, "function": m.function or None} for m in coverage.missing],
        "inlined_not_covered": [
            {"function": c.function, "copies": c.copies, "operation": c.operation, "type": c.type, "reason": c.reason}
            for c in coverage.uncovered_instances
        ],
    }


def _process(process: Process) -> Json:
    ended = {"code": process.exit_code, "signal": process.signal, "by_exec": process.by_exec}
    return {
        "pid": process.pid,
        "parent": process.parent,
        "command": list(process.command),
        "executable": process.executable,
        "started_ns": process.started_ns,
        "ended_ns": process.ended_ns,
        "ended": None if process.ended_ns is None else ended,
    }


def _totals(findings: Findings) -> Json:
    blocks, mapped = findings.allocations, mapped_totals(findings)
    return {
        "allocations": {
            "made": blocks.made,
            "freed": blocks.freed,
            "outstanding": blocks.outstanding if blocks.sample is None else blocks.sample.count,
            "outstanding_bytes": blocks.outstanding_bytes if blocks.sample is None else blocks.sample.bytes,
        },
        "mappings": {"outstanding": mapped.count, "outstanding_bytes": mapped.bytes},
        "references": [
            {
                "type": row.type,
                "created": row.created,
                "gets": row.gets,
                "puts": row.puts,
                "destroyed": row.destroyed,
                "outstanding": row.outstanding,
            }
            for row in findings.types
        ],
    }


def _leak(leak: Leak) -> Json:
    return {
        "id": leak.id,
        "kind": leak.kind,
        "type": leak.type,
        "pid": leak.pid,
        "state": leak.state,
        "reachability": leak.reachability,
        "reachability_reason": leak.reachability_reason,
        "holders": whole(leak.holders),
        "holders_and_count": leak.holders_and_count or None,
        "owner": leak.owner,
        "below": {"count": leak.below_count, "bytes": leak.below_bytes} if leak.below_count else None,
        "count": leak.kept,
        "bytes": _kept_bytes(leak),
        "estimated": _estimated(leak.count, leak.bytes or 0, leak.sample),
        "size_min": leak.size_min,
        "size_max": leak.size_max,
        "made": leak.made,
        "freed": leak.freed,
        "freed_at": _calls(leak.freed_at) if leak.kind == "allocation" else None,
        "trend": None if leak.trend is None else _trend(leak.trend),
        "stack": leak.stack,
        "stack_complete": leak.stack_complete,
        "stack_status": leak.stack_status,
        "own_frame": leak.own_frame,
        "maker": leak.maker,
        "instances": [_instance(instance) for instance in leak.instances],
        "gets": _calls(leak.gets) if leak.kind == "reference" else None,
        "puts": _calls(leak.puts) if leak.kind == "reference" else None,
        "cause": leak.cause,
        "kept_alive_by": leak.kept_alive_by,
        "memory_of": leak.memory_of,
        "summary": unpaired_sentence(leak) or None,
        "unpaired": [_unpaired(get) for get in leak.unpaired],
        "healthy": _calls(leak.healthy) if leak.kind == "reference" else None,
        "balance": None if leak.balance is None else _balance(leak.balance.tree().pruned()),
        "notes": list(leak.notes),
        "suppressed_by": leak.suppressed_by,
    }


def _instance(instance: Instance) -> Json:
    return {
        "address": hex(instance.address),
        "size": instance.size,
        "references": instance.references,
        "age_ns": instance.age_ns,
        "thread": instance.thread,
    }


def growing_document(growing: Growing | None) -> Json | None:
    """Return what grows and who retains it, as all documents have it."""
    if growing is None:
        return None
    retainers = [{"bytes": one.bytes, "holder": holder_document(one.holder)} for one in growing.retainers]
    return {"bytes": growing.bytes, "retainers": retainers}


def scan_document(scan: Scan) -> Json:
    """Return what was looked into of an address space, as all documents have it."""
    return {
        "pid": scan.pid, "looked_into": scan.reason is None, "reason": scan.reason, "held_ns": scan.held_ns,
        "bytes_read": scan.bytes_read, "blocks": scan.blocks, "resident": _resident(scan.resident),
        "why_running": scan.why_running, "passes": scan.passes,
    }  # fmt: skip


def _resident(resident: Resident | None) -> Json | None:
    if resident is None:
        return None
    names = ("total", "live", "free", "stacks", "files", "data", "other", "free_below_top", "rounding")
    return {name: getattr(resident, name) for name in names}


def holder_document(holder: Holder) -> Json:
    """Return a holder as all documents have it: of its stacks the innermost frames."""
    return {
        "count": holder.count,
        "kind": holder.kind,
        "name": holder.name,
        "type": holder.type,
        "member": holder.member,
        "offset": holder.offset,
        "module": holder.module,
        "stack": holder.stack and holder.stack[:_HOLDERS_FRAMES],
        "freed_at": holder.freed_at and holder.freed_at[:_HOLDERS_FRAMES],
        "thread": holder.thread,
        "interior": holder.interior,
    }


def _trend(trend: Trend) -> Json:
    growth = trend.growth
    sizes = None if growth is None else growth.bytes_per_minute
    return {
        "word": trend.word,
        "reason": trend.reason or None,
        "ages": _durations(trend.ages),
        "lives": None if trend.lives is None else _durations(trend.lives),
        "peak": trend.peak,
        "count_per_minute": None if growth is None else round(growth.count_per_minute, 3),
        "bytes_per_minute": None if sizes is None else round(sizes),
    }


def _period(period: Period) -> Json:
    return {
        "number": period.number,
        "from_ns": period.from_ns,
        "until_ns": period.until_ns,
        "entries": [
            {
                "id": row.id,
                "kind": row.kind,
                "type": row.type,
                "made": row.made,
                "freed": row.freed,
                "outstanding": row.outstanding,
                "outstanding_bytes": row.outstanding_bytes,
                "stack": row.stack,
            }
            for row in period.rows
        ],
    }


def _durations(durations: Durations) -> Json:
    return {
        "count": durations.count,
        "min_ns": durations.min_ns,
        "median_ns": durations.median_ns,
        "max_ns": durations.max_ns,
    }


def _calls(calls: Iterable[StackCount]) -> list[Json]:
    return [{"stack": call.stack, "count": call.count} for call in calls]


def _unpaired(get: UnpairedGet) -> Json:
    return {
        "stack": get.stack, "count": get.count, "confidence": get.confidence, "reason": get.reason,
        "probability": get.probability, "taken_by": get.taken_by, "taken_for": get.taken_for, "put_at": get.put_at,
        "kept_at": get.kept_at,
    }  # fmt: skip


def _balance(node: BalanceNode) -> Json:
    folded = {"paths": node.folded.paths, "gets": node.folded.gets, "puts": node.folded.puts}
    return {
        "frame": node.frame,
        "gets": node.gets,
        "puts": node.puts,
        "folded": folded,
        "children": [_balance(child) for child in node.children],
    }


def _error(error: ErrorFinding) -> Json:
    return {
        "kind": error.kind,
        "type": error.type,
        "pid": error.pid,
        "count": error.count,
        "is_least": error.is_least,
        "address": hex(error.address),
        "stack": error.stack,
        "created_at": error.created_at,
        "released_at": error.released_at,
        "last_get": error.last_get,
        "probably": error.probably,
        "reason": error.reason,
        "holders": error.holders,
    }


def frame_document(frame: Frame) -> Json:
    return {
        "function": frame.function,
        "module": frame.module,
        "path": frame.path,
        "build_id": frame.build_id,
        "file": frame.file,
        "line": frame.line,
        "inlined": frame.inlined,
        "address": hex(frame.address),
        "offset": frame.offset,
        "kind": frame.kind,
        "language": frame.language,
        "why_unknown": frame.why_unknown,
    }


DESCRIBED: Mapping[type, Callable[[Any], Json]] = {Frame: frame_document, Holder: holder_document}
"""What documents have as it is, for JsonText."""
ON_ONE_LINE = (Frame,)
"""Else a deep program's report is for a third blanks and line feeds, and no stack is read at a glance."""
