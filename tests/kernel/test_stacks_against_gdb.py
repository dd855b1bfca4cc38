"""Stacks of unmodified programs: equal to gdb's on a sample, and whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from bpf_residue import Residue
from compare_with_gdb import DISTURBED

SCRIPT = Path(__file__).parent / "compare_with_gdb.py"
TIMEOUT_SECONDS = 180
WHOLE_SHARE = 0.999
ENVIRONMENT = {
    "PATH": os.defpath, "LC_ALL": "C", "HOME": "/nonexistent", "PYTHONHASHSEED": "0", "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 500) insert into t select i, hex(i * i) from n;
create index by_b on t(b);
select b, count(*) from t where b like '3%' group by substr(b, 1, 3) order by 2 desc;
"""
PYTHON = """
import json
tree = [{"key %d" % i: [i] * 9, "more": {"text": "x" * i}} for i in range(100)]
for _ in range(3):
    tree = json.loads(json.dumps(tree, indent=1))
"""
LUA = """
local t = {}
for i = 1, 2000 do t[#t + 1] = string.rep("x", i % 97) .. i end
table.sort(t, function(a, b) return #a < #b or (#a == #b and a < b) end)
print(table.concat(t, ","):gsub("x+", "y"):len())
"""
LUAJIT = """
package.cpath = "FOLDER/?.so"
require "libnative"
local function descend(n)
    if n == 0 then leak() else around(descend, n - 1) end
end
for i = 1, 50 do pcall(descend, i % 7) end
"""
NODE = "console.log([...Array(2000).keys()].map(i => JSON.parse(JSON.stringify({i, s: 'x'.repeat(i % 97)}))).length)"

Compare = Callable[..., dict[str, Any]]


def program(name: str) -> str:
    path = shutil.which(name, path=os.defpath)
    if path is None:
        pytest.skip(f"needs {name}")
    return path


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a git repository of 30 commits to a handful of files."""
    git, folder = program("git"), tmp_path_factory.mktemp("repository")
    stream = []
    for n in range(30):
        text = "\n".join(f"line {line} of {n}" for line in range(n % 7 + 20))
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_000_000 + n} +0000\n"
            f"data <<END\nchange {n}\nEND\n"
            f"M 100644 inline folder/file{n % 5}\ndata <<END\n{text}\nEND\n"
        )
    environment = ENVIRONMENT | {"HOME": str(folder)}
    subprocess.run([git, "init", "-q", "-b", "main", folder], check=True, env=environment)
    subprocess.run(
        [git, "-C", folder, "fast-import", "--quiet"], input="\n".join(stream), text=True, check=True, env=environment
    )
    return folder


def compare(command: Sequence[str | Path], *, stops: int, every: int = 1) -> dict[str, Any]:
    """Run compare_with_gdb.py on a command; fail where a stack differs from gdb's."""
    if stops:
        program("gdb")
    residue = Residue()
    options = ["--json", "--stops", str(stops), "--every", str(every), "--", *map(str, command)]
    result = subprocess.run(
        [sys.executable, "-E", str(SCRIPT), *options], env=ENVIRONMENT, capture_output=True, text=True,
        timeout=TIMEOUT_SECONDS, check=False,
    )  # fmt: skip
    if result.returncode == DISTURBED:
        pytest.skip(f"needs a machine of its own: {result.stderr.strip()}")
    assert result.stdout, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    assert found["differing"] == [], found["differing"][0]
    assert residue.left() == []
    return found


@pytest.fixture
def git(repository: Path) -> list[str | Path]:
    return [program("git"), "-C", repository, "--no-pager", "log", "--stat", "-p"]


def check_whole(found: dict[str, Any]) -> None:
    print(f"\n{found['calls']:,} allocations: {found['statuses']}, {found['equal']} of {found['sampled']} as gdb's")
    assert found["calls"] > 0 and found["lost"] == {}
    assert found["whole"] > WHOLE_SHARE * found["calls"], found["statuses"]


@pytest.mark.parametrize(
    ("target", "calls"),
    [(("qsort_callback",), 7), (("signal_handler",), 13), (("deep", "100"), 5), (("realigned",), 3)],
)
def test_c_equals_gdb_everywhere(targets: Path, target: tuple[str, ...], calls: int) -> None:
    found = compare([targets / target[0], *target[1:]], stops=100)
    assert (found["calls"], found["whole"], found["sampled"], found["equal"]) == (calls,) * 4


def test_a_stack_that_is_cut_equals_gdb_as_far_as_it_goes(targets: Path) -> None:
    found = compare([targets / "deep", "200"], stops=100)
    assert (found["statuses"], found["sampled"], found["equal"]) == ({"TRUNCATED": 5}, 5, 5)


def test_git(git: list[str | Path]) -> None:
    found = compare(git, stops=25, every=47)
    check_whole(found)
    assert found["equal"] >= 20


def test_sqlite() -> None:
    found = compare([program("sqlite3"), ":memory:", SQL], stops=25, every=47)
    check_whole(found)
    assert found["equal"] >= 20


def test_python() -> None:
    """The distribution's own, which is stripped and has no frame pointers."""
    python = "/usr/bin/python3"
    if not Path(python).exists():
        pytest.skip(f"needs {python}")
    found = compare([python, "-I", "-c", PYTHON], stops=25, every=61)
    check_whole(found)
    assert found["equal"] >= 20


def test_lua() -> None:
    found = compare([program("lua5.4"), "-e", LUA], stops=25, every=211)
    check_whole(found)
    assert found["equal"] >= 20


def test_exceptions_in_threads(targets: Path) -> None:
    """Among them the unwinder's own allocations, when it throws and when it has caught."""
    found = compare([targets / "cpp"], stops=40, every=3)
    check_whole(found)
    assert found["equal"] >= 30


def test_luajit(targets: Path) -> None:
    """Its interpreter is assembly, which has a table; what it compiles has none."""
    script = LUAJIT.replace("FOLDER", str(targets))
    found = compare([program("luajit"), "-joff", "-e", script], stops=25, every=7)
    check_whole(found)
    assert found["equal"] >= 20


def test_node() -> None:
    """Just-in-time code has no tables; it is passed by its frame pointers, which gdb does not do."""
    check_whole(compare([program("node"), "-e", NODE], stops=0))
