"""The verdict's parts, of which an exit status is made."""

from __future__ import annotations

from tracer.model.findings import REMARKS, ErrorFinding, Findings


def failing_errors(findings: Findings) -> tuple[ErrorFinding, ...]:
    """Return the broken rules; a counter that was initialised anew, or freed with its creator's reference, breaks none.

    Memory on the stack, or freed by other means than the last put, is reused that way by correct programs.
    """
    return tuple(error for error in findings.errors if error.kind not in REMARKS)


def has_findings(findings: Findings) -> bool:
    """Tell whether something leaked or a rule was broken; never for what is suppressed, inherited or outstanding."""
    return bool(findings.leaked or failing_errors(findings))
