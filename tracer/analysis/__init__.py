"""Analysis of a snapshot: leaks, errors, totals. Pure functions of data."""

from typing import TYPE_CHECKING

from tracer.lazy_names import names_of

if TYPE_CHECKING:
    from tracer.analysis.analysis import analyse
    from tracer.analysis.options import AnalysisOptions
    from tracer.analysis.suppression import Suppression, parse_suppressions
    from tracer.analysis.verdict import failing_errors, has_findings
else:
    __getattr__ = names_of(__name__, {
        "analyse": "analysis", "AnalysisOptions": "options", "Suppression": "suppression",
        "parse_suppressions": "suppression", "failing_errors": "verdict", "has_findings": "verdict",
    })  # fmt: skip

__all__ = ["AnalysisOptions", "Suppression", "analyse", "failing_errors", "has_findings", "parse_suppressions"]
