"""Types named by the class that an object points to."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from traced_report import callers

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
C_TYPE = "obj:create=obj_new,get=obj_get,put=obj_put,counter=16,class=8"
CPP_SPEC = """\
[[type]]
name = "counted"
counter = 8
class = 0
create = "_ZN3net*C2E*(object=arg0)"
get = "counted_get"
put = "counted_put"
"""


def trace(folder: Path, source: str, build: tuple[str, ...], *options: str) -> dict[str, Any]:
    program, report = folder / "program", folder / "report.json"
    subprocess.run([*build, "-g", "-O1", "-o", str(program), str(HERE / source)], check=True)
    command = [str(ROOT / "refleak"), "--refs-only", *options, "--format", "json", "-o", str(report)]
    done = subprocess.run(
        [*command, "--exec", str(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert (found["errors"], found["probes"]["unresolved"]) == ([], [])
    return found


def totals(report: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = ("created", "gets", "puts", "destroyed", "outstanding")
    return {row["type"]: tuple(row[name] for name in names) for row in report["totals"]["references"]}


@pytest.mark.parametrize("linked", ["-pie", "-no-pie"])
def test_the_symbol_of_a_class_names_the_type(linked: str, tmp_path: Path) -> None:
    """Of parent and child, each at addresses of its own, one row; no neighbour's name for what has no symbol."""
    report = trace(tmp_path, "classes.c", ("gcc", linked), "--type", C_TYPE)
    assert report["lost"] == []
    assert totals(report) == {
        "file_class": (6, 0, 6, 6, 0),
        "socket_class": (6, 6, 0, 0, 6),
        "obj": (3, 0, 3, 3, 0),
        "neighbours+0x10": (1, 0, 1, 1, 0),
    }
    parent, child = report["leaks"]
    for leak in (parent, child):
        assert (leak["type"], leak["count"], callers(leak)[0]["function"]) == ("socket_class", 3, "work")
    assert parent["pid"] != child["pid"]


def test_two_runs_have_the_same_entries(tmp_path: Path) -> None:
    """Their address spaces are laid out differently."""
    runs = [trace(tmp_path, "classes.c", ("gcc", "-pie"), "--type", C_TYPE)["leaks"] for _ in range(2)]
    first, second = ([leak["id"] for leak in leaks] for leaks in runs)
    assert len(first) == 2
    assert first == second


def test_a_class_without_symbol_is_called_by_its_place(tmp_path: Path) -> None:
    report = trace(tmp_path, "classes.c", ("gcc", "-Wl,--export-dynamic-symbol=obj_*", "-s"), "--type", C_TYPE)
    found = totals(report)
    assert sorted(found.values()) == [(1, 0, 1, 1, 0), (3, 0, 3, 3, 0), (6, 0, 6, 6, 0), (6, 6, 0, 0, 6)]
    assert found.pop("obj") == (3, 0, 3, 3, 0)
    assert all(re.fullmatch(r"class program\+0x[0-9a-f]+", name) for name in found)


@pytest.mark.parametrize(("options", "conn", "queue"), [
    ((), "net::Conn", "net::Queue<int>"),
    (("--no-demangle",), "_ZTVN3net4ConnE", "_ZTVN3net5QueueIiEE"),
])  # fmt: skip
def test_vtables_name_the_types_of_cpp(options: tuple[str, ...], conn: str, queue: str, tmp_path: Path) -> None:
    spec = tmp_path / "counted.toml"
    spec.write_text(CPP_SPEC)
    report = trace(tmp_path, "virtual.cpp", ("g++",), *options, "--spec", str(spec))
    assert totals(report) == {conn: (4, 0, 4, 4, 0), queue: (2, 2, 2, 0, 2)}
    (leak,) = report["leaks"]
    assert (leak["type"], leak["count"]) == (queue, 2)
