"""Every format tells the same: count and bytes of what is outstanding, summed from what was written."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hand_made import server
from junitparser import JUnitXml, Properties
from profile_readers import go_pprof
from sarif_pydantic import Sarif

from tracer.analysis import AnalysisOptions, analyse
from tracer.errors import UsageError
from tracer.model.findings import Findings
from tracer.model.selection import Selection
from tracer.report import FORMATS, ReportOptions, TextOptions, format_for, write_to_file

# Two objects; 7 pages, a name of 13 bytes, and 72 bytes in the child; one mapping. What is inherited or suppressed
# does not count.
COUNT, BYTES = 2 + 9 + 1, 7 * 4096 + 13 + 72 + (1 << 20)
Totals = tuple[int | None, int | None]


# Of the same entries where blocks were drawn with N = 8192: 1 / (1 - exp(-size / N)) for each.
SAMPLED_COUNT = 2 + (18 + 631 + 114) + 1
SAMPLED_BYTES = 72_870 + 8_199 + 8_228 + (1 << 20)


def findings(sample_bytes: int = 0) -> Findings:
    snapshot, code = server()
    snapshot = replace(snapshot, selection=Selection(sample_bytes=sample_bytes))
    return analyse(snapshot, code.symbols, AnalysisOptions(freed_stacks=True))


def written(name: str, found: Findings) -> bytes:
    out = io.BytesIO()
    options = ReportOptions(TextOptions(width=100, top=3 if name == "markdown" else 100))
    write_to_file(format_for(name, Path("x")), found, out, options)
    return out.getvalue()


def number(text: str) -> int:
    return int(text.replace(",", ""))


def of_text(path: Path) -> Totals:
    count = size = 0
    for head in re.findall(r"^#\d+  (.*(?:\n    \S.*)?)", path.read_text(), re.MULTILINE):
        if objects := re.match(r"([\d,]+) x ", head):
            count += number(objects[1])
        else:
            size += number(re.search(r"([\d,]+) bytes?", head)[1])
            count += number(re.search(r": ([\d,]+) (?:block|mapping)", head)[1])
    return count, size


def of_json(path: Path) -> Totals:
    leaks = [leak for leak in json.loads(path.read_text())["leaks"] if leak["state"] != "inherited"]
    leaks = [leak["estimated"] or leak for leak in leaks]
    return sum(leak["count"] for leak in leaks), sum(leak["bytes"] or 0 for leak in leaks)


def of_html(path: Path) -> Totals:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    leaks = json.loads(data)["leaks"]
    return sum(leak["count"] for leak in leaks), sum(leak["bytes"] or 0 for leak in leaks)


def of_markdown(path: Path) -> Totals:
    """Sum the rows, of which one stands for all that are not listed, and check the row of the sums."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in path.read_text().splitlines() if "|" in line]
    rows = [[cell.lstrip("~") for cell in row] for row in rows]
    rows = [row for row in rows if len(row) == 9 and re.fullmatch(r"[\d,]+", row[5])]
    *listed, all_ = [(number(row[5]), number(row[6] or "0")) for row in rows]
    assert len(listed) == 4
    assert (sum(count for count, _ in listed), sum(size for _, size in listed)) == all_
    return all_


def of_svg(path: Path) -> Totals:
    panels = ElementTree.parse(path).getroot().findall("{*}g")
    return sum(int(p.get("data-count", "")) for p in panels), sum(int(p.get("data-bytes", "")) for p in panels)


def of_profile(path: Path) -> Totals:
    profile = go_pprof(path)
    sums = dict(zip(profile.types, profile.sums(), strict=True))
    return sums["inuse_objects/count"], sums["inuse_space/bytes"]


def of_folded(path: Path) -> Totals:
    return None, sum(int(line.rpartition(" ")[2]) for line in path.read_text().splitlines())


def of_folded_objects(path: Path) -> Totals:
    return of_folded(path)[1], None


def of_speedscope(path: Path) -> Totals:
    weights = {profile["name"]: sum(profile["weights"]) for profile in json.loads(path.read_text())["profiles"]}
    return weights["outstanding objects"], weights["outstanding bytes"]


