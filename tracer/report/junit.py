"""Findings for a test dashboard: JUnit's XML.

Source of the format: what readers agree on (Jenkins' junit step, GitLab); junit_by_schema.py has what schemas allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO
from xml.etree import ElementTree

from tracer.model.findings import LEAKED, REMARKS, ErrorFinding, Findings
from tracer.model.frames import Frame
from tracer.model.snapshot import Process
from tracer.report.cause_entries import CauseEntry, cause_entries, hanging_words, same_cause_words
from tracer.report.class_words import SHOWN, held_lines
from tracer.report.entry_sentence import error_sentence, leak_sentence, offender, stack_text
from tracer.report.scope import command, end, unseen
from tracer.report.selection_words import rate
from tracer.report.source_location import main_frame, source_place
from tracer.report.verdict_line import verdict
from tracer.report.weights import listed, numbered_names
from tracer.report.xml_text import xml_safe

Element = ElementTree.Element
Names = Mapping[int, str]


def write_junit(
    findings: Findings, stream: TextIO, source_root: str | None = None, show: Sequence[str] = SHOWN
) -> None:
    """Write one suite: a case per process, one that fails per cause and per error, one for what was lost.

    What is outstanding but not judged a leak is a skipped case; so is the last one where data were lost, or not all
    was seen.
    """
    top = junit_document(findings, source_root, show)
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(top, "unicode") + "\n")


def junit_document(findings: Findings, source_root: str | None, show: Sequence[str]) -> Element:
    names = numbered_names(findings)
    entries = cause_entries(listed(findings, show))
    cases = [*_processes(findings, names), *(_leak(entry, names, source_root) for entry in entries)]
    cases += [_error(error, names, source_root) for error in findings.errors]
    cases.append(_completeness(findings))
    _number(cases)
    sums = {what: sum(case.find(what[:-1]) is not None for case in cases) for what in ("failures", "errors")}
    skipped = sum(case.find("skipped") is not None for case in cases)
    numbers = {"tests": str(len(cases)), **{what: str(n) for what, n in sums.items()}, "skipped": str(skipped)}
    time = f"{findings.duration_ns / 1e9:.3f}"
    top = Element("testsuites", {"name": "refleak", **numbers, "time": time})
    suite = ElementTree.SubElement(top, "testsuite", {"name": "refleak", **numbers, "time": time})
    suite.extend(cases)
    said = "\n".join((verdict(findings).text, *held_lines(findings, show)))
    ElementTree.SubElement(suite, "system-out").text = xml_safe(said)
    ElementTree.indent(top, " ")
    return top


def _number(cases: list[Element]) -> None:
    """Give each case a name of its own, as readers want it: equal ones get their number among them."""
    seen: Counter[tuple[str, str]] = Counter()
    for case in cases:
        key = case.get("classname", ""), case.get("name", "")
        seen[key] += 1
        if seen[key] > 1:
            case.set("name", f"{key[1]} ({seen[key]})")


def _processes(findings: Findings, names: Names) -> list[Element]:
    """A process passes if nothing in it failed: then each has its own case too."""
    return [_process(process, names) for process in findings.last_spaces]


def _process(process: Process, names: Names) -> Element:
    case = _case(names, process.pid, f"{command(process)}: {end(process)}", None, None)
    if process.ended_ns is not None:
        case.set("time", f"{max(0, process.ended_ns - process.started_ns) / 1e9:.3f}")
    return case


def _leak(entry: CauseEntry, names: Names, root: str | None) -> Element:
    leak = entry.summed
    sentence = leak_sentence(leak)
    # Names must not change from run to run, or dashboards see another test each time: no numbers in them.
    title = f"{leak.kind} {leak.type or ''} {entry.id}".replace("  ", " ")
    case = _case(names, leak.pid, title, main_frame(leak), root)
    facts = [
        ("id", leak.id), ("state", leak.state), ("reachability", leak.reachability), ("count", leak.count),
        ("bytes", leak.bytes),
    ]  # fmt: skip
    for key, value in (*facts, ("sampled", leak.sample.count if leak.sample else None)):
        if value is not None:
            _property(case, key, value)
    if leak.state == LEAKED and not entry.is_held:
        _add(case, "failure", sentence, leak.state, [sentence, *stack_text(leak.stack), *leak.notes, *_below(entry)])
    else:
        _add(case, "skipped", sentence if entry.is_held else f"{sentence}: not judged", None, [])
    return case


def _below(entry: CauseEntry) -> list[str]:
    lines = [same_cause_words(entry)] if entry.others else []
    for other in entry.others:
        lines += ["", f"{other.count:,}", *stack_text(other.stack)]
    return [*lines, *hanging_words(entry)]


def _error(error: ErrorFinding, names: Names, root: str | None) -> Element:
    sentence = error_sentence(error)
    at = offender(error)
    where = at.function if at is not None and at.function else "unknown place"
    case = _case(names, error.pid, f"{error.kind} {error.type or ''} in {where}".replace("  ", " "), at, root)
    if error.kind in REMARKS:
        _add(case, "skipped", f"{sentence}: no error by itself", None, [])
        return case
    lines = [sentence, *stack_text(error.stack)]
    for what, stack in (("released at", error.released_at), ("made at", error.created_at)):
        if stack:
            lines += [what, *stack_text(stack)]
    _add(case, "error", sentence, error.kind, lines)
    return case


def _completeness(findings: Findings) -> Element:
    case = Element("testcase", {"classname": "refleak", "name": "nothing was lost"})
    if doubts := unseen(findings):
        lost = [f"{loss.count} lost: {loss.reason}" for loss in findings.losses]
        _add(case, "skipped", f"not complete: {'; '.join([*lost, *doubts[not findings.complete :]])}", None, [])
    elif not findings.is_whole:
        _add(case, "skipped", f"blocks were sampled: {rate(findings.selection)}", None, [])
    return case


def _case(names: Names, pid: int, title: str, frame: Frame | None, root: str | None) -> Element:
    program = names.get(pid, f"pid {pid}")
    case = Element("testcase", {"classname": xml_safe(f"refleak.{program}"), "name": xml_safe(title)})
    at = source_place(frame, root) if frame is not None else None
    if at is not None:
        case.set("file", xml_safe(at.path))
        if at.line:
            case.set("line", str(at.line))
    _property(case, "pid", pid)
    return case


def _property(case: Element, key: str, value: object) -> None:
    properties = case.find("properties")
    if properties is None:
        properties = ElementTree.SubElement(case, "properties")
    ElementTree.SubElement(properties, "property", {"name": key, "value": str(value)})


def _add(case: Element, what: str, message: str, kind: str | None, lines: list[str]) -> None:
    result = ElementTree.SubElement(case, what, {"message": xml_safe(message)} | ({"type": kind} if kind else {}))
    result.text = xml_safe("\n".join(lines)) or None
