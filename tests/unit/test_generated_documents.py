"""The files that docs/generate.py writes: in step with the parsers, and good for their readers."""

from __future__ import annotations

import os
import pty
import re
import runpy
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tracer.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
GENERATED: dict[Path, str] = runpy.run_path(str(ROOT / "docs/generate.py"))["generated"]()
COMPLETION = ROOT / "completions/refleak.bash"
ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_refleak refleak "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("path", GENERATED, ids=str)
def test_file_is_in_step(path: Path) -> None:
    assert (ROOT / path).read_text() == GENERATED[path], "run `make docs`"


def test_every_command_has_its_page_and_no_other() -> None:
    pages = {path.stem for path in (ROOT / "docs/commands").glob("*.md")}
    assert pages == {"refleak", *COMMANDS}


def test_manual_page_is_well_formed() -> None:
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    page = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-b", ROOT / "docs/refleak.1"], capture_output=True, text=True, check=True
    )
    assert page.stderr == ""
    for words in ("NAME", "SYNOPSIS", "EXIT STATUS", "SEE ALSO"):
        assert words in re.sub(".\b", "", page.stdout)  # bold is overstruck


def _completed(*words: str) -> list[str]:
    asked = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", COMPLETION, "refleak", *words], capture_output=True, text=True, check=True
    )
    assert asked.stderr == ""
    return asked.stdout.split()


@pytest.mark.parametrize(
    ("words", "replies"),
    [
        (["doc"], ["doctor"]),
        (["--ref"], ["--refs-only"]),
        (["--refs-only", "--heap"], ["--heap-only"]),
        (["doctor", "--f"], ["--format"]),
        (["doctor", "--format", "j"], ["json"]),
        (["doctor", ""], []),
        (["probes", "--allo"], ["--allocator"]),
        (["probes", "groff-does-not-begin-so"], []),
        (["--max-objects", ""], []),
        (["--user", "roo"], ["root"]),
        (["--preset", "gli"], ["glib"]),
        (["specs", "gl"], ["glib"]),
        (["--fail-on", "lea"], ["leaks"]),
        (["--fail-on", "lost,errors,incom"], ["lost,errors,incomplete"]),
        (["--format", "=", "jun"], ["junit"]),
        (["--reachability", "="], ["auto", "off"]),
        (["--format", "=", "json", "bashbu"], ["bashbug"]),
        (["diff", "--format", "=", "s"], ["sarif"]),
        (["report", "--show", "reach"], ["reachable"]),
        (["bashbu"], ["bashbug"]),
        (["--", "ls", "--ref"], []),
        (["ls", "--ref"], []),
        (["run", "--refs-only", "--top", "3", "bashbu"], ["bashbug"]),
        (["top", "--interv"], ["--interval"]),
        (["top", "bashbu"], ["bashbug"]),
        (["--exec", "bashbu"], ["bashbug"]),
        (["--exec", "ls", "--ref"], []),
    ],
)
def test_completion(words: list[str], replies: list[str]) -> None:
    assert sorted(set(_completed(*words))) == replies


OWN = """
PS1='READY '
source /usr/share/bash-completion/bash_completion; source %s
_own() { COMPREPLY=("push "); }; complete -o nospace -F _own own
bind -x '"\\C-g": printf "<%%s>" "$READLINE_LINE"'
"""


@pytest.mark.parametrize(
    ("typed", "line"),
    [("refleak --exec own pus", "refleak --exec own push "), ("refleak run own pus", "refleak run own push "),
     ("refleak --exec cat {}/a\\ fil", "refleak --exec cat {}/a\\ file ")],
)  # fmt: skip
def test_bash_completes_a_command_as_it_does_alone(tmp_path: Path, typed: str, line: str) -> None:
    """Its replies were quoted as names of files: `git push\\ `."""
    (tmp_path / "a file").touch()
    (tmp_path / "rc").write_text(OWN % COMPLETION)
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("bash", ["bash", "--rcfile", str(tmp_path / "rc"), "-i"])
    try:
        _read_until(terminal, re.compile(rb"READY "))  # what is typed before may be taken for lines
        os.write(terminal, f"{typed.format(tmp_path)}\t\a".encode())
        said = _read_until(terminal, re.compile(rb"<([^<>]*)>"))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    assert said.decode() == line.format(tmp_path)


