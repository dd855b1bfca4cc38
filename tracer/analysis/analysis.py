"""One snapshot in, all findings out."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.allocations import allocation_leaks, inherited_allocations
from tracer.analysis.code_ranges import code_ranges
from tracer.analysis.doubts import doubts
from tracer.analysis.errors import error_findings
from tracer.analysis.evidence import INHERITED, Evidence
from tracer.analysis.freed import freed_by_stack
from tracer.analysis.mapped import mapping_leaks
from tracer.analysis.one_offs import one_off
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.references import inherited_references, reference_leaks
from tracer.analysis.suppression import unused_notes
from tracer.analysis.survivors import survivors
from tracer.analysis.totals import allocation_totals, notes, type_rows
from tracer.model.findings import Findings, Leak
from tracer.model.frames import Symbols
from tracer.model.snapshot import Snapshot

_KINDS = ("reference", "allocation", "mapping")
_DEFAULTS = AnalysisOptions()


def analyse(snapshot: Snapshot, symbols: Symbols, options: AnalysisOptions = _DEFAULTS) -> Findings:
    """Judge a snapshot. Pure: the same snapshot gives the same findings, in the same order."""
    evidence = Evidence(snapshot, symbols, options.samples)
    merged = [
        *reference_leaks(evidence),
        *inherited_references(evidence),
        *allocation_leaks(evidence),
        *inherited_allocations(evidence),
        *mapping_leaks(evidence),
    ]
    rows = type_rows(evidence)
    judged = [_suppress(leak, options) for leak in sorted(merged, key=_rank)]
    return Findings(
        mode=snapshot.mode,
        duration_ns=snapshot.duration_ns,
        complete=snapshot.complete,
        target_ended=snapshot.target_ended,
        losses=snapshot.losses,
        coverage=snapshot.coverage,
        processes=snapshot.processes,
        allocations=allocation_totals(snapshot),
        types=rows,
        leaks=tuple(leak for leak in judged if leak.suppressed_by is None),
        errors=error_findings(evidence),
        suppressed=tuple(leak for leak in judged if leak.suppressed_by is not None),
        doubts=doubts(snapshot.coverage.uncovered_copies, (row.type for row in rows)),
        notes=(*notes(snapshot), *unused_notes(options.suppressions, merged)),
        events_seen=snapshot.events_seen,
        code=code_ranges(snapshot),
        freed=freed_by_stack(evidence) if options.freed_stacks else (),
        survivors=survivors(snapshot),
    )


def _rank(leak: Leak) -> tuple[int, int, int, str, int, str, int]:
    first = leak.instances[0].address if leak.instances else 0
    return (_KINDS.index(leak.kind), -(leak.bytes or 0), -leak.count, leak.id, leak.pid, leak.state, first)


def _suppress(leak: Leak, options: AnalysisOptions) -> Leak:
    """Name what sets an entry aside; what is inherited is no leak anyhow and stays listed."""
    if leak.state == INHERITED:
        return leak
    own = next((rule for rule in options.suppressions if rule.matches(leak)), None)
    rule = own or (one_off(leak) if options.default_suppressions else None)
    return leak if rule is None else replace(leak, suppressed_by=str(rule))
