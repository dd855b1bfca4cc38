"""Reports of blocks that were sampled or chosen by size or age: estimates, their errors, and what is never claimed."""

from __future__ import annotations

import argparse
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import LOSSES, SECOND, Code, blocks, mapped, objects, process, records, server, snapshot

from tracer.analysis import AnalysisOptions, analyse
from tracer.analysis.baseline import against_baseline
from tracer.analysis.comparison import compare
from tracer.analysis.estimates import alike, weights
from tracer.analysis.policy import parse_policy
from tracer.cli.options import duration_ns
from tracer.errors import CannotRead, UsageError
from tracer.model.findings import AllocationTotals, Findings
from tracer.model.records import TOTALS_RECORD
from tracer.model.selection import KEEPS_ALL, Sample, Selection
from tracer.pipeline.trace_options import TraceOptions
from tracer.recording.chunks import PLAIN_VERSION, VERSION
from tracer.recording.reader import read_recording
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter
from tracer.report import TextOptions, write_text
from tracer.report.comparison_report import write_comparison
from tracer.report.json_reader import read_json
from tracer.report.json_report import write_json
from tracer.report.page import Page
from tracer.report.verdict_line import verdict

N = 4096


def written(findings: Findings) -> dict[str, Any]:
    stream = io.StringIO()
    write_json(findings, stream)
    return dict(json.loads(stream.getvalue()))


def found(counts: dict[int, int], selection: Selection = Selection(sample_bytes=N), **options: int) -> Findings:  # noqa: B008
    """Return the findings of a snapshot with so many blocks of each size, all of one stack."""
    code = Code()
    stack = code.stack(1, code.frame("malloc", binary=2), code.frame("f", "f.c:3"))
    sizes = [size for size, count in counts.items() for _ in range(count)]
    live = blocks(*({"address": 64 * i, "size": size} for i, size in enumerate(sizes)), stack=stack)
    totals = [{"stack": 1, "made": len(sizes) + 5, "made_bytes": sum(sizes) + 500, "freed": 5, "freed_bytes": 500}]
    snap = snapshot(code, allocations=live, selection=selection, totals=records(TOTALS_RECORD, totals))
    return analyse(snap, code.symbols, AnalysisOptions(**options))  # type: ignore[arg-type]


def text(findings: Findings, width: int = 100) -> str:
    stream = io.StringIO()
    write_text(findings, stream, TextOptions(width=width))
    return stream.getvalue()


def p(size: int) -> float:
    return 1 - math.exp(-size / N)


def test_a_block_stands_for_the_inverse_of_its_probability() -> None:
    (leak,) = found({100: 7, 9000: 3}).leaks
    assert (leak.count, leak.bytes) == (round(7 / p(100) + 3 / p(9000)), round(700 / p(100) + 27_000 / p(9000)))
    assert leak.sample is not None and (leak.kept, leak.sample.bytes) == (10, 27_700)
    variance = 7 * (1 - p(100)) / p(100) ** 2 + 3 * (1 - p(9000)) / p(9000) ** 2
    assert leak.sample.count_variance == pytest.approx(variance)
    of_bytes = 7 * 100**2 * (1 - p(100)) / p(100) ** 2 + 3 * 9000**2 * (1 - p(9000)) / p(9000) ** 2
    assert leak.sample.bytes_variance == pytest.approx(of_bytes)
    assert (leak.size_min, leak.size_max) == (100, 9000)


def test_what_is_certain_has_no_error() -> None:
    (leak,) = found({N * 50: 13}).leaks
    assert (leak.count, leak.bytes) == (13, 13 * N * 50)
    assert leak.sample is not None and (leak.sample.count_error, leak.sample.bytes_error) == (0, 0)
    assert "2.5 MiB leaked: 13 blocks of 204,800, sampled (malloc)" in text(found({N * 50: 13}))


def test_a_block_of_no_bytes_counts_as_one_byte() -> None:
    sizes = np.array([0, 1], dtype=np.uint64)
    assert weights(sizes, Selection(sample_bytes=N)).tolist() == [pytest.approx(1 / p(1))] * 2
    (leak,) = found({0: 1}).leaks
    assert (leak.count, leak.bytes) == (round(1 / p(1)), 0)


