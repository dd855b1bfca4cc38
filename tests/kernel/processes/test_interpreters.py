"""Frames of scripts: exact function, file and line, in order with those of the C stack."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import REFLEAK, Refleak
from interpreters import PYTHONS, installed_lua
from live_refleak import live_refleak
from traced_report import Json, Run, callers

SCRIPTS = Path(__file__).parent / "scripts"
LUAS = ("lua5.1", "lua5.2", "lua5.3", "lua5.4", "luajit -joff", "luajit -jon")
SEEN_LUAS = (*LUAS, *(["lua5.5"] if installed_lua("lua5.5") else []))
"""Few systems have 5.5 yet: it is no skip where there is none."""
LOOP = "_PyEval_EvalFrameDefault"
Calls = list[tuple[str | None, str | None, int | None]]


def script_calls(leak: Json) -> Calls:
    frames = [frame for frame in callers(leak) if frame["kind"] == "guest"]
    return [(frame["function"], Path(frame["file"]).name, frame["line"]) for frame in frames]


def of_size(run: Run, size: int) -> list[Json]:
    """Return the leaks of blocks of one size; not a forked child's copies."""
    return [leak for leak in run.leaks if leak["state"] == "leaked" and leak["bytes"] == size * leak["count"]
            and callers(leak)[0]["function"] in ("leak_block", "leak_for_lua")]  # fmt: skip


def calls(run: Run, size: int) -> dict[tuple[tuple[str | None, str | None, int | None], ...], int]:
    """Return the frames of the script under the leaks of blocks of one size, with the number of blocks."""
    counts: Counter[tuple[tuple[str | None, str | None, int | None], ...]] = Counter()
    for leak in of_size(run, size):
        counts[tuple(script_calls(leak))] += leak["count"]
    return dict(counts)


def line_of(script: str, text: str) -> int:
    lines = (SCRIPTS / script).read_text().splitlines()
    [found] = [number for number, line in enumerate(lines, start=1) if line.strip() == text]
    return found


def python_line(function: str, text: str) -> tuple[str, str, int]:
    return function, "leaky.py", line_of("leaky.py", text)


LOAD = ("Loader.load", "leaky.py", 13)
EACH = python_line("each", "return list(map(Loader().load, [size] * 3))")


@pytest.fixture(scope="module", params=list(PYTHONS))
def python_run(request: pytest.FixtureRequest, refleak: Refleak, targets: Path) -> Run:
    with PYTHONS[request.param].command("-I", SCRIPTS / "leaky.py", targets / "libscripts.so") as command:
        run = refleak("--top", 1000, target=command)
    assert (run.status, run.report["lost"]) == (0, []), run.stderr
    return run


def test_a_map_in_c_between_two_runs_of_python(python_run: Run) -> None:
    assert calls(python_run, 2003) == {(LOAD, EACH, python_line("<module>", "each(2003)")): 3}
    for leak in of_size(python_run, 2003):
        kinds = [frame["kind"] for frame in callers(leak)]
        names = [frame["function"] for frame in callers(leak)]
        inner, outer = names.index("Loader.load"), names.index("each")
        assert set(kinds[:inner]) == {"native"} and set(kinds[inner + 1 : outer]) == {"native"}
        assert names[0] == "leak_block" and leak["stack_complete"]
        assert {f["language"] for f in callers(leak) if f["kind"] == "guest"} == {"Python"}


def test_no_frame_of_the_loop_is_left(python_run: Run) -> None:
    for size in (2003, 1009, 3001, 4001, 6007):
        assert not any(frame["function"] == LOOP for leak in of_size(python_run, size) for frame in callers(leak))


def test_threads_of_python(python_run: Run) -> None:
    found = calls(python_run, 1009)
    assert sum(found.values()) == 30
    assert {stack[:3] for stack in found} == {(LOAD, EACH, python_line("worker", "each(1009)"))}
    assert {tuple(frame[:2] for frame in stack[3:]) for stack in found} == {
        (("Thread.run", "threading.py"), ("Thread._bootstrap_inner", "threading.py"),
         ("Thread._bootstrap", "threading.py"))
    }  # fmt: skip


