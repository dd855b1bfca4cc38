"""A process with hundreds of libraries: each of them is known when it is attached to."""

from __future__ import annotations

from pathlib import Path

from conftest import LiveTarget
from live_refleak import live_refleak
from traced_report import callers

from benchmarks.many_libraries import FIRST_SIZE, build_libraries

LIBRARIES = 300


def test_attach_to_a_process_with_300_libraries(live_target: LiveTarget, tmp_path: Path) -> None:
    build_libraries(tmp_path, LIBRARIES)
    with (
        live_target("many_libraries", tmp_path, LIBRARIES) as target,
        live_refleak(tmp_path / "report", "-p", target.pid) as refleak,
    ):
        refleak.wait_until_attached()
        assert target.stdin is not None
        target.stdin.write(b"x")
        target.wait()
        run = refleak.end()
    run.check_whole()
    leaks = run.below("leak_in_each", "allocation")
    found = {(callers(leak)[0]["function"], callers(leak)[0]["module"], leak["bytes"]) for leak in leaks}
    assert found == {(f"leak_in_{n}", f"libmany{n}.so", n + FIRST_SIZE) for n in range(LIBRARIES)}
    assert {leak["stack_status"] for leak in leaks} == {"complete"} and len(leaks) == LIBRARIES