def test_without_sampling_nothing_is_estimated() -> None:
    findings = found({100: 7}, KEEPS_ALL)
    (leak,) = findings.leaks
    assert (leak.count, leak.bytes, leak.kept, leak.sample) == (7, 700, 7, None)
    assert (leak.made, leak.freed) == (12, 5)
    assert findings.allocations == AllocationTotals(0, 0, 7, 700)
    assert findings.is_whole


def test_what_was_freed_is_estimated_from_its_mean_size() -> None:
    (leak,) = found({100: 7}).leaks
    assert leak.freed == round(5 / p(100))
    assert leak.made == leak.freed + leak.count
    assert alike(0, 0, Selection(sample_bytes=N)) == (0, 0)
    assert alike(5, 500, KEEPS_ALL) == (5, 500)


def test_mappings_and_objects_are_not_estimated() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:3"))
    snap = snapshot(
        code, selection=Selection(sample_bytes=N), mapped=mapped({"start": 4096, "length": 4096, "stack": stack}),
        objects=objects({"address": 64, "stack": stack}),
    )  # fmt: skip
    leaks = analyse(snap, code.symbols).leaks
    assert [(leak.kind, leak.count, leak.bytes, leak.sample) for leak in leaks] == [
        ("reference", 1, None, None), ("mapping", 1, 4096, None),
    ]  # fmt: skip


def test_the_text_gives_the_error_and_never_says_complete() -> None:
    findings = found({100: 70})
    said = text(findings)
    (leak,) = findings.leaks
    assert leak.sample is not None
    assert (leak.count, leak.sample.count_error) == (2902, 343)
    assert "#1  ~283.4 KiB ± 33.5 KiB leaked: ~2,902 ± 343 blocks of 100, sampled (malloc)" in said
    assert said.splitlines()[0] == "refleak: LEAK: ~283.4 KiB ± 33.5 KiB in ~2,902 ± 343 blocks, sampled"
    assert "sampling blocks were sampled, one draw for every 4.0 KiB: their amounts are estimates" in said
    assert "data     sampled: 2,204,117 events, 0 lost" in said
    assert "complete" not in said
    assert "and 67 more drawn" in said


def test_a_stream_without_the_sign_gets_two_that_it_has() -> None:
    page, raw = Page(), io.BytesIO()
    page.line("~1 ± 2")
    stream = io.TextIOWrapper(raw, encoding="ascii")
    page.write(stream, color=False)
    stream.flush()
    assert raw.getvalue() == b"~1 +- 2\n"


@pytest.mark.parametrize(
    ("selection", "older_ns", "words"),
    [
        (Selection(sample_bytes=N), 0, "no leak in what was looked at: sampled blocks"),
        (Selection(min_size=N), 0, "no leak in what was looked at: blocks of at least 4.0 KiB"),
        (Selection(max_size=99), 0, "no leak in what was looked at: blocks of at most 99 bytes"),
        (Selection(16, 99, N), 0, "no leak in what was looked at: sampled blocks of 16 bytes to 99 bytes"),
        (KEEPS_ALL, 5 * SECOND, "no leak in what was looked at: older than 5.0 s"),
        (KEEPS_ALL, 0, "clean"),
    ],
)
def test_clean_is_said_only_where_all_was_looked_at(selection: Selection, older_ns: int, words: str) -> None:
    findings = found({}, selection, older_ns=older_ns)
    assert verdict(findings).text == f"refleak: {words}"


def test_lost_data_are_said_besides() -> None:
    snap, code = server()
    snap = replace(snap, selection=Selection(sample_bytes=N), losses=LOSSES)
    findings = analyse(snap, code.symbols)
    assert not findings.complete and not findings.is_whole
    assert "NOT COMPLETE" in text(findings)
    assert parse_policy("incomplete").broken_by(findings)
    assert not parse_policy("incomplete").broken_by(replace(findings, complete=True, losses=(), partly_seen=()))


