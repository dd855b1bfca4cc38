"""Names that were found nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made import server

from tracer.analysis.analysis import analyse
from tracer.errors import NothingFound
from tracer.model.snapshot import Coverage, Missing, SiteInfo, Snapshot, Unresolved
from tracer.pipeline.missing import check_found, find_missing
from tracer.report.verdict_line import verdict
from tracer.specs.catalogue import Catalogue
from tracer.specs.files import parse_spec
from tracer.specs.options import parse_type_option
from tracer.specs.presets import read_preset

CONN = parse_type_option("conn:create=conn_new,put=conn_unref")


def seen(*functions: str) -> Snapshot:
    snapshot, _ = server()
    infos = tuple(SiteInfo(1, function, "a.out", None) for function in functions)
    return replace(snapshot, sites=infos, coverage=replace(snapshot.coverage, unresolved=(), uncovered_instances=()))


def missing(snapshot: Snapshot, *descriptions: object, optional: bool = False) -> list[str]:
    return [str(m) for m in find_missing(snapshot, Catalogue(descriptions), optional=optional)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        (("conn_new", "conn_unref"), []),
        (("conn_new",), ["conn_unref of conn"]),
        (("malloc",), ["conn"]),
        ((), ["conn"]),
    ],
)
def test_a_type_and_a_function_that_nothing_has(functions: tuple[str, ...], expected: list[str]) -> None:
    assert missing(seen(*functions), CONN) == expected


def test_a_function_that_is_there_and_cannot_be_probed_is_found() -> None:
    snapshot = seen("conn_new")
    unresolved = (Unresolved("put", "conn", "conn_unref.isra.0", "was cloned"),)
    assert missing(replace(snapshot, coverage=replace(snapshot.coverage, unresolved=unresolved)), CONN) == []


def test_patterns_and_families_are_found_by_their_members() -> None:
    family = parse_spec('[[type]]\nname = "{type}"\nget = "{type}__get"\nput = "{type}__put"\n', "s.toml", "s")
    assert missing(seen("dso__get", "dso__put"), family) == []
    assert missing(seen("dso_get"), family) == ["{type}"]
    operators = parse_type_option("node:create=_ZN4NodeC2E*,put=_ZN4NodeD2E?")
    assert missing(seen("_ZN4NodeC2Ei", "_ZN4NodeD2Ev"), operators) == []


def test_a_spec_file_may_name_functions_of_other_versions() -> None:
    both = parse_spec('[[type]]\nname = "t"\nget = "t_get"\nput = ["t_put", "t_put_old"]\n', "s.toml", "s")
    assert missing(seen("t_get", "t_put"), both) == []


def test_of_a_preset_one_type_is_enough_and_auto_needs_none() -> None:
    preset = read_preset("stdio")
    function = preset.types[0].functions[0].spec.function.replace("*", "")
    assert missing(seen(function), preset) == []
    assert missing(seen("main"), preset) == ["preset stdio"]
    assert missing(seen("main"), preset, optional=True) == []


def test_the_verdict_is_not_clean_and_the_report_says_why() -> None:
    snapshot, code = server()
    coverage = Coverage(missing=(Missing("conn"),))
    findings = replace(analyse(replace(snapshot, coverage=coverage), code.symbols), leaks=(), errors=())
    assert "conn was found nowhere" in findings.coverage_gaps[0]
    assert verdict(findings).text == "refleak: no leak found, but conn was found nowhere"
    with pytest.raises(NothingFound, match=r"^found nowhere: conn$"):
        check_found(findings)
    check_found(replace(findings, coverage=replace(coverage, missing=())))