def test_a_callback_from_c(python_run: Run) -> None:
    called = ("called", "leaky.py", line_of("leaky.py", "def called(size):") + 1)
    main = python_line("<module>", "library.call_back(callback(called), 3001)")
    assert calls(python_run, 3001) == {(called, main): 1}


def test_a_generator(python_run: Run) -> None:
    main = python_line("<module>", "for _ in generated(4001):")
    assert calls(python_run, 4001) == {(LOAD, python_line("generated", "yield loader.load(size)"), main): 1}


def test_a_name_that_is_not_ascii(python_run: Run) -> None:
    own = ("größe", "leaky.py", line_of("leaky.py", "def größe(size):") + 1)
    assert calls(python_run, 6007) == {(own, python_line("<module>", "größe(6007)")): 1}


def test_code_objects_that_take_each_others_place(python_run: Run) -> None:
    outer = (python_line("recycled", 'exec(code, {"leak": library.leak_block})'), python_line("<module>", "recycled()"))
    assert calls(python_run, 5003) == {
        (("<module>", f"<made {blank}>", blank + 1), *outer): 1 for blank in range(20)
    }


def test_code_objects_that_another_thread_replaces(python_run: Run) -> None:
    found = calls(python_run, 5009)
    execute = python_line("recycled_by_another.<locals>.execute", 'exec(box[0], {"leak": library.leak_block})')
    assert {frames[:2]: count for frames, count in found.items()} == {
        (("<module>", f"<sent {blank}>", blank + 1), execute): 1 for blank in range(20)
    }


def test_a_class_that_is_called_often(python_run: Run) -> None:
    """CPython calls it in a faster way then, by a frame of its own that is none of the script's."""
    begin = line_of("leaky.py", "def __init__(self, size):")
    frames = (("Made.__init__", "leaky.py", begin + 1), ("made", "leaky.py", begin + 6))
    assert calls(python_run, 9011) == {(*frames, python_line("<module>", "made(9011)")): 30}


def test_python_deeper_than_is_followed_is_cut_and_says_so(python_run: Run) -> None:
    [leak] = of_size(python_run, 7001)
    own = [frame for frame in callers(leak) if frame["function"] == "deep"]
    assert len(own) == 128 and leak["stack_status"] == "truncated"
    assert own[0]["line"] == line_of("leaky.py", "def deep(levels, size):") + 4
    assert {frame["line"] for frame in own[1:]} == {line_of("leaky.py", "def deep(levels, size):") + 2}


def test_a_forked_child_of_python(python_run: Run) -> None:
    assert calls(python_run, 8009) == {(python_line("<module>", "library.leak_block(8009)"),): 1}


def test_interpreters_off_shows_the_loop(refleak: Refleak, targets: Path) -> None:
    command = ("/usr/bin/python3", "-I", SCRIPTS / "leaky.py", targets / "libscripts.so")
    run = refleak("--interpreters", "off", "--top", 1000, target=command)
    assert calls(run, 2003) == {(): 3}
    assert any(frame["function"] == LOOP for frame in of_size(run, 2003)[0]["stack"])


@pytest.mark.parametrize("version", PYTHONS)
def test_attached_to_a_running_python(version: str, targets: Path, tmp_path: Path) -> None:
    with (
        PYTHONS[version].command("-I", SCRIPTS / "waiting.py", targets / "libscripts.so") as command,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as target,
    ):
        assert target.stdin is not None and target.stdout is not None
        assert target.stdout.readline() == b"ready\n"
        with live_refleak(tmp_path / "report", "-p", target.pid) as refleak:
            refleak.wait_until_attached()
            target.stdin.write(b"x")
            assert target.stdout.readline() == b"done\n"
            target.stdin.write(b"x")
            run = refleak.end()
    [leak] = [leak for leak in run.leaks if leak["bytes"] == 2003]
    assert script_calls(leak) == [
        ("leak", "waiting.py", line_of("waiting.py", "library.leak_block(2003)")),
        ("<module>", "waiting.py", line_of("waiting.py", "leak()")),
    ]


