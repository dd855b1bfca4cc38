"""`python3 -X perf` (3.12), `-X perf_jit` (3.13): trampolines with neither an unwind table nor frame pointers."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Refleak
from test_interpreters import EACH, LOAD, LOOP, PYTHONS, SCRIPTS, calls, of_size, python_line
from traced_report import Json, Run, callers

VERSIONS = {version: tuple(map(int, version.split("."))) for version in PYTHONS}
OPTIONS = [(name, "perf") for name, number in VERSIONS.items() if number >= (3, 12)]
OPTIONS += [(name, "perf_jit") for name, number in VERSIONS.items() if number >= (3, 13)]
FRAMES = (LOAD, EACH, python_line("<module>", "each(2003)"))


def traced(refleak: Refleak, targets: Path, version: str, option: str, shown: str) -> Run:
    python = PYTHONS[version]
    with python.command("-I", "-X", option, SCRIPTS / "leaky.py", targets / "libscripts.so") as command:
        run = refleak("--interpreters", shown, "--top", 1000, target=command)
    for process in run.report["processes"]:
        for log in ("perf-{}.map", "jit-{}.dump"):  # where Python puts them
            (Path(python.root or "/") / "tmp" / log.format(process["pid"])).unlink(missing_ok=True)
    assert (run.status, run.report["lost"]) == (0, []), run.stderr
    assert {leak["stack_status"] for leak in run.leaks} <= {"complete", "truncated"}
    return run


def generated(leak: Json) -> list[tuple[str | None, str]]:
    return [(f["function"], Path(f["file"]).name) for f in callers(leak) if f["kind"] == "jit"]


@pytest.mark.parametrize(("version", "option"), OPTIONS)
def test_trampolines_name_the_functions_of_a_script(refleak: Refleak, targets: Path, version: str, option: str) -> None:
    run = traced(refleak, targets, version, option, "off")
    for size, functions in ((2003, [frame[:2] for frame in FRAMES]), (8009, [("<module>", "leaky.py")])):
        leaks = of_size(run, size)  # several where the interpreter has no symbols: by the places of its calls
        assert leaks
        for leak in leaks:
            assert (generated(leak), leak["stack_status"]) == (functions, "complete")
            names = [frame["function"] for frame in callers(leak)]
            assert names.count(LOOP) in (len(functions), 0) and names[-1] == "_start"


@pytest.mark.parametrize(("version", "option"), OPTIONS)
def test_a_trampoline_is_not_shown_beside_the_function_itself(
    refleak: Refleak, targets: Path, version: str, option: str
) -> None:
    run = traced(refleak, targets, version, option, "auto")
    assert calls(run, 2003) == {FRAMES: 3}
    for size in (2003, 1009, 3001, 4001, 6007, 8009):
        assert [generated(leak) for leak in of_size(run, size)] == [[] for _ in of_size(run, size)]


if not OPTIONS:  # nothing to collect, rather than a skip: the target `trampolines` has what matters
    del test_trampolines_name_the_functions_of_a_script, test_a_trampoline_is_not_shown_beside_the_function_itself
