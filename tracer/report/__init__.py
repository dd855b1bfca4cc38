"""Findings for people and for programs."""

from typing import TYPE_CHECKING

from tracer.lazy_names import names_of

if TYPE_CHECKING:
    from tracer.report.formats import FORMATS, Format, ReportOptions, format_for, write_to_file
    from tracer.report.json_report import write_json
    from tracer.report.text import write_text
    from tracer.report.text_options import TextOptions
else:
    __getattr__ = names_of(__name__, {
        "FORMATS": "formats", "Format": "formats", "ReportOptions": "formats", "format_for": "formats",
        "write_to_file": "formats", "write_json": "json_report", "TextOptions": "text_options", "write_text": "text",
    })  # fmt: skip

__all__ = [
    "FORMATS",
    "Format",
    "ReportOptions",
    "TextOptions",
    "format_for",
    "write_json",
    "write_text",
    "write_to_file",
]