def test_json_keeps_what_was_drawn_apart_from_what_is_estimated() -> None:
    report = written(found({100: 70}))
    (leak,) = report["leaks"]
    estimated = {
        "count": round(70 / p(100)), "bytes": round(7000 / p(100)),
        "count_error": round(math.sqrt(70 * (1 - p(100))) / p(100)),
        "bytes_error": round(100 * math.sqrt(70 * (1 - p(100))) / p(100)),
    }  # fmt: skip
    assert (leak["count"], leak["bytes"], leak["estimated"]) == (70, 7000, estimated)
    assert (report["complete"], report["lost"]) == (False, [])
    assert report["sampling"] == {"sample_bytes": N, "estimated": estimated}
    assert report["only"] is None
    totals = report["totals"]["allocations"]
    assert (totals["outstanding"], totals["outstanding_bytes"]) == (70, 7000)


def test_json_says_what_it_is_limited_to() -> None:
    report = written(found({100: 70}, Selection(min_size=50), older_ns=SECOND))
    assert report["only"] == {"min_size": 50, "max_size": None, "older_ns": SECOND}
    assert (report["sampling"], report["complete"]) == (None, True)


def test_a_json_report_is_read_with_its_estimates() -> None:
    findings = found({100: 70})
    back = read_json(json.dumps(written(findings)).encode(), "x.json")
    assert back.selection == Selection(sample_bytes=N)
    assert back.complete and not back.is_whole
    (ours,), (theirs,) = findings.leaks, back.leaks
    assert (theirs.count, theirs.bytes, theirs.kept) == (ours.count, ours.bytes, 70)
    assert ours.sample is not None and theirs.sample is not None
    assert theirs.sample.count_error == ours.sample.count_error


def test_policies_take_the_estimates() -> None:
    findings = found({100: 70})
    assert findings.leaks[0].count == 2902
    assert parse_policy("count>2901").broken_by(findings) == ("count ~2,902 > 2,901",)
    assert parse_policy("count>2902").broken_by(findings) == ()


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ({100: 70}, {100: 75}, "same"),  # 5 blocks of 100 more drawn: well within three errors
        ({100: 70}, {100: 130}, "grown"),
        ({100: 130}, {100: 70}, "shrunk"),
        ({}, {100: 2}, "same"),  # 8.2 KiB that a run at 4 KiB may miss
        ({}, {100: 70}, "new"),
        ({100: 2}, {}, "same"),
        ({100: 70}, {}, "gone"),
        ({N * 50: 1}, {N * 50: 2}, "grown"),  # both certain
    ],
)
def test_a_change_within_the_error_is_none(before: dict[int, int], after: dict[int, int], word: str) -> None:
    (change,) = compare(found(before), found(after)).changes
    assert change.word == word


def test_exact_runs_compare_exactly() -> None:
    assert [c.word for c in compare(found({}, KEEPS_ALL), found({100: 1}, KEEPS_ALL)).changes] == ["new"]
    assert [c.word for c in compare(found({100: 1}, KEEPS_ALL), found({100: 2}, KEEPS_ALL)).changes] == ["grown"]
    (change,) = compare(found({}, KEEPS_ALL), found({100: 1})).changes  # only the run that has none was whole
    assert change.word == "new"


def test_a_baseline_that_sampled_hides_what_chance_explains() -> None:
    left = against_baseline(found({100: 75}), found({100: 70}), "old")
    assert left.leaks == ()
    grown = against_baseline(found({100: 130}), found({100: 70}), "old")
    (leak,) = grown.leaks
    assert "grown since the baseline: ~2,902 (~290,234 bytes) then, ~5,390 (~539,006 bytes) now" in leak.notes


def test_a_comparison_shows_the_errors() -> None:
    stream = io.StringIO()
    write_comparison(compare(found({100: 70}), found({100: 130})), stream)
    assert "grown: ~283.4 KiB ± 33.5 KiB in ~2,902 ± 343 blocks, sampled then" in stream.getvalue()


