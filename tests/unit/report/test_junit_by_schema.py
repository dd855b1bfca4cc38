"""JUnit's XML for readers that check it: the rules of both schemas, written down from junit-10.xsd and JUnit.xsd."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hand_made import LOSSES, server, snapshot
from junitparser import JUnitXml

from tracer.analysis import analyse
from tracer.model.findings import Findings
from tracer.report.formats import format_for
from tracer.report.junit import write_junit
from tracer.report.junit_by_schema import write_junit_by_schema

Element = ElementTree.Element
SUITE = {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"}
"""What Ant's schema wants of a suite in a list of suites, and no more; the plugin's allows each of these."""
RESULT = {"failure": {"type", "message"}, "error": {"type", "message"}, "skipped": {"message"}}
NUMBER = r"\d+(\.\d{0,3})?"


def check(top: Element) -> None:
    assert (top.tag, top.attrib) == ("testsuites", {})
    for number, suite in enumerate(top):
        assert suite.tag == "testsuite" and set(suite.attrib) == SUITE and suite.get("id") == str(number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        assert re.fullmatch(NUMBER, suite.get("time", ""))
        first, *cases, out, err = suite
        assert [first.tag, out.tag, err.tag] == ["properties", "system-out", "system-err"]
        for case in cases:
            assert case.tag == "testcase" and set(case.attrib) == {"name", "classname", "time"}
            assert re.fullmatch(NUMBER, case.get("time", ""))
            assert len(case) <= 1
            for result in case:
                allowed = RESULT[result.tag]
                assert len(result) == 0 and {"type"} & allowed <= set(result.attrib) <= allowed


def found() -> Findings:
    snap, made = server()
    return replace(analyse(replace(snap, losses=LOSSES), made.symbols))


def written(findings: Findings) -> str:
    out = io.StringIO()
    write_junit_by_schema(findings, out, "/src")
    return out.getvalue()


@pytest.mark.parametrize("what", [found(), analyse(snapshot(), {}), analyse(snapshot(processes=()), {})])
def test_both_schemas_allow_it(what: Findings) -> None:
    check(ElementTree.fromstring(written(what)))


def test_the_rules_refuse_what_the_schemas_refuse() -> None:
    out = io.StringIO()
    write_junit(found(), out, "/src")
    with pytest.raises(AssertionError):
        check(ElementTree.fromstring(out.getvalue()))


def test_the_cases_are_those_of_junit_and_their_facts_are_in_the_text(tmp_path: Path) -> None:
    out = io.StringIO()
    write_junit(found(), out, "/src")
    (tmp_path / "a.xml").write_text(out.getvalue())
    (tmp_path / "b.xml").write_text(written(found()))
    (usual,), (strict,) = (JUnitXml.fromfile(str(tmp_path / name)) for name in ("a.xml", "b.xml"))
    names = [[(c.classname, c.name, [type(r) for r in c.result]) for c in suite] for suite in (usual, strict)]
    assert names[0] == names[1] and len({name[:2] for name in names[0]}) == len(names[0])
    leak = next(case for case in strict if case.name == "allocation malloc ca22a120ac9f")
    assert {"at body.c:118", "id ca22a120ac9f", "state leaked", "count 7", "bytes 28672"} <= set(
        leak.result[0].text.splitlines()
    )


def test_its_suffix_is_longer_than_that_of_junit() -> None:
    assert [format_for(None, Path(name)).name for name in ("x.xunit.xml", "x.xml")] == ["xunit", "junit"]
