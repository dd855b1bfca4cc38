"""Findings for people and for programs."""

from tracer.report.formats import FORMATS, Format, ReportOptions, format_for, write_to_file
from tracer.report.json_report import write_json
from tracer.report.text import TextOptions, write_text

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
