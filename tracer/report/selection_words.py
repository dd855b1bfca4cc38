"""Selection words: of what part of the target's memory a report speaks, where that is not all."""

from __future__ import annotations

from tracer.model.findings import Findings
from tracer.model.selection import ANY_SIZE, Sample, Selection
from tracer.report.amounts import counted, duration, size


def limits(findings: Findings) -> str:
    """Return "sampled blocks of at least 4.0 KiB, older than 5.0 s"; empty where all is reported."""
    selection = findings.selection
    blocks = " ".join(["sampled"] * selection.is_sampled + ["blocks"]) if not selection.keeps_all else ""
    sizes = _sizes(selection)
    age = f"older than {duration(findings.older_ns)}" if findings.older_ns else ""
    return ", ".join(part for part in (" ".join(filter(None, (blocks, sizes))), age) if part)


def _sizes(selection: Selection) -> str:
    if not selection.is_by_size:
        return ""
    if selection.max_size == ANY_SIZE:
        return f"of at least {size(selection.min_size)}"
    if not selection.min_size:
        return f"of at most {size(selection.max_size)}"
    return f"of {size(selection.min_size)} to {size(selection.max_size)}"


def rate(selection: Selection) -> str:
    """Return what the sampling was, in words: "one draw for every 512.0 KiB"."""
    return f"one draw for every {size(selection.sample_bytes)}"


def estimate(size_bytes: int, count: int, noun: str, sample: Sample) -> str:
    """Return "~12.3 MiB ± 0.8 MiB in ~1,204 ± 80 blocks, sampled"."""
    return f"{sampled_size(size_bytes, sample)} in {sampled_count(count, noun, sample)}, sampled"


def sampled_size(size_bytes: int, sample: Sample) -> str:
    if not sample.bytes_error:
        return size(size_bytes)
    return f"~{size(size_bytes)} \N{PLUS-MINUS SIGN} {size(sample.bytes_error)}"


def sampled_count(count: int, noun: str, sample: Sample) -> str:
    if not sample.count_error:
        return counted(count, noun)
    number, _, word = counted(count, noun).partition(" ")
    return f"~{number} \N{PLUS-MINUS SIGN} {sample.count_error:,} {word}"