def _read_until(terminal: int, wanted: re.Pattern[bytes]) -> bytes:
    """Return the last group of what comes, or all of it where there is none; fail where nothing more comes."""
    said = b""
    while (found := wanted.search(said)) is None:
        assert select.select([terminal], [], [], 60)[0], said
        said += os.read(terminal, 65536)
    return found[found.lastindex or 0]


def test_completion_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.refleak").touch()
    assert _completed("-o", "ru") == ["run.refleak"]
    assert _completed("--exec", "cat", "ru") == ["run.refleak"]


def test_completion_offers_all_commands() -> None:
    assert set(_completed("")) == {*COMMANDS, "run"}


ZSH = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "COLUMNS=2000"
zpty -w z "PROMPT='> '; fpath=(${(q)1} \\$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word"
zpty -w z "unsetopt list_beep; show() { BUFFER=\\"print -r -- \\${(q)BUFFER} :END\\"; zle accept-line }; zle -N show"
zpty -w z "bindkey '^G' show; print READY"
zpty -r z out '*READY*READY*'
zpty -n -w z "$2"$'\\t \\a'  # a blank takes the = or comma away that zsh offers
zpty -r z out '*:END*:END*'
print -r -- $out
zpty -d z
"""
SAME = [
    ("refleak doct", "refleak doctor"),
    ("refleak doctor --form", "refleak doctor --format"),
    ("refleak --preset gli", "refleak --preset glib"),
    ("refleak specs gli", "refleak specs glib"),
    ("refleak --fail-on incom", "refleak --fail-on incomplete"),
    ("refleak --fail-on lost,incom", "refleak --fail-on lost,incomplete"),
    ("refleak --format=juni", "refleak --format=junit"),
    ("refleak report {}/run.re", "refleak report {}/run.refleak"),
    ("refleak --refs-only cat {}/run.re", "refleak --refs-only cat {}/run.refleak"),
    ("refleak --top 3 --exec cat {}/run.re", "refleak --top 3 --exec cat {}/run.refleak"),
    ("refleak run cat {}/run.re", "refleak run cat {}/run.refleak"),
]


def _needs(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")


@pytest.mark.parametrize(("typed", "line"), SAME)
def test_completion_for_fish(tmp_path: Path, typed: str, line: str) -> None:
    _needs("fish")
    (tmp_path / "run.refleak").touch()
    script = f"source {ROOT}/completions/refleak.fish; complete -C $argv[1]"
    command = ["fish", "--no-config", "-c", script, typed.format(tmp_path)]
    variables = {**os.environ, "HOME": str(tmp_path)}
    asked = subprocess.run(command, capture_output=True, text=True, check=True, env=variables)
    offered = {reply.partition("\t")[0] for reply in asked.stdout.splitlines()}
    assert line.format(tmp_path).rpartition(" ")[2] in offered, asked.stdout + asked.stderr


def _by_zsh(typed: str) -> str:
    _needs("zsh")
    command = ["zsh", "-f", "-c", ZSH, "zsh", str(ROOT / "completions"), typed]
    variables = {**os.environ, "TERM": "xterm"}  # without it zsh shows a part of the line only
    asked = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=variables)
    shown = [text.rstrip() for text in asked.stdout.splitlines() if text.rstrip().endswith(":END")]
    return shown[-1].removesuffix(":END").rstrip()


@pytest.mark.parametrize(("typed", "line"), SAME)
def test_completion_for_zsh(tmp_path: Path, typed: str, line: str) -> None:
    (tmp_path / "run.refleak").touch()
    assert _by_zsh(typed.format(tmp_path)) == line.format(tmp_path)


def test_names_of_processes_are_offered(tmp_path: Path) -> None:
    """-p takes them too."""
    sleep = shutil.copy("/bin/sleep", tmp_path / "unlike-other")
    with subprocess.Popen([sleep, "1000"]) as process:
        try:
            assert _completed("-p", "unlike-o") == ["unlike-other"]
            assert str(process.pid) in _completed("-p", str(process.pid))
            assert _by_zsh("refleak -p unlike-o") == "refleak -p unlike-other"
        finally:
            process.kill()
