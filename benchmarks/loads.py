"""Real programs as loads: git, sqlite3, Python, perf, jq, a compiler."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.commands import Unmeasured, run
from benchmarks.settings import CHECKOUT, Settings

_PREPARE_SECONDS = 60
_CPP = """\
#include <algorithm>
#include <map>
#include <string>
#include <vector>
int main(int count, char **words)
{
    std::map<std::string, std::vector<int>> places;
    for (int i = 0; i < count; i++)
        places[words[i]].push_back(i);
    for (auto &place : places)
        std::sort(place.second.begin(), place.second.end());
    return places.size() & 1;
}
"""
_PYTHON = """\
import json, sys
path, times = sys.argv[1], int(sys.argv[2])
text = open(path).read()
for _ in range(times):
    kept = json.loads(text)
print(len(kept), len(json.dumps(kept)))
"""


@dataclass(frozen=True)
class Load:
    """A command made ready, and the name its process goes by."""

    title: str
    name: str
    command: tuple[str | Path, ...]
    environment: Mapping[str, str]


def _program(name: str) -> str:
    found = shutil.which(name, path="/usr/bin:/bin")
    if found is None:
        raise Unmeasured(f"{name} is not installed")
    return found


def git_log(settings: Settings) -> Load:
    """Make a repository of many small changes to one file, and show them all."""
    git, folder = _program("git"), settings.folder / "repository"
    environment = {"HOME": str(settings.folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
    if not folder.exists():
        history = settings.folder / "history"
        history.write_bytes(b"".join(_commits(settings.count(300, 10))))
        run([git, "init", "-q", folder], _PREPARE_SECONDS, environment=environment).checked()
        script = f'exec "{git}" -C "{folder}" fast-import --quiet <"{history}"'
        run(["/bin/sh", "-c", script], _PREPARE_SECONDS, environment=environment).checked()
    return Load("git log -p", "git", (git, "-C", folder, "log", "-p", "main"), environment)


def _commits(count: int) -> Iterator[bytes]:
    """Yield a stream for git fast-import (its manual, section INPUT FORMAT)."""
    lines = [f"line {number} of the first version" for number in range(600)]
    for commit in range(count):
        for change in range(12):
            lines[(commit * 37 + change * 53) % len(lines)] = f"line changed in {commit}, the {change}th of its changes"
        text, message = "\n".join(lines).encode() + b"\n", f"Change {commit}".encode()
        yield b"commit refs/heads/main\ncommitter A U Thor <author@example.com> %d +0000\n" % (1_600_000_000 + commit)
        yield b"data %d\n%s\nM 100644 inline file\ndata %d\n%s\n" % (len(message), message, len(text), text)


def sqlite_table(settings: Settings) -> Load:
    """Fill a table in memory and query it."""
    program, script = _program("sqlite3"), settings.folder / "table.sql"
    rows = settings.count(40_000, 500)
    script.write_text(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, price REAL, parent INTEGER);\n"
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<{rows})\n"
        "INSERT INTO t SELECT i, 'item ' || (i * 7919 % 10007), i * 0.25, i / 10 FROM n;\n"
        "CREATE INDEX by_name ON t(name);\n"
        "SELECT name, count(*), group_concat(id) FROM t GROUP BY name HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 20;\n"
        "SELECT upper(a.name), b.price FROM t a JOIN t b ON b.id = a.parent ORDER BY a.name LIMIT 20;\n"
        + "".join(f"INSERT INTO t(name, price) VALUES('more {i}', {i}.5);\n" for i in range(settings.count(3000, 50)))
    )
    return Load("sqlite3, fill and query", "sqlite3", (program, ":memory:", f".read {script}"), {})


def _entries(settings: Settings, name: str, count: int) -> Path:
    """Write a JSON document of nested objects."""
    document = settings.folder / name
    entry = '{"name": "entry %d", "tags": ["a", "b%d", "c"], "value": %d.25, "inner": {"x": [1, 2, 3, %d]}}'
    document.write_text("[" + ",".join(entry % (i, i, i, i) for i in range(settings.count(count, 100))) + "]")
    return document


def python_json(settings: Settings) -> Load:
    """Parse a JSON document of nested objects."""
    document, script = _entries(settings, "document.json", 10_000), settings.folder / "parse.py"
    script.write_text(_PYTHON)
    return Load("python3, json", "python3", (_program("python3"), "-I", script, document, "4"), {})


def perf_report(settings: Settings) -> Load:
    """Record a small workload with examples/perf's perf and report it."""
    program = CHECKOUT / "examples/perf/build/perf"
    if not program.exists():
        raise Unmeasured("examples/perf is not built (make perf)")
    data = settings.folder / "perf.data"
    environment = {"PERF_CONFIG": os.devnull, "PERF_BUILDID_DIR": str(settings.folder / "build-ids")}
    if not data.exists():
        work = f"print(sum(i % 7 for i in range({settings.count(8_000_000, 100_000)})))"
        command = (program, "record", "-e", "cpu-clock", "-g", "-o", data, _program("python3"), "-I", "-c", work)
        run(command, _PREPARE_SECONDS, environment=environment).checked()
    return Load("perf report", "perf", (program, "report", "--stdio", "-i", data), environment)


def jq_sum(settings: Settings) -> Load:
    """Read a JSON document of nested objects, and sum up one of their numbers."""
    document = _entries(settings, "entries.json", 20_000)
    return Load("jq", "jq", (_program("jq"), "map(.value) | add", document), {})


def cpp_compiler(settings: Settings) -> Load:
    """Compile one file of C++ with templates of the standard library, past its preprocessor and its driver."""
    source, text = settings.folder / "load.cc", settings.folder / "load.ii"
    source.write_text(_CPP)
    driver = _program("g++")
    run([driver, "-E", source, "-o", text], _PREPARE_SECONDS).checked()
    found = run([driver, "-print-prog-name=cc1plus"], _PREPARE_SECONDS).checked().stdout.strip()
    command = (found, "-quiet", "-fpreprocessed", text, "-O1", "-o", os.devnull)
    return Load("C++ compiler", "cc1plus", command, {})


LOADS = {
    "git log -p": git_log, "sqlite3": sqlite_table, "python3": python_json, "perf report": perf_report,
    "jq": jq_sum, "C++ compiler": cpp_compiler,
}  # fmt: skip
