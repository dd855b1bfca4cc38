"""refleak as a library, as far as it needs no kernel: docs/api.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from documented_examples import examples, run_in
from hand_made import SECOND, server

import tracer
from tracer.errors import CannotRead, CannotWrite, UsageError
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    snapshot, code = server()
    writer = RecordingWriter(tmp_path / "run.refleak", Info())
    writer.write_snapshot(snapshot, code.symbols)
    writer.close()
    return tmp_path / "run.refleak"


def test_a_recording_gives_typed_findings(recording: Path) -> None:
    report = tracer.read(recording)
    assert report.verdict == (
        "refleak: LEAK: 2 objects of 1 type, 28.1 KiB in 9 blocks, 1.0 MiB in 1 mapping, 1 error (over-put)"
    )
    assert [(leak.kind, leak.count, leak.bytes) for leak in report.leaks][:2] == [
        ("reference", 2, None), ("allocation", 7, 28672),
    ]  # fmt: skip
    assert (report.complete, report.exit_status, report.findings.duration_ns) == (True, None, 61 * SECOND)
    assert report.broken("leaks,errors") == ("5 entries leaked", "1 error")
    assert report.broken("bytes>2M") == ()
    assert report.compared_to(report).worse is False


def test_a_report_in_json_has_the_findings_of_its_recording(recording: Path) -> None:
    report = tracer.read(str(recording))
    report.write("json", recording.with_suffix(".json"))
    again = tracer.read(recording.with_suffix(".json"))
    assert again.verdict == report.verdict
    assert [(leak.id, leak.count, leak.bytes) for leak in again.leaks] == [
        (leak.id, leak.count, leak.bytes) for leak in report.leaks
    ]  # fmt: skip
    assert not again.compared_to(report).worse


def test_the_suffix_chooses_the_format(recording: Path) -> None:
    report = tracer.read(recording)
    report.write(None, recording.with_suffix(".md"))
    assert recording.with_suffix(".md").read_text() == report.text("markdown")
    report.write("pprof", recording.with_suffix(".pb.gz"))
    assert recording.with_suffix(".pb.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_errors_are_refleaks_own(recording: Path, tmp_path: Path) -> None:
    report = tracer.read(recording)
    with pytest.raises(CannotRead, match="cannot read") as missing:
        tracer.read(tmp_path / "none")
    assert isinstance(missing.value, tracer.RefleakError) and missing.value.hint
    with pytest.raises(UsageError, match="'pdf' is no format"):
        report.text("pdf")
    with pytest.raises(UsageError, match="pprof is no text"):
        report.text("pprof")
    with pytest.raises(UsageError, match="did you mean leaks"):
        report.broken("leak")
    with pytest.raises(CannotWrite):
        report.write("json", tmp_path / "no" / "folder.json")
    with pytest.raises(UsageError, match="no block is kept"):
        tracer.TraceOptions(selection=tracer.Selection(2, 1))


def test_the_root_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="module 'tracer' has no attribute 'Session'"):
        _ = tracer.Session


def test_the_example_of_a_recording_runs(recording: Path) -> None:
    done = run_in(recording.parent, "-c", examples()["Looking into a recording"])
    assert (done.returncode, done.stderr) == (0, "")
    verdict, first, *_ = done.stdout.splitlines()
    assert verdict == tracer.read(recording).verdict
    assert first.split() == ["1,048,576", "arena__map"]
    assert "<html" in (recording.parent / "run.html").read_text()
