"""What README.md and the other documents say is there: commands, options, files, statuses."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from tracer import errors
from tracer.cli.main import COMMANDS, command_module
from tracer.cli.parsing import parse, parser_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
STAND_INS = {"PID": "1", "./prog": "true", "S": "1", "CMD": "true", "N": "1", "...": "argument"}
COMMAND_LINES = sorted(
    {
        re.sub(r"\s+#.*", "", line.strip().removeprefix("$ ").removeprefix("sudo "))
        for line in README.splitlines()
        if re.match(r"    (\$ )?(sudo )?(\./)?refleak [^:]", line) and "refleak:" not in line
    }
)


def test_commands_are_found() -> None:
    assert len(COMMAND_LINES) >= 8
    assert {line.split()[1] for line in COMMAND_LINES} >= {"CMD", "./prog", "-p", "report", "diff", "probes", "doctor"}


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_command_is_understood(line: str) -> None:
    words = [STAND_INS.get(word, word) for word in shlex.split(line)[1:]]
    name = words[0] if words[0] in COMMANDS else ""
    parse(name, command_module(name), words[1:] if name else words)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", document.read_text())
    broken = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert broken == []


def test_every_document_is_named() -> None:
    named = set(re.findall(r"\]\((docs/[^)#]+)", README))
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")} - named == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_options_exist(document: Path) -> None:
    known = {flag for name in ("", *COMMANDS) for action in parser_of(name)._actions for flag in action.option_strings}
    text = document.read_text()
    named = set(re.findall(r"(?<=`)--[a-z-]+", text))
    foreign = {"--interpreted-frames-native-stack", "--list", "--sample", "--system-site-packages", "--strict"}
    assert named - known - foreign == set()


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for document in DOCUMENTS:
        for text in re.findall(r"(?:^    |`)make ([a-z]+)", document.read_text(), re.M):
            assert text in targets, document


def test_make_test_builds_the_perf_that_it_traces() -> None:
    """Else the tests of it are skipped; where it cannot be built, the others run."""
    printed = subprocess.run(
        ["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    builds = [printed.index(f"examples/perf/build.sh{variant}") for variant in ("", " --unmodified")]
    (tests,) = (at for at, line in enumerate(printed) if line.endswith("-m pytest tests"))
    assert max(builds) < tests


def test_exit_statuses_are_those_of_the_errors() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", README, re.M)
    statuses = runpy.run_path(str(ROOT / "docs/generator/exit_statuses.py"))["exit_statuses"]()
    assert [(int(status), name, hint) for status, name, hint in rows] == statuses
    assert {status for status, _, _ in statuses} == {
        kind.exit_code for kind in errors.RefleakError.__subclasses__()
    }


def test_statuses_differ() -> None:
    codes = [kind.exit_code for kind in (errors.RefleakError, *errors.RefleakError.__subclasses__())]
    assert len(set(codes)) == len(codes)


def test_license_is_the_second_version_of_the_gpl() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991" in text
    assert text.rstrip().endswith("Public License instead of this License.")
