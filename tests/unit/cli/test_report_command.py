"""`refleak report` and `refleak diff`, as typed."""

from __future__ import annotations

import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made import server
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.analysis.analysis import analyse
from tracer.cli.main import main
from tracer.errors import CannotRead
from tracer.model.frames import Frame
from tracer.model.records import FRAME_BINARY_SHIFT, SCRIPT_BINARY
from tracer.model.snapshot import Snapshot, Stack
from tracer.recording.recording import Info
from tracer.recording.writer import RecordingWriter
from tracer.report.json_reader import read_json
from tracer.report.json_report import write_json
from tracer.report.text import write_text


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return written(tmp_path / "run.refleak")


def written(path: Path, without_blocks: int = 0, *, symbols: bool = True, objects: bool = True) -> Path:
    snapshot, code = server()
    snapshot = replace(snapshot, allocations=snapshot.allocations[without_blocks:])
    if not objects:
        snapshot = replace(snapshot, objects=snapshot.objects[:0])
    writer = RecordingWriter(path, Info())
    writer.write_snapshot(snapshot, code.symbols if symbols else None)
    writer.close()
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    status = main([str(word) for word in words])
    return status, *capsys.readouterr()


def test_a_recording_gives_the_live_reports(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    snapshot, code = server()
    findings = analyse(snapshot, code.symbols)
    for format_, write in (("text", write_text), ("json", write_json)):
        live = io.StringIO()
        write(findings, live)
        assert run(capsys, "report", recording, "--format", format_) == (0, live.getvalue(), "")
        output = recording.with_suffix(".json" if format_ == "json" else ".txt")
        assert run(capsys, "report", recording, "-o", output) == (0, "", "")
        assert output.read_text() == live.getvalue()


def test_without_symbols_the_frames_say_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path / "bare.refleak", symbols=False)
    status, out, _ = run(capsys, "report", path, "--format", "json")
    frames = [frame for leak in json.loads(out)["leaks"] for frame in leak["stack"][1:]]
    assert status == 0 and frames
    assert {frame["function"] for frame in frames} == {None}
    assert all(frame["why_unknown"] and frame["module"] for frame in frames)


def script_leak() -> Snapshot:
    """A snapshot of which one block was allocated by a function of a script."""
    snapshot, _ = server()
    number = int(snapshot.allocations["stack"][0])
    stacks = {**snapshot.stacks, number: Stack((*snapshot.stacks[number].frames, SCRIPT_BINARY << FRAME_BINARY_SHIFT))}
    script_frames = (Frame("load", "app.py", file="/srv/app.py", line=7, kind="guest", language="Python"),)
    return replace(snapshot, stacks=stacks, script_frames=script_frames)


@pytest.mark.parametrize("options", [(), ("--no-demangle",), ("--debug-dir", "/")])
@pytest.mark.parametrize("as_checkpoint", [False, True])
def test_frames_of_scripts_name_themselves(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...], as_checkpoint: bool
) -> None:
    """With --no-symbols, and where the tracer was killed, nothing else is in the recording that names them."""
    path = tmp_path / "bare.refleak"
    writer = RecordingWriter(path, Info())
    if as_checkpoint:
        writer.checkpoint(script_leak())
    else:
        writer.write_snapshot(script_leak(), None)
    writer.close()
    status, out, err = run(capsys, "report", path, "--format", "json", *options)
    frames = [frame for leak in json.loads(out)["leaks"] for frame in leak["stack"][1:]]
    assert (status, err) == (0, "")
    assert ("load", "/srv/app.py", 7) in {(frame["function"], frame["file"], frame["line"]) for frame in frames}
    assert "65535" not in out


def test_suppressions_from_a_pipe_are_read_once(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    """The shell's <(...): what was read is gone."""
    reading, writing = os.pipe()
    os.write(writing, b"leak:arena__map\n")
    os.close(writing)
    try:
        status, out, err = run(
            capsys, "report", recording, "--suppressions", f"/dev/fd/{reading}", "--format", "json"
        )
    finally:
        os.close(reading)
    assert (status, err) == (0, "")
    left = {frame["function"] for leak in json.loads(out)["leaks"] for frame in leak["stack"]}
    assert left and "arena__map" not in left


def test_embedded_names_outlast_their_binaries(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    plain = run(capsys, "report", recording)[1]
    assert run(capsys, "report", recording, "--debug-dir", recording.parent)[1] == plain


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 0),
        (("--error-exitcode", "9"), 9),
        (("--fail-on", "leaks"), 1),
        (("--fail-on", "leaks", "--error-exitcode", "9"), 9),
        (("--fail-on", "bytes>2M,map", "--error-exitcode", "9"), 0),
    ],
)
def test_exit_status(
    capsys: pytest.CaptureFixture[str], recording: Path, options: tuple[str, ...], status: int
) -> None:
    found, _, err = run(capsys, "report", recording, *options)
    assert found == status
    assert err == ("refleak: failed: 5 entries leaked\n" if "leaks" in options else "")


