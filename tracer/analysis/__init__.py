"""What a snapshot means: leaks, errors, totals. Pure functions over layer 0."""

from tracer.analysis.analysis import analyse
from tracer.analysis.options import AnalysisOptions
from tracer.analysis.suppression import Suppression, parse_suppressions
from tracer.analysis.verdict import failing_errors, has_findings

__all__ = ["AnalysisOptions", "Suppression", "analyse", "failing_errors", "has_findings", "parse_suppressions"]