def test_only_what_is_old_is_listed_and_totals_stay() -> None:
    code = Code()
    stack = code.stack(1, code.frame("f", "f.c:3"))
    ages = (0, 4, 5, 6)  # of a process that ended after 61 s
    snap = snapshot(
        code,
        processes=(process(), process(813, ended_ns=None)),
        duration_ns=70 * SECOND,
        allocations=blocks(
            *({"address": age, "size": 10, "time_ns": (61 - age) * SECOND} for age in ages),
            *({"address": age, "size": 100, "time_ns": (70 - age) * SECOND, "pid": 813} for age in ages),
            stack=stack,
        ),
        mapped=mapped(*({"start": age, "length": 1, "time_ns": (61 - age) * SECOND} for age in ages), stack=stack),
        objects=objects(*({"address": age, "time_ns": (61 - age) * SECOND} for age in ages), stack=stack),
        inherited=blocks(*({"address": age, "size": 1, "time_ns": (70 - age) * SECOND} for age in ages), pid=813),
    )
    findings = analyse(snap, code.symbols, AnalysisOptions(older_ns=5 * SECOND))
    assert sorted((leak.kind, leak.state, leak.pid, leak.count) for leak in findings.leaks) == [
        ("allocation", "inherited", 813, 2), ("allocation", "leaked", 812, 2), ("allocation", "outstanding", 813, 2),
        ("mapping", "leaked", 812, 2), ("reference", "leaked", 812, 2),
    ]  # fmt: skip
    assert min(i.age_ns for leak in findings.leaks for i in leak.instances) == 5 * SECOND
    assert (findings.allocations.outstanding, findings.allocations.outstanding_bytes) == (8, 440)
    assert [row.outstanding for row in findings.types] == [4]
    assert "only     older than 5.0 s" in text(findings)


def test_what_began_after_the_limit_is_not_older() -> None:
    assert found({10: 1}, KEEPS_ALL, older_ns=62 * SECOND).leaks == ()
    assert len(found({10: 1}, KEEPS_ALL, older_ns=61 * SECOND).leaks) == 1


@pytest.mark.parametrize("selection", [Selection(sample_bytes=N), Selection(min_size=1), Selection(max_size=5)])
def test_a_recording_that_lacks_blocks_is_of_a_version_that_old_readers_refuse(
    tmp_path: Path, selection: Selection
) -> None:
    for chosen, version in ((selection, VERSION), (KEEPS_ALL, PLAIN_VERSION)):
        path = tmp_path / f"{version}.refleak"
        snap, code = server()
        writer = RecordingWriter(path, Info(), chosen)
        writer.checkpoint(replace(snap, selection=chosen))
        writer.write_snapshot(replace(snap, selection=chosen), code.symbols)  # writes the file anew
        writer.close()
        assert path.read_bytes()[8:10] == version.to_bytes(2, "little")
        assert read_recording(path).snapshot.selection == chosen


def test_a_json_report_with_a_rate_that_is_none_is_refused() -> None:
    report = written(found({100: 70})) | {"sampling": {"sample_bytes": "x"}}
    with pytest.raises(CannotRead):
        read_json(json.dumps(report).encode(), "x.json")


@pytest.mark.parametrize(
    ("words", "time_ns"),
    [("10", 10 * SECOND), ("2.5s", 2_500_000_000), ("500ms", 500_000_000), ("5m", 300 * SECOND), ("1 h", 3600 * SECOND),
     ("3min", 180 * SECOND), ("0", 0)],
)  # fmt: skip
def test_durations(words: str, time_ns: int) -> None:
    assert duration_ns(words) == time_ns


@pytest.mark.parametrize("words", ["", "s", "-1", "5x", "1e30", "nan", "inf", "5 s s"])
def test_what_is_no_duration(words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration such as 10, 500ms, 5m or 1h"):
        duration_ns(words)


def test_sizes_that_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="--min-size is more than --max-size"):
        TraceOptions(selection=Selection(2, 1))
    assert TraceOptions().selection.keeps_all


def test_samples_add_up() -> None:
    assert Sample(1, 10, 9.0, 16.0) + Sample(2, 20, 16.0, 9.0) == Sample(3, 30, 25.0, 25.0)
    assert (Sample(3, 30, 25.0, 25.0).count_error, Sample(3, 30, 25.0, 26.0).bytes_error) == (5, 5)
