"""What on a command line is refleak's, and what is the target's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from tracer.cli.main import COMMANDS, command_module, main
from tracer.cli.parsing import parse
from tracer.cli.target_words import pids_of
from tracer.errors import NoSuchTarget

ROOT = Path(__file__).parents[3]
REFLEAK = ROOT / "refleak"


@pytest.mark.parametrize("before", [(), ("--exec",), ("--",), ("--exec", "--")])
@pytest.mark.parametrize("command", [("./prog",), ("prog", "--top", "3"), ("echo", "a", "--", "b"), ("ls", "-p", "/")])
@pytest.mark.parametrize("options", [(), ("--refs-only",), ("-o", "x.json"), ("-qo", "x.json"), ("--top=3",)])
def test_the_command_has_all_that_follows_it(
    before: tuple[str, ...], command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    parsed = parse("", command_module(""), [*options, *before, *command])
    assert parsed.command == list(command)
    assert (parsed.pid, parsed.top) == (None, 3 if "--top=3" in options else 10)
    assert (str(parsed.output) == "x.json") == ("x.json" in options)
    assert parse("top", command_module("top"), [*options, *before, *command]).command == list(command)


def test_a_process_is_no_command() -> None:
    parsed = parse("", command_module(""), ["-p", "17", "--top", "4", "-o", "out.txt"])
    assert (parsed.pid, parsed.command, parsed.top) == (["17"], None, 4)
    assert parse("", command_module(""), ["-p17"]).pid == ["17"]


def test_what_pidof_prints_is_understood() -> None:
    own = os.getpid(), os.getppid()
    assert pids_of(Namespace(pid=[f"{own[0]} {own[1]}"])) == own
    with pytest.raises(NoSuchTarget, match="no process is called a process"):
        pids_of(Namespace(pid=["a process that is not"]))


def test_processes_add_up() -> None:
    parsed = parse("", command_module(""), ["-p", "17,18", "--tree", "-p", "nginx", "-q"])
    assert (parsed.pid, parsed.tree, parsed.quiet) == (["17", "18", "nginx"], True, True)
    assert parse("top", command_module("top"), ["-p", "17", "-p18"]).pid == ["17", "18"]


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["-p", "1", "true"], "-p 1 and the command 'true': only one can be meant",
         "leave one of them out; refleak --help shows examples"),
        (["--tree", "true"], "--tree is of a process that runs: -p PID --tree",
         "a command's children are traced anyhow"),
        (["-p", "1", "2", "3"], "-p 1 and the command '2': only one can be meant",
         "to attach to all of them: -p 1,2,3"),
        (["top"], "say what to watch: a command or -p PID", "refleak top --help shows examples"),
        (["--fromat", "json", "true"], "unrecognized arguments: --fromat", "did you mean --format?"),
        (["--presets", "glib", "true"], "unrecognized arguments: --presets", "did you mean --preset?"),
        (["-format", "json", "true"], "unrecognized arguments: -format", "did you mean --format?"),
        (["--foll", "true"], "unrecognized arguments: --foll", "did you mean --follow-forks?"),
        (["-o", "-", "true"], "argument -o/--output: '-' is no file: without -o a trace's report goes to stderr, that"
         " of a recording to stdout", "see refleak --help"),
        (["--zzz", "true"], "unrecognized arguments: --zzz", "see refleak --help"),
    ],
)  # fmt: skip
def test_a_misuse_gets_its_hint(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str, hint: str
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.splitlines() == [f"refleak: {said}", f"         {hint}"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["repotr", "x"], "did you mean refleak report?"),
        (["--refs-only", "report", "x"], "options stand behind the subcommand: refleak report ..."),
        (["-q", "run", "true"], "`run` stands first: refleak run [OPTION ...] CMD"),
        (["1234"], "to attach to a process: refleak -p 1234"),
        (["help"], "did you mean refleak --help?"),
        (["trace", "./prog"], "did you mean refleak run CMD?"),
        (["record", "./prog"], "did you mean refleak -o run.refleak CMD?"),
        (["sh -c true"], "its arguments are words of their own: refleak sh -c true"),
        (["--exec", "ls /nowhere | cat"], "a line for a shell: refleak sh -c 'ls /nowhere | cat'"),
        (["PAGE=a b", "true"], "to set a variable: refleak env 'PAGE=a b' CMD"),
        (["no-such command"], "check its name and path; refleak --help shows examples"),
        (["run", "help"], "check its name and path; refleak --help shows examples"),
        (["--exec", "no-such-command"], "check its name and path; refleak --help shows examples"),
        (["run", "report"], "check its name and path; refleak --help shows examples"),
        (["--", "doctor"], "check its name and path; refleak --help shows examples"),
    ],
)
def test_what_was_meant_is_said(capsys: pytest.CaptureFixture[str], words: list[str], hint: str) -> None:
    assert main(words) == 66
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("refleak: there is no command ")
    assert said[1].strip() == hint


def test_a_file_of_this_folder_is_known(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run.refleak", "report.json", "leaky"):
        Path(name).touch()
    Path("leaky").chmod(0o755)
    Path("folder").mkdir()
    named = ("run.refleak", "report.json", "leaky", "other", "./folder")
    assert [main([name]) for name in named] == [66] * 5
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "refleak: ./folder is a directory, and no command"
    assert [line.strip() for line in said[1::2]] == [
        "to read it: refleak report run.refleak", "to read it: refleak report report.json",
        "to run the file of this folder: refleak ./leaky",
        *["check its name and path; refleak --help shows examples"] * 2,
    ]


def test_a_recording_that_is_run_is_to_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its folder before its name it was to be made executable."""
    monkeypatch.chdir(tmp_path)
    Path("run.refleak").touch()
    Path("script").touch()
    assert [main(["./run.refleak"]), main(["./script"])] == [77, 77]
    hints = [line.strip() for line in capsys.readouterr().err.splitlines()[1::2]]
    assert hints == ["to read it: refleak report ./run.refleak", "chmod +x ./script"]


