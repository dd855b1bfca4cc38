"""Which entries are set aside: by the user's suppressions, and by the built-in list of one-off allocations."""

from __future__ import annotations

from dataclasses import replace

from tracer.analysis.evidence import INHERITED
from tracer.analysis.one_offs import BUILT_IN, one_off
from tracer.analysis.options import AnalysisOptions
from tracer.model.findings import Findings, Leak


def set_aside(leak: Leak, options: AnalysisOptions) -> Leak:
    """Name what sets an entry aside; what is inherited is no leak anyhow and stays listed."""
    if leak.state == INHERITED:
        return leak
    own = next((rule for rule in options.suppressions if rule.matches(leak)), None)
    rule = own or (one_off(leak) if options.default_suppressions else None)
    return leak if rule is None else replace(leak, suppressed_by=str(rule))


def set_aside_again(findings: Findings, options: AnalysisOptions) -> Findings:
    """Judge by these options what another run reported; what it set aside by the user's own rules stays so."""
    leaks = [set_aside(_without_built_in(leak), options) for leak in (*findings.leaks, *findings.suppressed)]
    return replace(
        findings,
        leaks=tuple(leak for leak in leaks if leak.suppressed_by is None),
        suppressed=tuple(leak for leak in leaks if leak.suppressed_by is not None),
    )


def _without_built_in(leak: Leak) -> Leak:
    if leak.suppressed_by is None or not leak.suppressed_by.startswith(BUILT_IN):
        return leak
    return replace(leak, suppressed_by=None)
