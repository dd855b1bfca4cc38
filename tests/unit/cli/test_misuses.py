"""Misuses that passed without a word, or whose hint led astray."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tracer.cli.main import command_module, main
from tracer.cli.parsing import parse
from tracer.errors import NoSuchTarget, RefleakError, UnsuitableTarget, UsageError
from tracer.pipeline.target_check import check_allocators, check_program
from tracer.report.formats import format_for

LEDGER = Path(__file__).parents[2] / "replay/ledger.refleak"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["-o", "a.html", "-o", "b.json", "true"], "-o is given twice, with a.html and b.json",
         "one run writes one file: a recording (-o run.refleak), of which `refleak report` makes every report"),
        (["-o", "x.pdf", "true"], "there is no format for .pdf",
         "did you mean -o FILE.html? --format text writes text"),
        (["-o", "x.htlm", "true"], "there is no format for .htlm",
         "did you mean -o FILE.html? --format text writes text"),
        (["--color", "Allways", "true"],
         "argument --color: invalid choice: 'Allways' (choose from 'auto', 'always', 'never')",
         "did you mean always?"),
        (["--json", "true"], "unrecognized arguments: --json", "did you mean --format json?"),
        (["--xml", "true"], "unrecognized arguments: --xml", "did you mean --format junit?"),
        (["-f", "json", "true"], "unrecognized arguments: -f", "see refleak --help"),
        (["--output-format", "json", "true"], "unrecognized arguments: --output-format", "did you mean --format?"),
        (["--timeout", "5", "true"], "unrecognized arguments: --timeout", "did you mean --duration?"),
        (["--trace-children=yes", "true"], "unrecognized arguments: --trace-children=yes",
         "did you mean --follow-forks?"),
        (["--follow-forks=no", "true"],
         "argument --follow-forks/--no-follow-forks: ignored explicit argument 'no'",
         "it takes no value: --follow-forks or --no-follow-forks"),
        (["--refs-only=yes", "true"], "argument --refs-only: ignored explicit argument 'yes'",
         "it takes no value: --refs-only"),
        (["--duration", "0", "true"], "argument --duration: '0' is no time to trace anything in",
         "see refleak --help"),
        (["--duration", "5x", "true"],
         "argument --duration: '5x' is not a duration such as 10, 500ms, 5m or 1h", "see refleak --help"),
        (["diff", "a.json", "b.json", "--fail-on=leaks"], "unrecognized arguments: --fail-on=leaks",
         "did you mean --error-exitcode?"),
        (["--preset", "glib,", "true"], "there is no preset ''", "`refleak specs` lists them"),
    ],
)  # fmt: skip
def test_a_misuse_is_told_and_what_was_meant(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str, hint: str
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.splitlines() == [f"refleak: {said}", f"         {hint}"]
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("typed", "meant"), [("HTML", "html"), ("xml", "junit"), ("md", "markdown"), ("htm", "html"), ("pb.gz", "pprof")]
)
def test_a_format_goes_by_its_suffix_too(typed: str, meant: str) -> None:
    assert parse("", command_module(""), ["--format", typed, "true"]).format == meant


@pytest.mark.parametrize("name", ["leaks", "leaks.txt", "leaks.log", "leaks.out", "leaks.text", "leaks.4711", "x.d"])
def test_other_names_are_of_texts(name: str) -> None:
    assert format_for(None, Path(name)).name == "text"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("x.csv", ".json"), ("x.PNG", ".svg"), ("x.pprof", ".pb.gz"), ("x.jsn", ".json"), ("x.refleek", ".refleak"),
     ("x.sarf", ".sarif")],
)  # fmt: skip
def test_a_name_does_not_promise_what_is_not_written(name: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        format_for(None, Path(name))
    assert raised.value.hint == f"did you mean -o FILE{meant}? --format text writes text"
    assert format_for("text", Path(name)).name == "text"


def test_times_are_written_as_everywhere() -> None:
    parsed = parse("", command_module(""), ["--duration", "5m", "--interval", "500ms", "-p", "1"])
    assert (parsed.duration, parsed.interval) == (300, 0.5)


def test_presets_may_stand_behind_commas() -> None:
    assert parse("", command_module(""), ["--preset", "glib,openssl", "--preset", "dbus", "true"]).presets == [
        "glib", "openssl", "dbus",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["int main(void);\n", '{"format": "something"}', '{"format": "refleak-report"'])
def test_a_baseline_that_is_none_is_told_before_the_trace(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """It was told after it, in place of the report."""
    Path("old.json").write_text(text)
    assert main(["--baseline", "old.json", "touch", "ran"]) == 75
    assert capsys.readouterr().err.startswith("refleak: old.json is ")
    assert not Path("ran").exists()


def test_a_cut_recording_is_no_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    Path("old.refleak").write_bytes(LEDGER.read_bytes()[:200])
    assert main(["--baseline", "old.refleak", "touch", "ran"]) == 75
    assert "old.refleak" in capsys.readouterr().err
    assert not Path("ran").exists()


def test_both_files_of_a_comparison_are_looked_at_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one that is none was told when the first was analysed."""
    shutil.copy(LEDGER, "old.refleak")
    Path("new.c").write_text("int main(void);\n")
    monkeypatch.setattr("tracer.cli.diff.report_of_file", None)
    assert main(["diff", "old.refleak", "new.c"]) == 75
    assert capsys.readouterr().err.splitlines()[0] == (
        "refleak: new.c is neither a recording nor a JSON report of refleak"
    )


def script(text: str) -> str:
    Path("script").write_text(text)
    Path("script").chmod(0o755)
    return "./script"


def raised_by(check: object, *words: object) -> tuple[str, str | None]:
    assert callable(check)
    with pytest.raises((NoSuchTarget, UnsuitableTarget)) as raised:
        check(*words)
    error: RefleakError = raised.value
    return str(error), error.hint


def test_a_script_whose_interpreter_is_missing() -> None:
    """The script was said not to exist."""
    assert raised_by(check_program, script("#! /no/such/sh -e\n")) == (
        "./script wants to be run by /no/such/sh, which is not there", "check its first line",
    )  # fmt: skip
    said, hint = raised_by(check_program, script("#!/bin/sh\r\nexit\r\n"))
    assert said == "./script wants to be run by /bin/sh, which is not there"
    assert hint == r"check its first line; lines end with \r\n there: sed -i 's/\r$//' FILE"
    for fine in ("#!/bin/sh\n", "#!  /usr/bin/env\tpython3 -x\n", "#!/bin/sh", "#!relative\n"):
        check_program(script(fine))


def test_a_script_without_its_first_line() -> None:
    assert raised_by(check_program, script("echo hello\n")) == (
        "./script is a text without a first line that says what runs it",
        "refleak traces 64-bit x86 ELF programs; a script begins with #!/bin/sh, or: refleak sh ./script",
    )  # fmt: skip


def test_an_allocator_is_a_library() -> None:
    """A text passed as one, and the trace was called complete."""
    Path("libx.c").write_text("int x;\n")
    assert raised_by(check_allocators, [Path("libx.c")])[0] == "libx.c is not an ELF file"
    check_allocators([Path("/bin/sh")])


def test_a_json_report_is_no_recording(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text(json.dumps({"format": "refleak-report", "version": 1}))
    assert main(["report", "x.json"]) == 75
    assert capsys.readouterr().err.splitlines()[1].strip() == (
        "a JSON report is for `refleak diff` and --baseline; a recording, of which any report is made: -o FILE.refleak"
    )