def test_a_file_of_this_folder_is_known_behind_options_and_subcommands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("leaky").touch()
    assert [main(words) for words in (["-q", "leaky"], ["probes", "leaky"], ["run", "leaky"])] == [66] * 3
    hints = [line.strip() for line in capsys.readouterr().err.splitlines()[1::2]]
    assert hints == [f"to run the file of this folder: refleak {name}./leaky" for name in ("", "probes ", "")]


def test_a_path_of_no_process_is_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It was no process's name, and "ps -e" was to list it."""
    assert main(["-p", str(tmp_path / "group")]) == 66
    assert capsys.readouterr().err.splitlines() == [
        f"refleak: there is no {tmp_path}/group", "         give the path of a program, or the directory of a cgroup",
    ]  # fmt: skip


def test_the_short_help_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit) as ended:
            main([flag])
        assert ended.value.code == 0
        texts.append(capsys.readouterr().out)
    short, long = texts
    assert len(short.splitlines()) < 45 < len(long.splitlines())
    assert "--suppressions" in short and "--ring-size" not in short and "--ring-size" in long
    assert "what to trace:" in long and "how much to keep:" in long
    assert "refleak --help shows all options" in short


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit):
            main([*filter(None, [name]), flag])
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if len(line) > width] == []
    summary = (command_module(name).__doc__ or "").partition("\n\n")[0]
    assert width < 200 or " ".join(summary.split()) in lines


def test_examples_of_the_help_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    examples = [line.split("#")[0].split()[2:] for line in capsys.readouterr().out.splitlines() if "  sudo " in line]
    parsed = [parse("", command_module(""), words) for words in examples]
    assert [one.command for one in parsed if one.pid is None] == [
        ["./perf", "probe", "-x", "/bin/true", "main"], ["CMD", "..."], ["CMD", "..."],
    ]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit):
            main([name, flag])
        assert capsys.readouterr().out.startswith(f"usage: refleak {name}")


def imported_by(*words: str) -> set[str]:
    """Return the modules that a call of refleak imports."""
    command = [sys.executable, "-X", "importtime", "-m", "tracer", *words]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return {line.rpartition("|")[2].strip() for line in found.stderr.splitlines() if line.startswith("import time:")}


