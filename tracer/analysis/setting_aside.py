"""Entries set aside: by the user's suppressions, and by the built-in list of one-off allocations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tracer.analysis.one_offs import BUILT_IN, OneOff, keeps_to_itself, one_off
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import matching
from tracer.model.findings import INDIRECT, INHERITED, ErrorFinding, Findings, FrameList, Leak


def set_aside(leaks: Iterable[Leak], options: AnalysisOptions) -> list[Leak]:
    """Name what sets entries aside; what is inherited is no leak anyhow and stays listed.

    What is lost with its owner is a part of what the owner's entry says: no built-in rule takes it from there.
    """
    known: dict[tuple[str, int], tuple[FrameList, OneOff | None]] = {}

    def built_in(leak: Leak) -> OneOff | None:
        """Look at each stack once: many entries have the same. It is kept here, so that its identity stays its own."""
        key = leak.kind, id(leak.stack)
        if key not in known:
            known[key] = leak.stack, one_off(leak)
        return known[key][1]

    return [leak if leak.state == INHERITED else _judged(leak, options, built_in) for leak in leaks]


def _judged(leak: Leak, options: AnalysisOptions, built_in: Callable[[Leak], OneOff | None]) -> Leak:
    own = next((rule for rule in options.suppressions if rule.matches(leak)), None) if options.suppressions else None
    rule = own or (built_in(leak) if options.default_suppressions else None)
    hangs_below = leak.reachability == INDIRECT and leak.owner is not None
    if rule is None or (isinstance(rule, OneOff) and (hangs_below or not keeps_to_itself(rule, leak))):
        return leak
    return replace(leak, suppressed_by=str(rule))


def set_aside_errors(
    errors: Sequence[ErrorFinding], options: AnalysisOptions
) -> tuple[tuple[ErrorFinding, ...], tuple[str, ...]]:
    """Return the errors that the user's suppressions leave, and a note for each suppression that took some away."""
    rules = [matching(options.suppressions, error) for error in errors]
    taken = Counter(str(rule) for rule in rules if rule is not None)
    left = tuple(error for error, rule in zip(errors, rules, strict=True) if rule is None)
    return left, tuple(f"{count:,} error{'s' * (count != 1)} suppressed: {rule}" for rule, count in taken.items())


def set_aside_again(findings: Findings, options: AnalysisOptions) -> Findings:
    """Judge by these options what another run reported; what it set aside by the user's own rules stays so."""
    leaks = set_aside(map(_without_built_in, (*findings.leaks, *findings.suppressed)), options)
    errors, notes = set_aside_errors(findings.errors, options)
    return replace(
        findings,
        errors=errors,
        notes=(*findings.notes, *notes),
        leaks=tuple(leak for leak in leaks if leak.suppressed_by is None),
        suppressed=tuple(leak for leak in leaks if leak.suppressed_by is not None),
    )


def _without_built_in(leak: Leak) -> Leak:
    if leak.suppressed_by is None or not leak.suppressed_by.startswith(BUILT_IN):
        return leak
    return replace(leak, suppressed_by=None)
