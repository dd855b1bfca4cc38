"""One snapshot in, all findings out."""

from __future__ import annotations

from tracer.analysis.allocations import allocation_leaks, inherited_allocations
from tracer.analysis.bad_frees import BadFrees
from tracer.analysis.causes import with_causes
from tracer.analysis.code_ranges import code_ranges
from tracer.analysis.coverage_gaps import hidden_ends, missing_notes, uncovered_gaps
from tracer.analysis.dominator_tree import DominatorTrees
from tracer.analysis.doubtful_errors import without_doubtful
from tracer.analysis.errors import error_findings
from tracer.analysis.evidence import Evidence
from tracer.analysis.freed import freed_by_stack
from tracer.analysis.mapped import mapping_leaks
from tracer.analysis.min_age import older_than
from tracer.analysis.object_memory import with_memory
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.periods import periods
from tracer.analysis.reached import suppressed_with_owners, with_below
from tracer.analysis.references import inherited_references, reference_leaks
from tracer.analysis.resident import heap_tops
from tracer.analysis.retained import growing, retainers
from tracer.analysis.runtime_hints import runtime_hints
from tracer.analysis.setting_aside import set_aside, set_aside_errors
from tracer.analysis.shown_names import shown_snapshot, shown_symbols
from tracer.analysis.suppression import unused_notes
from tracer.analysis.survivors import survivors
from tracer.analysis.totals import allocation_totals, notes, type_names, type_rows
from tracer.model.addresses import Space
from tracer.model.findings import Findings, Leak
from tracer.model.frames import Symbols
from tracer.model.heap_course import HeapPoint
from tracer.model.snapshot import EVERY_KIND, Snapshot
from tracer.model.urgency import urgency

_DEFAULTS = AnalysisOptions()


def analyse(snapshot: Snapshot, symbols: Symbols, options: AnalysisOptions = _DEFAULTS) -> Findings:
    """Judge a snapshot. Pure: the same snapshot gives the same findings, in the same order."""
    snapshot, symbols = shown_snapshot(snapshot), shown_symbols(symbols)
    everything = evidence = Evidence(snapshot, symbols, options.samples)
    if options.older_ns:
        evidence = Evidence(older_than(snapshot, options.older_ns, everything.end_ns), symbols, options.samples)
    references, objects = reference_leaks(evidence)
    merged = [
        *references,
        *inherited_references(evidence),
        *allocation_leaks(evidence, objects),
        *inherited_allocations(evidence, sums=options.sums_inherited),
        *mapping_leaks(evidence),
    ]
    rows = type_rows(everything)
    frees = BadFrees(everything)
    certain, doubts = without_doubtful(everything, frees.broken)
    broken = error_findings(everything, frees, certain)
    errors, suppressed_errors = set_aside_errors(broken, options)
    ranked = set_aside(sorted(with_below(merged), key=_rank), options)
    judged = with_memory(with_causes(suppressed_with_owners(ranked)))
    occurred = (*(row.type for row in rows), *sorted(everything.types_in_specs(snapshot.objects["site"])))
    gaps = uncovered_gaps(snapshot.coverage, occurred)
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
        errors=errors,
        suppressed=tuple(leak for leak in judged if leak.suppressed_by is not None),
        coverage_gaps=(
            *missing_notes(snapshot.coverage.missing),
            *(hidden_ends(snapshot.losses, snapshot.coverage, judged) if everything.is_judged else ()),
            *gaps.values(),
        ),
        partly_seen=tuple(gaps),
        notes=(
            *everything.crash_notes(), *doubts, *runtime_hints(judged), *notes(snapshot, frees.unjudged),
            *suppressed_errors, *unused_notes(options.suppressions, merged, broken),
        ),
        events_seen=snapshot.events_seen,
        code=code_ranges(snapshot),
        freed=freed_by_stack(everything) if options.freed_stacks else (),
        survivors=survivors(snapshot),
        heap_course=tuple(HeapPoint(*row) for row in snapshot.heap_course.tolist()),
        selection=snapshot.selection,
        older_ns=options.older_ns,
        type_names=type_names(snapshot, rows),
        periods=periods(everything),
        scans=snapshot.scans,
        growing=retainers(judged, *growing(judged)),
        dominators=DominatorTrees(judged),
        heap_tops=tuple(heap_tops(everything)),
    )


def _rank(leak: Leak) -> tuple[int, int, int, int, str, Space, str, str, int]:
    first = leak.instances[0].address if leak.instances else 0
    rest = leak.id, leak.space, leak.state, leak.reachability or "", first
    return (urgency(leak), EVERY_KIND.index(leak.kind), -(leak.bytes or 0), -leak.count, *rest)
