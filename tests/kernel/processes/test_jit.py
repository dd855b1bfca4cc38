"""Code that is made at run time: names, lines and whole stacks, at addresses that are used again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REFLEAK, LiveTarget, Refleak
from live_refleak import live_refleak
from traced_report import Json, Run, callers, functions

CODE = "code.c"
HERE = Path(__file__).parent


def lines(source: Path, *texts: str) -> list[int]:
    """Return the numbers of the lines that hold these texts."""
    found = source.read_text().splitlines()
    return [next(i for i, line in enumerate(found, 1) if text in line) for text in texts]


def check_leak(leak: Json, letter: str, caller: str) -> None:
    call_of_malloc, call_of_leak = lines(
        Path(__file__).parents[1] / "targets" / "jitted" / CODE, "block = allocate(size)", "block = NAMED"
    )
    names = functions(callers(leak))
    assert names[:3] == [f"leak_{letter}", f"enter_{letter}", caller] and names[-1] == "_start"
    assert [(Path(f["file"]).name, f["line"], f["kind"], f["module"]) for f in callers(leak)[:2]] == [
        (CODE, call_of_malloc, "jit", "[jit]"), (CODE, call_of_leak, "jit", "[jit]"),
    ]  # fmt: skip
    assert {frame["kind"] for frame in callers(leak)[2:]} == {"native"}
    assert leak["stack_status"] == "complete"


def by_name(run: Run, name: str) -> list[tuple[int, int]]:
    return [(leak["count"], leak["bytes"]) for leak in run.below(name)]


def test_images_that_follow_each_other_at_one_address(refleak: Refleak, targets: Path) -> None:
    a, b = targets / "jitted-a.o", targets / "jitted-b.o"
    run = refleak(target=("gdbjit", a, b, a))
    run.check_whole()
    assert (by_name(run, "leak_a"), by_name(run, "leak_b")) == ([(28, 8698)], [(13, 4043)])
    for leak in run.below("run"):
        check_leak(leak, "b" if leak["count"] == 13 else "a", "run")


def test_what_erlang_tells_gdb_of(refleak: Refleak, targets: Path) -> None:
    """It is no ELF file, and was counted as lost."""
    a, b = targets / "jitted-a.o", targets / "jitted-b.o"
    run = refleak(target=("gdbjit", "beam", a, b, a))
    run.check_whole()
    found = {}
    for leak in (leak for leak in run.report["leaks"] if leak["kind"] == "allocation"):
        frame = callers(leak)[0]
        assert (frame["kind"], Path(frame["file"]).name) == ("jit", "code.erl")
        found[frame["function"]] = frame["line"], leak["count"], leak["bytes"]
    assert found == {
        "code:made_0/0": (40, 11, 3377), "code:made_1/0": (41, 13, 4043), "code:made_2/0": (42, 17, 5321)
    }  # fmt: skip


def test_an_image_registered_before_the_attach(live_target: LiveTarget, targets: Path, tmp_path: Path) -> None:
    with (
        live_target("gdbjit", "late", targets / "jitted-b.o") as target,
        live_refleak(tmp_path / "report", "-p", target.pid) as refleak,
    ):
        assert target.stdin is not None
        refleak.wait_until_attached()
        target.stdin.write(b"x")
        target.wait()
        run = refleak.end()
    run.check_whole()
    [leak] = run.below("run")
    check_leak(leak, "b", "run")
    assert (leak["count"], leak["bytes"]) == (11, 3377)


def test_many_registrations(refleak: Refleak, targets: Path) -> None:
    run = refleak(target=("gdbjit", "many", 300, targets / "jitted-a.o"))
    run.check_whole()
    [leak] = run.below("run")
    check_leak(leak, "a", "run")
    assert (leak["count"], leak["bytes"]) == (11, 3377)


OUTERMOST = ("main", "__libc_start_call_main", "__libc_start_main", "_start")


def below_code(run: Run) -> set[tuple[object, ...]]:
    """Return count, size, status and callers of what code without a name has leaked."""
    return {
        (leak["count"], leak["bytes"] // leak["count"], leak["stack_status"], *functions(callers(leak))[1:])
        for leak in run.leaks if callers(leak)[0]["function"] is None and leak["state"] == "leaked"
    }  # fmt: skip


REGISTERED: set[tuple[object, ...]] = {
    (11, 307, "complete", "run_first", *OUTERMOST),
    (13, 311, "complete", "run_second", *OUTERMOST),
    (3, 313, "no-table"),
}


@pytest.mark.parametrize("target", [("eh_frames",), ("eh_frames", "info"), ("eh_frames-static",)])
def test_tables_registered_with_the_runtime(refleak: Refleak, target: tuple[str, ...]) -> None:
    run = refleak(target=target)
    run.check_whole()
    assert {(row[:5], row[-2:]) for row in below_code(run)} == {(row[:5], row[-2:]) for row in REGISTERED}


def test_a_forked_child_has_its_parent_s_tables(refleak: Refleak) -> None:
    run = refleak(target=("eh_frames", "fork"))
    run.check_whole()
    assert below_code(run) == REGISTERED | {(7, 317, "complete", "run_child", *OUTERMOST)}


@pytest.mark.parametrize("how", ["many", "again"])
def test_many_tables_registered_with_the_runtime(refleak: Refleak, how: str) -> None:
    run = refleak(target=("eh_frames", how, 300))
    run.check_whole()
    assert below_code(run) == {(11, 307, "complete", "run_first", *OUTERMOST)}


def check_perf_map_leak(leak: Json, names: list[str | None], count: int) -> None:
    assert functions(callers(leak))[: len(names)] == names and functions(callers(leak))[-1] == "_start"
    assert (leak["count"], leak["stack_status"]) == (count, "frame-pointer")


def test_a_perf_map_whose_code_is_replaced(refleak: Refleak) -> None:
    run = refleak(target=("perfmap",))
    run.check_whole()
    [first], [second] = run.below("run_first"), run.below("run_second")
    check_perf_map_leak(first, ["first", "run_first", "main"], 11)
    check_perf_map_leak(second, ["second one", "run_second", "main"], 13)
    assert {(callers(leak)[0]["kind"], callers(leak)[0]["module"]) for leak in (first, second)} == {("jit", "[jit]")}


def test_code_that_may_have_been_either_has_no_name(refleak: Refleak) -> None:
    run = refleak(target=("perfmap", "hurried"))
    run.check_whole()
    [first], [second] = run.below("run_first"), run.below("run_second")
    check_perf_map_leak(first, [None, "run_first", "main"], 11)
    assert callers(first)[0]["why_unknown"] == "code was replaced here: first or second one"
    check_perf_map_leak(second, ["second one", "run_second", "main"], 13)


def test_code_that_runs_straight_to_its_return(refleak: Refleak) -> None:
    """Without unwind table and frame pointers, the code at the return address says where the caller is."""
    run = refleak(target=("trampolines",))
    run.check_whole()
    outermost = ["main", "__libc_start_call_main", "__libc_start_main", "_start"]
    found = {
        (leak["count"], leak["bytes"] // leak["count"], leak["stack_status"], *functions(callers(leak)))
        for leak in run.leaks if any(frame["kind"] == "jit" for frame in callers(leak))
    }  # fmt: skip
    signalled = {stack for stack in found if "on_signal" in stack}
    assert found - signalled == {
        (11, 307, "complete", "leak", "plain", "run", *outermost),
        (13, 311, "complete", "leak", "with rbp", "run", *outermost),
        (17, 313, "complete", "leak", "with leave", "run", *outermost),
        (19, 317, "complete", "leak", "with registers", "run_with_array", *outermost),
        (7, 359, "complete", "leak", "at the end", "run", *outermost),
        (1, 337, "complete", "interrupted", "plain", "run_interrupted", *outermost),
        (11, 347, "complete", "leak", "inner", "outer one", "run_replaced", *outermost),
        (13, 347, "complete", "leak", "inner", "outer two", "run_replaced", *outermost),
        (3, 349, "no-table", "leak", "not straight"),
        (5, 353, "no-table", "leak_and_jump", "never returned"),
    }
    assert {stack[:3] for stack in signalled} == {(1, 331, "complete")}
    assert {stack[stack.index("on_signal") :][-7:] for stack in signalled} == {
        ("interrupted", "plain", "run_interrupted", *outermost),
        (None, "trapped", "run_trapped", *outermost),
    }


def test_a_recording_keeps_the_names(targets: Path, tmp_path: Path) -> None:
    for name, target in (("map", ["perfmap"]), ("gdb", ["gdbjit", str(targets / "jitted-a.o")])):
        recording, command = tmp_path / f"{name}.refleak", [str(targets / target[0]), *target[1:]]
        whole = [REFLEAK, "--reachability", "off"]
        subprocess.run([*whole, "-o", recording, "--exec", *command], check=True, timeout=60, capture_output=True)
        bare = tmp_path / f"{name}-bare.refleak"
        subprocess.run([*whole, "--no-symbols", "-o", bare, "--exec", *command], check=True, timeout=60,
                       capture_output=True)  # fmt: skip
        for file, has_lines in ((recording, name == "gdb"), (bare, False)):
            printed = subprocess.run([REFLEAK, "report", file, "--format", "json"], check=True, stdout=subprocess.PIPE)
            frames = [f for leak in json.loads(printed.stdout)["leaks"] for f in callers(leak) if f["kind"] == "jit"]
            expected = {"first", "second one"} if name == "map" else {"leak_a", "enter_a"}
            assert {frame["function"] for frame in frames} == expected
            assert all((frame["line"] is not None) == has_lines for frame in frames)


def test_llvm(refleak: Refleak) -> None:
    run = refleak(target=(sys.executable, HERE / "jit_python.py"))
    run.check_whole()
    assert run.stdout == "same address\n"
    for name, count, size in (("first", 7, 10007), ("second", 5, 10009)):
        [found] = run.below(f"leak_{name}")
        frames = [(f["function"], f["file"], f["line"], f["kind"]) for f in callers(found)[:2]]
        file = f"/nowhere/{name}.source"
        assert frames == [(f"leak_{name}", file, 11, "jit"), (f"enter_{name}", file, 21, "jit")]
        assert "ffi_call" in functions(callers(found)) and functions(callers(found))[-1] == "_start"
        assert (found["count"], found["bytes"], found["stack_status"]) == (count, count * size, "complete")


def test_llvm_by_the_runtime_s_tables(refleak: Refleak) -> None:
    """ORC tells gdb of what RuntimeDyld links, which has names then, and of what JITLink does only the C++ runtime."""
    run = refleak("--interpreters", "off", target=(sys.executable, HERE / "jit_frames.py"))
    run.check_whole()
    for size, names in ((10007, ["leak_first", "enter_first"]), (10009, [None, None])):
        [found] = [leak for leak in run.leaks if leak["bytes"] == size * leak["count"]]
        assert functions(callers(found))[:2] == names
        assert "ffi_call" in functions(callers(found)) and functions(callers(found))[-1] == "_start"
        assert (found["count"], found["stack_status"]) == (7 if size == 10007 else 5, "complete")


@pytest.mark.parametrize("log", ["--perf-basic-prof", "--perf-prof"])
def test_node(refleak: Refleak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str) -> None:
    monkeypatch.chdir(tmp_path)  # where --perf-prof puts its dump
    run = refleak(target=("/usr/bin/node", log, "--always-sparkplug", HERE / "jit_node.js"))
    run.check_whole(128 + signal.SIGKILL)
    leaks = [leak for leak in run.below("leaky") if leak["bytes"] == 13 * 100003]
    assert [leak["count"] for leak in leaks] == [13]
    names = functions(callers(leaks[0]))
    at = names.index("leaky")
    assert names[at : at + 3] == ["leaky", "outer", "(anonymous):1:1"] and names[-1] == "_start"
    for frame in callers(leaks[0])[at : at + 3]:
        assert (frame["kind"], frame["language"], frame["file"]) == ("jit", "JavaScript", str(HERE / "jit_node.js"))
    assert leaks[0]["stack_complete"]