def test_the_version_imports_nothing_that_it_does_not_use() -> None:
    modules = imported_by("--version")
    own = {name for name in modules if name.startswith("tracer")}
    assert own == {
        "tracer", "tracer.lazy_names", "tracer.errors", "tracer.cli", "tracer.cli.main", "tracer.cli.interrupts",
        "tracer.cli.standard_streams",
    }  # fmt: skip
    assert not modules & {"argparse", "numpy", "rich", "capstone", "traceback", "subprocess"}


def test_a_report_imports_nothing_that_traces(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/replay/ledger.refleak", tmp_path)
    modules = imported_by("report", str(tmp_path / "ledger.refleak"))
    assert "tracer.analysis.analysis" in modules
    heavy = ("tracer.capture", "tracer.kernel", "tracer.probing", "tracer.sites", "capstone", "bcc")
    assert not {name for name in modules if name.startswith(heavy)}


def interrupted(command: list[str], after_seconds: float, *, twice: bool) -> tuple[int, str]:
    """Interrupt a command; return its status as a shell gives it, and what it wrote to standard error."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        time.sleep(after_seconds)
        for _ in range(1 + twice):
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    return (128 - process.returncode if process.returncode < 0 else process.returncode), said


@pytest.mark.parametrize("twice", [False, True])
def test_an_interrupt_at_any_moment_leaves_no_traceback(tmp_path: Path, twice: bool) -> None:
    """While the shell, Python, the imports, the analysis and the end go on."""
    recording = ROOT / "tests/replay/ledger.refleak"
    command = [str(REFLEAK), "report", str(recording), "--format", "html", "-o", str(tmp_path / "out.html")]
    began = time.monotonic()
    subprocess.run(command, check=True)
    whole = time.monotonic() - began
    for share in range(24):
        status, said = interrupted(command, whole * share / 20, twice=twice)
        assert (status in (0, 130), said) == (True, ""), f"after {share}/20 of {whole:.2f} s"
        assert twice or {path.name for path in tmp_path.iterdir()} <= {"out.html"}


@pytest.mark.parametrize(
    ("place", "words", "status", "said"),
    [
        ("tracer.cli.main.command_module", ["sleep", "1"], -signal.SIGINT, "before the trace began"),
        ("tracer.cli.main.command_module", ["top", "-p", "1"], -signal.SIGINT, "before the trace began"),
        ("tracer.cli.trace.check_output", ["sleep", "1"], 130, "before sleep was started"),
        ("tracer.cli.trace.check_output", ["-p", "1"], 130, "before the trace began"),
        ("tracer.cli.trace.trace_options", ["-p", "1"], 130, "before the trace began"),
    ],
)
def test_an_interrupt_before_the_trace_says_so(place: str, words: list[str], status: int, said: str) -> None:
    """It ended without a word while modules were imported: half a second and more."""
    module, _, function = place.rpartition(".")
    script = f"""
import importlib, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
from tracer.cli.main import main
importlib.import_module({module!r}).{function} = lambda *_: signal.raise_signal(signal.SIGINT)
raise SystemExit(main({words!r}))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, "", f"refleak: interrupted {said}\n")


def test_an_interrupt_that_is_ignored_from_the_start_is_ignored(tmp_path: Path) -> None:
    recording, out = ROOT / "tests/replay/ledger.refleak", tmp_path / "out.txt"
    script = f"trap '' INT; exec {REFLEAK} report {recording} -o {out}"
    assert interrupted(["sh", "-c", script], 0.2, twice=True) == (0, "")
    assert out.stat().st_size > 0


def test_steps_are_shown_on_a_terminal_only(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [str(REFLEAK), "report", str(ROOT / "tests/replay/ledger.refleak")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:  # the other end is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    assert said.split(b"\r")[1:] == [
        b"refleak: reading ...\x1b[K", b"\x1b[K", b"refleak: looking up names ...\x1b[K", b"\x1b[K",
        b"refleak: analysing ...\x1b[K", b"\x1b[K",
    ]  # fmt: skip
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""
