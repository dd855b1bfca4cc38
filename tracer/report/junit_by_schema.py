"""JUnit's XML as schemas have it, of which some readers refuse the rest.

Sources of the format: junit-10.xsd of Jenkins' xUnit plugin, and JUnit.xsd of Windy Road for Ant's tasks. Both know no
file, line and properties of a case; Ant's wants the rest in one order, and a time and a host of each suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO
from xml.etree import ElementTree

from tracer.model.findings import Findings
from tracer.report.class_words import SHOWN
from tracer.report.junit import Element, junit_document

_NO_TIME = "1970-01-01T00:00:00"
"""A report does not know its date, so that it is the same from a recording."""
_OF_A_SUITE = {"timestamp": _NO_TIME, "hostname": "localhost", "id": "0", "package": "refleak"}
_RESULTS = ("failure", "error")


def write_junit_by_schema(
    findings: Findings, stream: TextIO, source_root: str | None = None, show: Sequence[str] = SHOWN
) -> None:
    """Write what `write_junit` writes, with the place and the properties of a failed case in its text."""
    top = junit_document(findings, source_root, show)
    top.attrib.clear()
    for suite in top:
        suite.attrib.update(_OF_A_SUITE)
        suite.insert(0, Element("properties"))
        ElementTree.SubElement(suite, "system-err")
        for case in suite.iter("testcase"):
            _narrow(case)
    ElementTree.indent(top, " ")
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(top, "unicode") + "\n")


def _narrow(case: Element) -> None:
    file, line = (case.attrib.pop(name, None) for name in ("file", "line"))
    case.attrib.setdefault("time", "0")
    facts = [f"at {file}:{line}" if line else f"at {file}"] if file else []
    for properties in case.findall("properties"):
        facts += [f"{one.get('name')} {one.get('value')}" for one in properties]
        case.remove(properties)
    for result in case:
        if result.tag in _RESULTS:
            result.text = "\n".join(filter(None, (result.text, *facts)))
