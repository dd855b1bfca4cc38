"""The JSON report: the contract that other programs rely on; described by docs/report.schema.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TextIO

from tracer import __version__
from tracer.model.findings import (
    BalanceNode,
    ErrorFinding,
    Findings,
    FrameList,
    Instance,
    Leak,
    StackCount,
    UnpairedGet,
)
from tracer.model.frames import Frame
from tracer.model.snapshot import Coverage, Process
from tracer.report.mapped_totals import mapped_totals

FORMAT, VERSION = "refleak-report", 1
Json = Mapping[str, object]


def write_json(findings: Findings, stream: TextIO) -> None:
    """Write one JSON document, in ASCII, ended by a newline. Sizes in bytes, times in ns since the trace began."""
    json.dump(document(findings), stream, indent=1)
    stream.write("\n")


def document(findings: Findings) -> dict[str, object]:
    """Return the report as what `json` writes: lists, dicts, strings, ints, bools and None."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tool": {"name": "refleak", "version": __version__},
        "doubts": list(findings.doubts),
        "mode": findings.mode,
        "duration_ns": findings.duration_ns,
        "target_ended": findings.target_ended,
        "events_seen": findings.events_seen,
        "complete": findings.complete,
        "lost": [{"reason": o.reason, "count": o.count, "remedy": o.remedy} for o in findings.losses],
        "probes": _probes(findings.coverage),
        "processes": [_process(process) for process in findings.processes],
        "totals": _totals(findings),
        "leaks": [_leak(leak) for leak in findings.leaks],
        "errors": [_error(error) for error in findings.errors],
        "suppressed": {
            "count": sum(leak.count for leak in findings.suppressed),
            "bytes": sum(leak.bytes or 0 for leak in findings.suppressed),
            "entries": [_leak(leak) for leak in findings.suppressed],
        },
        "notes": list(findings.notes),
    }


def _probes(coverage: Coverage) -> Json:
    return {
        "attached": coverage.attached,
        "unresolved": [
            {"operation": u.operation, "type": u.type, "function": u.function, "reason": u.reason}
            for u in coverage.unresolved
        ],
        "inlined_not_covered": [
            {"function": c.function, "copies": c.copies, "operation": c.operation, "type": c.type, "reason": c.reason}
            for c in coverage.uncovered_copies
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
            "outstanding": blocks.outstanding,
            "outstanding_bytes": blocks.outstanding_bytes,
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
        "count": leak.count,
        "bytes": leak.bytes,
        "size_min": leak.size_min,
        "size_max": leak.size_max,
        "made": leak.made,
        "freed": leak.freed,
        "stack": _stack(leak.stack),
        "stack_complete": leak.stack_complete,
        "stack_status": leak.stack_status,
        "own_frame": leak.own_frame,
        "instances": [_instance(instance) for instance in leak.instances],
        "gets": _calls(leak.gets) if leak.kind == "reference" else None,
        "puts": _calls(leak.puts) if leak.kind == "reference" else None,
        "unpaired": [_unpaired(get) for get in leak.unpaired],
        "healthy": _calls(leak.healthy) if leak.kind == "reference" else None,
        "balance": None if leak.balance is None else _balance(leak.balance.pruned()),
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


def _calls(calls: Iterable[StackCount]) -> list[Json]:
    return [{"stack": _stack(call.stack), "count": call.count} for call in calls]


def _unpaired(get: UnpairedGet) -> Json:
    return {"stack": _stack(get.stack), "count": get.count, "confidence": get.confidence, "reason": get.reason}


def _balance(node: BalanceNode) -> Json:
    folded = {"paths": node.folded.paths, "gets": node.folded.gets, "puts": node.folded.puts}
    return {
        "frame": None if node.frame is None else _stack((node.frame,))[0],
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
        "address": hex(error.address),
        "stack": _stack(error.stack),
        "created_at": None if error.created_at is None else _stack(error.created_at),
        "released_at": None if error.released_at is None else _stack(error.released_at),
        "probably": None if error.probably is None else _stack(error.probably),
        "reason": error.reason,
    }


def _stack(frames: FrameList) -> list[Json]:
    return [frame_document(frame) for frame in frames]


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