TAKE, EACH_LUA, GUARDED, TRIED, RESUMED, INDEX, SUBSTITUTE, NESTED = 2, 6, 9, 10, 17, 25, 27, 30
"""Lines on which the functions of leaky.lua begin."""


def lua_frames(*calls: tuple[int, int]) -> tuple[tuple[str, str, int], ...]:
    """Return frames of leaky.lua, leaf first; each by the line on which its function begins (0: none), and its own."""
    return tuple(
        (f"function <leaky.lua:{begin}>" if begin else "main chunk", "leaky.lua", line) for begin, line in calls
    )


@pytest.fixture(scope="module", params=SEEN_LUAS)
def lua_run(request: pytest.FixtureRequest, refleak: Refleak, targets: Path) -> Run:
    name, *options = request.param.split()
    lua = installed_lua(name)
    if lua is None:
        pytest.skip(f"needs {name}")
    with lua.command(*options, SCRIPTS / "leaky.lua", targets / "libscripts.so") as command:
        run = refleak("--top", 1000, target=command)
    assert (run.status, run.report["lost"]) == (0, []), run.stderr
    return run


@pytest.mark.parametrize(
    ("size", "count", "lines"),
    [
        (1009, 3, ((TAKE, 3), (EACH_LUA, 7), (TRIED, 11), (GUARDED, 10), (0, 16))),
        (2003, 1, ((GUARDED, 14), (0, 16))),
        (3001, 3, ((TAKE, 3), (EACH_LUA, 7), (RESUMED, 18), (0, 22))),
        (4001, 1, ((RESUMED, 20), (0, 24))),
        (5003, 1, ((0, 23),)),
        (6007, 1, ((INDEX, 25), (0, 26))),
        (7001, 1, ((SUBSTITUTE, 27), (0, 27))),
        (9001, 1, (*[(NESTED, 31)] * 6, (0, 33))),
    ],
    ids=["pcall", "after an error", "coroutine", "resumed", "after a yield", "metamethod", "callback", "nested"],
)
def test_lua_lines(lua_run: Run, size: int, count: int, lines: tuple[tuple[int, int], ...]) -> None:
    assert calls(lua_run, size) == {lua_frames(*lines): count}
    for leak in of_size(lua_run, size):
        assert callers(leak)[0]["function"] == "leak_for_lua" and leak["stack_complete"]
        assert {f["language"] for f in callers(leak) if f["kind"] == "guest"} == {"Lua"}


def test_a_chunk_that_is_in_no_file(lua_run: Run) -> None:
    assert calls(lua_run, 8009) == {(("main chunk", "made", 3), *lua_frames((0, 29))): 1}


def test_a_callback_stands_between_the_c_functions(lua_run: Run) -> None:
    """Leaf, the callback's frame, the function that called it, the caller's frame, the function that called that."""
    [leak] = of_size(lua_run, 7001)
    names = [frame["function"] for frame in callers(leak)]
    enters = [name for name in names if name and name.startswith(("lua_", "function <", "main chunk"))]
    if "lua_callk" not in enters and "lua_call" not in enters:  # LuaJIT has its own way in, and one frame for the loop
        between = names[names.index("function <leaky.lua:27>") + 1 : names.index("main chunk")]
        assert len(between) == 2 and enters[2] == "lua_pcall"
        return
    assert enters[1] in ("lua_callk", "lua_call") and enters[3] in ("lua_pcallk", "lua_pcall")
    assert enters[0] == "function <leaky.lua:27>" and enters[2] == "main chunk"


@pytest.fixture(scope="module", params=["-joff", "-jon"])
def luajit_run(request: pytest.FixtureRequest, refleak: Refleak, targets: Path) -> Run:
    lua = shutil.which("luajit")
    if lua is None:
        pytest.skip("needs luajit")
    run = refleak("--top", 1000, target=(lua, request.param, SCRIPTS / "leaky_jit.lua", targets / "libscripts.so"))
    assert (run.status, run.report["lost"]) == (0, []), run.stderr
    return run