def test_a_name_of_no_type_is_an_error_that_lists_words_and_types(
    capsys: pytest.CaptureFixture[str], recording: Path
) -> None:
    """A misspelt word passed every run."""
    status, out, err = run(capsys, "report", recording, "--fail-on", "bytes>2M,leek")
    said, hint = err.splitlines()
    assert (status, out[:14]) == (68, "refleak: LEAK:")
    assert said == "refleak: --fail-on leek: no type of that name was probed or occurred"
    assert hint.strip().startswith("there are the words leaks, errors, outstanding, incomplete")
    assert hint.endswith("and the types: dso, map; type:leek may be missing")
    assert run(capsys, "report", recording, "--fail-on", "bytes>2M,type:leek")[0] == 0
    assert run(capsys, "report", recording, "--fail-on", "leek,leaks")[0] == 1


@pytest.mark.parametrize("kind", ["refleak", "json"])
def test_a_baseline_of_either_kind(capsys: pytest.CaptureFixture[str], recording: Path, kind: str) -> None:
    old = recording.with_name("old.refleak")
    written(old, without_blocks=2)
    if kind == "json":
        run(capsys, "report", old, "-o", old.with_suffix(".json"))
        old = old.with_suffix(".json")
    status, out, _ = run(capsys, "report", recording, "--baseline", old, "--format", "json", "--error-exitcode", "9")
    (leak,) = json.loads(out)["leaks"]
    assert status == 9 and leak["count"] == 7
    assert leak["notes"][-1] == "grown since the baseline: 5 (20,480 bytes) then, 7 (28,672 bytes) now"
    assert run(capsys, "report", recording, "--baseline", recording, "--error-exitcode", "9")[0] == 0


