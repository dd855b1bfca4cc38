"""Findings for people and for programs."""

from tracer.report.json_report import write_json
from tracer.report.text import TextOptions, write_text

__all__ = ["TextOptions", "write_json", "write_text"]