def jit_frames(*texts: str) -> Calls:
    """Return frames of leaky_jit.lua, leaf first: each by the text of its line, after `=>` where in a function."""
    found: Calls = []
    for text in texts:
        begin, _, own = text.rpartition(" => ")
        name = f"function <leaky_jit.lua:{line_of('leaky_jit.lua', begin)}>" if begin else "main chunk"
        found.append((name, "leaky_jit.lua", line_of("leaky_jit.lua", own)))
    return found


RAISED = 'xpcall(function() error("no") end, function() leak(5009) end)'
COLLECTED = "getmetatable(newproxy(true)).__gc = function() leak(6011) end"


@pytest.mark.parametrize(
    ("size", "count", "frames"),
    [
        (2011, 300, ("local function by_module(count) => for _ = 1, count do leak(2011) end", "by_module(300)")),
        (3011, 1, ("local function called(size) => library.leak_block(size)", "library.call_back(called, 3011)")),
        (5009, 1, (f"{RAISED} => {RAISED}", f"{RAISED} => {RAISED}", RAISED)),
        (6011, 1, (f"{COLLECTED} => {COLLECTED}", "collectgarbage()")),
    ],
    ids=["C function in a hot loop", "callback of FFI", "error handler", "finalizer"],
)
def test_lines_of_luajit(luajit_run: Run, size: int, count: int, frames: tuple[str, ...]) -> None:
    assert calls(luajit_run, size) == {tuple(jit_frames(*frames)): count}


@pytest.mark.parametrize("lines", [254, 300, 70000], ids=["bytes", "halves", "words"])
def test_lines_of_a_long_function(luajit_run: Run, lines: int) -> None:
    own, loader = ("main chunk", f"long{lines}", lines + 1), 'assert(loadstring(text, "=long" .. lines))(leak)'
    assert calls(luajit_run, 4001)[own, *jit_frames(loader)] == 1


def test_luajit_deeper_than_is_followed_is_cut_and_says_so(luajit_run: Run) -> None:
    begin = "local function deep(levels) => "
    leaf, other = jit_frames(begin + "if levels == 0 then leak(7001) return end", begin + "deep(levels - 1)")
    assert calls(luajit_run, 7001) == {(leaf, *[other] * 127): 1}
    assert of_size(luajit_run, 7001)[0]["stack_status"] == "truncated"


def test_what_a_trace_calls_has_no_frames_that_are_guessed(luajit_run: Run, request: pytest.FixtureRequest) -> None:
    by_ffi = "local function by_ffi(size, count) => for _ = 1, count do library.leak_block(size) end"
    found, known = calls(luajit_run, 1013), tuple(jit_frames(by_ffi, "by_ffi(1013, 300)"))
    assert set(found) <= {known, ()} and sum(found.values()) == 300
    if "-joff" in request.node.name:
        assert set(found) == {known}
    for leak in of_size(luajit_run, 1013):
        assert leak["stack_complete"] == bool(script_calls(leak))


def test_a_recording_keeps_the_frames_of_a_script(targets: Path, tmp_path: Path) -> None:
    recording, again = tmp_path / "run.refleak", tmp_path / "again.json"
    script = [SCRIPTS / "leaky.py", targets / "libscripts.so"]
    command = [REFLEAK, "--reachability", "off", "-o", recording, "--exec", "/usr/bin/python3", "-I", *script]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    subprocess.run([REFLEAK, "report", recording, "--format", "json", "-o", again], check=True)
    all_leaks = json.loads(again.read_text())["leaks"]
    leaks = [leak for leak in all_leaks if (leak["bytes"], leak["state"]) == (6009, "leaked")]
    assert [script_calls(leak) for leak in leaks] == [[LOAD, EACH, python_line("<module>", "each(2003)")]]


def test_a_checkpoint_of_many_stacks_of_a_script_loses_none(tmp_path: Path) -> None:
    recording, again = tmp_path / "run.refleak", tmp_path / "again.json"
    command = [REFLEAK, "-o", recording, "--exec", "/usr/bin/python3", "-I", SCRIPTS / "many_stacks.py", "2.5"]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    subprocess.run([REFLEAK, "report", recording, "--format", "json", "-o", again], check=True)
    assert int(made) > 20_000 and json.loads(again.read_text())["lost"] == []