def test_diff_in_text(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    old = written(recording.with_name("old.refleak"), without_blocks=2)
    status, out, _ = run(capsys, "diff", old, recording, "--error-exitcode", "9")
    lines = out.splitlines()
    assert status == 9
    assert lines[0] == "refleak: WORSE: 1 grown, 5 same"
    said = " ".join(map(str.strip, lines[2:4]))
    assert said == "grown: 20.0 KiB in 5 blocks then, 28.0 KiB in 7 blocks now (malloc): +2, +8.0 KiB"
    status, out, _ = run(capsys, "diff", recording, old, "--error-exitcode", "9")
    assert (status, out.splitlines()[0]) == (0, "refleak: not worse: 1 shrunk, 5 same")
    said = " ".join(map(str.strip, out.splitlines()[2:4]))
    assert said == "shrunk: 28.0 KiB in 7 blocks then, 20.0 KiB in 5 blocks now (malloc): -2, -8.0 KiB"


@pytest.mark.parametrize("how", [("--format", "junit"), ("-o", "x.md"), ("-o", "x.folded"), ("-o", "x.heap")])
def test_diff_refuses_what_it_cannot_write(
    capsys: pytest.CaptureFixture[str], recording: Path, how: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote text under any name."""
    monkeypatch.chdir(recording.parent)
    status, _, err = run(capsys, "diff", recording, recording, *how)
    assert status == 2
    assert "refleak diff --help" in err or "-o changes.json" in err
    assert not Path(how[1]).exists()


def test_diff_offers_what_it_can_write(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["diff", "--help"])
    said = capsys.readouterr().out
    assert "text, json, html, sarif, pprof; by default" in said
    assert "markdown" not in said and "junit" not in said


def test_diff_as_a_page_and_for_code_scanning(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    old = written(recording.with_name("old.refleak"), without_blocks=7, objects=False)
    page, log = recording.with_name("x.html"), recording.with_name("x.sarif")
    assert run(capsys, "diff", old, recording, "-o", page, "--error-exitcode", "9")[0] == 9
    assert "refleak: WORSE: 2 new, 4 same" in page.read_text() and str(old) in page.read_text()
    assert run(capsys, "diff", old, recording, "-o", log, "--source-root", "/src")[0] == 0
    results = json.loads(log.read_text())["runs"][0]["results"]
    assert [result["baselineState"] for result in results] == ["new", "new", *["unchanged"] * 4]


def test_diff_has_references_first(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    old = written(recording.with_name("old.refleak"), without_blocks=7, objects=False)
    out = run(capsys, "diff", old, recording)[1]
    words = [line for line in out.splitlines() if line.startswith("new: ")]
    assert [word.partition(" x ")[2] or word.rpartition(" ")[2] for word in words] == ["dso", "(malloc)"]


def test_diff_in_json_of_a_json_report_and_a_recording(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    old = recording.with_name("old.json")
    run(capsys, "report", recording, "-o", old)
    new = written(recording.with_name("new.refleak"), without_blocks=7)
    status, out, _ = run(capsys, "diff", old, new, "--format", "json")
    found = json.loads(out)
    assert (status, found["worse"], found["same"]) == (0, False, 5)
    (gone,) = found["gone"]
    assert (gone["before"], gone["after"]) == ({"count": 7, "bytes": 28672}, None)
    assert [frame["function"] for frame in gone["stack"]][:2] == ["malloc", "parse_body"]


@pytest.mark.parametrize(
    "options",
    [
        (), ("--no-default-suppressions",), ("--suppressions", "leak:parse_body"),
        ("--suppressions", "ref:dso\nleak:m*c"),
    ],
)
def test_suppressions_count_for_json_reports_as_for_recordings(
    capsys: pytest.CaptureFixture[str], recording: Path, options: tuple[str, ...]
) -> None:
    old = written(recording.with_name("old.refleak"), without_blocks=2)
    if len(options) == 2:
        rules = recording.with_name("rules")
        rules.write_text(options[1])
        options = (options[0], str(rules))
    reports = []
    for path in (old, recording):
        reports.append(path.with_suffix(".json"))
        run(capsys, "report", path, "-o", reports[-1])
    expected = run(capsys, "diff", old, recording, *options)
    assert run(capsys, "diff", *reports, *options) == expected
    assert run(capsys, "diff", old, reports[1], *options) == expected
    usual = run(capsys, "diff", *reports)
    assert (usual == expected) is (not options)


def test_what_a_report_suppressed_by_a_rule_of_its_own_stays_so(
    capsys: pytest.CaptureFixture[str], recording: Path
) -> None:
    rules, report = recording.with_name("rules"), recording.with_suffix(".json")
    rules.write_text("leak:parse_body")
    run(capsys, "report", recording, "-o", report, "--suppressions", rules)
    assert run(capsys, "diff", report, recording)[1].splitlines()[0] == "refleak: WORSE: 1 new, 5 same"
    assert run(capsys, "diff", report, recording, "--suppressions", rules)[1] == "refleak: not worse: 5 same\n"


def test_a_diff_with_itself_is_no_worse(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    assert run(capsys, "diff", recording, recording)[1] == "refleak: not worse: 6 same\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("report", "none.refleak"), 75, "cannot read none.refleak: No such file"),
        (("report", "text"), 75, "text is not a recording"),
        (("diff", "text", "run.refleak"), 75, "text is neither a recording nor a JSON report"),
        (("report", "run.refleak", "--baseline", "none"), 75, "cannot read none"),
        (("report", "run.refleak", "-o", "x.refleak"), 2, "cannot be written as a recording"),
        (("report", "run.refleak", "-o", "no/x.json"), 74, "cannot write no/x.json"),
    ],
)
def test_what_goes_wrong_is_said_with_a_hint(
    capsys: pytest.CaptureFixture[str], recording: Path, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], status: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(recording.parent)
    Path("text").write_text("hello")
    found, out, err = run(capsys, *words)
    first, hint = err.splitlines()
    assert (found, out) == (status, "") and message in first and hint.strip()


def test_a_policy_that_is_none_is_a_usage_error(capsys: pytest.CaptureFixture[str], recording: Path) -> None:
    assert main(["report", str(recording), "--fail-on", "bytes>lots"]) == 2
    assert "'bytes>lots' has no number" in capsys.readouterr().err


def test_a_cut_recording_is_reported_and_never_called_complete(
    capsys: pytest.CaptureFixture[str], recording: Path
) -> None:
    cut = recording.with_name("cut.refleak")
    shutil.copy(recording, cut)
    cut.write_bytes(recording.read_bytes()[:-40])
    status, out, _ = run(capsys, "report", cut, "--fail-on", "incomplete")
    assert status == 1 and "NOT COMPLETE" in out and "the recording ends early" in " ".join(out.split())


def test_a_json_report_of_a_newer_version_says_so(recording: Path) -> None:
    with pytest.raises(CannotRead, match="has version 2 of the JSON report"):
        read_json(b'{"format": "refleak-report", "version": 2}', "x")


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_changed_json_report_is_read_or_refused(data: st.DataObject) -> None:
    snapshot, code = server()
    stream = io.StringIO()
    write_json(analyse(snapshot, code.symbols), stream)
    document = json.loads(stream.getvalue())
    place, key = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))  # type: ignore[call-overload]
    place[key] = data.draw(st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([]) | st.just({}))
    try:
        read_json(json.dumps(document).encode(), "x")
    except CannotRead as error:
        assert error.hint


def test_the_arrays_of_a_recording_can_be_written_to(recording: Path) -> None:
    """A reader's array must not be a read-only view: later stages sort in place."""
    from tracer.recording.reader import read_recording

    allocations = read_recording(recording).snapshot.allocations
    assert isinstance(allocations, np.ndarray) and allocations.flags.writeable
