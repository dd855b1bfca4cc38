"""Functions that only the command line or a spec describes, without any annotation."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from traced_report import callers

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CONN = (
    "conn:create=conn_new,create=conn_open(object=*arg0, fails=negative),get=conn_ref,get=conn_ref_checked,"
    "get=conn_find(object=return),put=conn_unref,delete=conn_free"
)
POOL = (
    "alloc pool:alloc=pool_alloc(size=arg0),alloc=pool_calloc(size=arg0*arg1),"
    "alloc=pool_get(size=arg1, object=*arg0, fails=nonzero),realloc=pool_realloc(size=arg1),free=pool_free"
)
FAMILY = """\
[[type]]
name = "{type}"
counter = "member:refcnt"
create = "{type}__new"
get = ["{type}__get", "pear__grab"]
put = "{type}__put"
"""


def trace(folder: Path, name: str, *options: str) -> dict[str, Any]:
    program, report = folder / name, folder / "report.json"
    source = HERE / f"{name}.c"
    subprocess.run(["gcc", "-g", "-O1", "-Wno-unused-result", "-o", str(program), str(source)], check=True)
    whole = ("--reachability", "off")
    command = [str(ROOT / "refleak"), *whole, *options, "--format", "json", "-o", str(report), "--exec", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert (found["lost"], found["errors"], found["probes"]["unresolved"]) == ([], [], [])
    return found


def totals(report: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    names = ("created", "gets", "puts", "destroyed", "outstanding")
    return {row["type"]: tuple(row[name] for name in names) for row in report["totals"]["references"]}


# Created: 2 x 5, 3 in leak(), 2 below conn_open. Gets: in each turn the peer's and one more, 3 in leak(), the peer's
# below conn_open, one find. Puts: 4 in each turn, below conn_open one, after it 1 + 2.
@pytest.mark.parametrize("counter", ["", ",counter=4", ",counter=member:refcnt"])
def test_the_inside_of_a_call_counts_once(counter: str, tmp_path: Path) -> None:
    report = trace(tmp_path, "conn", "--refs-only", "--type", CONN + counter)
    assert totals(report) == {"conn": (15, 15, 24, 12, 3)}
    (leak,) = report["leaks"]
    assert (leak["count"], callers(leak)[0]["function"]) == (3, "leak")
    assert {instance["references"] for instance in leak["instances"]} == {2}


def of_pool(report: dict[str, Any]) -> tuple[int, int]:
    """Return the blocks and bytes of all lines that took some from the pool."""
    entries = [leak for leak in report["leaks"] if leak["type"] == "pool"]
    return sum(leak["count"] for leak in entries), sum(leak["bytes"] for leak in entries)


def test_the_blocks_of_a_pool_are_not_those_of_malloc(tmp_path: Path) -> None:
    report = trace(tmp_path, "pool", "--type", POOL)
    assert of_pool(report) == (6, 2 * 13 + 33 + 19 + 23 + 29)
    assert sum(leak["bytes"] for leak in report["leaks"] if leak["type"] == "malloc") == 4099 + 3 * 77


def test_the_blocks_of_a_pool_are_chosen_by_size_too(tmp_path: Path) -> None:
    report = trace(tmp_path, "pool", "--type", POOL, "--min-size", "20")
    assert of_pool(report) == (3, 33 + 23 + 29)
    assert report["notes"] == []


def test_a_wrapper_has_the_blocks_of_malloc(tmp_path: Path) -> None:
    report = trace(tmp_path, "pool", "--type", "alloc xmalloc:alloc=xmalloc(size=arg0),wraps=yes")
    leaks = sorted((leak["type"], leak["count"], leak["bytes"]) for leak in report["leaks"])
    assert leaks == [("malloc", 1, 4099), ("xmalloc", 3, 231)]


def test_what_cannot_be_probed_makes_no_leak_and_no_error(tmp_path: Path) -> None:
    """Five were leaked, or freed while counted."""
    program, report = tmp_path / "unprobed", tmp_path / "report.json"
    subprocess.run(["gcc", "-g", "-O1", "-o", program, HERE / "unprobed.c"], check=True)
    command = [ROOT / "refleak", "--type", "node:create=node_new,put=node_put", "--format", "json", "-o", report]
    done = subprocess.run([*command, "--exec", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert [one["function"] for one in found["probes"]["unresolved"]] == ["node_put"]
    assert (found["errors"], [leak for leak in found["leaks"] if leak["state"] == "leaked"]) == ([], [])
    assert any("5 errors of node may be none" in note for note in found["notes"])


def test_one_line_describes_a_family(tmp_path: Path) -> None:
    """The pear is grabbed by inlined copies alone, which have probes of their own."""
    spec = tmp_path / "fruit.toml"
    spec.write_text(FAMILY)
    report = trace(tmp_path, "family", "--refs-only", "--spec", str(spec))
    assert totals(report) == {"apple": (1, 4, 3, 0, 1), "pear": (1, 2, 3, 1, 0)}
    assert report["probes"]["inlined_not_covered"] == []


@pytest.mark.parametrize(("more", "status"), [((), 68), (("--allow-missing",), 0)])
def test_a_type_that_nothing_has_is_said_and_no_verdict_rests_on_it(
    more: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    report = tmp_path / "report.txt"
    command = [str(ROOT / "refleak"), "--refs-only", "--type", "con:create=con_new,put=con_unref", *more]
    done = subprocess.run([*command, "-o", str(report), "--exec", "true"], capture_output=True, text=True, timeout=120,
                          check=False)  # fmt: skip
    assert done.returncode == status, done.stderr
    first = report.read_text().splitlines()[0]
    but = "nothing was probed" if more else "con was found nowhere and nothing was probed"
    assert first == f"refleak: no leak found, but {but}"
    assert ("found nowhere: con" in done.stderr) == (not more)