def of_sarif(path: Path) -> Totals:
    results = Sarif.model_validate_json(path.read_text()).runs[0].results or []
    facts = [r.model_extra | r.properties for r in results if r.partial_fingerprints]
    return sum(fact["occurrenceCount"] for fact in facts), sum(fact["bytes"] or 0 for fact in facts)


def of_junit(path: Path) -> Totals:
    found = [case.child(Properties) for suite in JUnitXml.fromfile(str(path)) for case in suite]
    entries = [{p.name: p.value for p in properties} for properties in found if properties is not None]
    entries = [entry for entry in entries if "id" in entry]
    return sum(int(entry["count"]) for entry in entries), sum(int(entry.get("bytes", "0")) for entry in entries)


def of_xunit(path: Path) -> Totals:
    """Of cases that fail: what others hold is in their text alone."""
    texts = [r.text for suite in JUnitXml.fromfile(str(path)) for case in suite for r in case.result if r.text]
    facts = [dict(line.split(" ", 1) for line in text.splitlines() if " " in line) for text in texts]
    entries = [fact for fact in facts if "count" in fact]
    return sum(int(entry["count"]) for entry in entries), sum(int(entry.get("bytes", "0")) for entry in entries)


READERS: dict[str, Callable[[Path], Totals]] = {
    "text": of_text, "json": of_json, "html": of_html, "markdown": of_markdown, "svg": of_svg, "pprof": of_profile,
    "gperftools": of_profile, "folded": of_folded, "folded-objects": of_folded_objects, "speedscope": of_speedscope,
    "sarif": of_sarif, "junit": of_junit, "xunit": of_xunit,
}  # fmt: skip


def test_there_is_a_reader_for_every_format() -> None:
    assert list(READERS) == [format_.name for format_ in FORMATS]


@pytest.mark.parametrize("name", READERS)
def test_totals_are_equal(name: str, tmp_path: Path) -> None:
    if READERS[name] is of_profile and shutil.which("go") is None:
        pytest.skip("needs go (Debian: golang-go)")
    path = tmp_path / f"report{format_for(name, Path('x')).suffixes[0]}"
    path.write_bytes(written(name, findings()))
    count, size = READERS[name](path)
    assert count in (COUNT, None)
    assert size in (BYTES, None)


@pytest.mark.parametrize("name", [name for name in READERS if name != "text"])
def test_estimated_totals_are_equal(name: str, tmp_path: Path) -> None:
    if READERS[name] is of_profile and shutil.which("go") is None:
        pytest.skip("needs go (Debian: golang-go)")
    path = tmp_path / f"report{format_for(name, Path('x')).suffixes[0]}"
    path.write_bytes(written(name, findings(8192)))
    count, size = READERS[name](path)
    assert count in (SAMPLED_COUNT, None)
    assert size in (SAMPLED_BYTES, None)


@pytest.mark.parametrize("name", READERS)
def test_a_report_is_the_same_each_time(name: str) -> None:
    assert written(name, findings()) == written(name, findings())


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("a.json", "json"), ("a.speedscope.json", "speedscope"), ("a.sarif.json", "sarif"), ("A.HTML", "html"),
        ("a.pb.gz", "pprof"), ("a.gz", "text"), ("a", "text"), ("a.objects.folded", "folded-objects"),
        ("a.folded", "folded"), ("a.heap", "gperftools"), ("a.xml", "junit"), ("a.md", "markdown"), ("a.svg", "svg"),
    ],
)  # fmt: skip
def test_the_suffix_chooses(output: str, name: str) -> None:
    assert format_for(None, Path(output)).name == name


def test_the_name_is_stronger_than_the_suffix() -> None:
    assert format_for("sarif", Path("a.json")).name == "sarif"


def test_bytes_are_not_written_to_a_terminal() -> None:
    with pytest.raises(UsageError, match="pprof is no text") as failure:
        format_for("pprof", None)
    assert failure.value.hint == "give it a file: -o leaks.pb.gz"
