"""refleak probes: the list of what would be probed."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from built_program import build

from tracer.architecture.current import argument
from tracer.cli.main import main
from tracer.model.operations import FunctionSpec, Operation, Placement, Site, SiteFlag
from tracer.model.probed import ProbedBinary
from tracer.model.snapshot import Unresolved
from tracer.report.probe_list import write_probes, write_probes_json

STUBS = Path(__file__).parents[3] / "examples" / "refleak.h"
COUNTED = f"""\
#include "{STUBS}"
struct conn {{ int refs; }};
int main(void) {{
	struct conn c;
	refcnt__init(&c, refs, 1);
	refcnt__get(&c, refs);
	return refcnt__put(&c, refs);
}}
"""


def _placement(name: str, operation: Operation, at: int, cost: str, reason: str = "", **more: object) -> Placement:
    flags = SiteFlag.ENTRY_RESULT if operation is Operation.FREE else SiteFlag(0)
    site = Site(FunctionSpec(name, operation, "heap", flags=flags, object=argument(0)), "/lib/libc.so.6", at, at)
    return Placement(site, at + 4, instruction="push r12", cost=cost, reason=reason, **more)  # type: ignore[arg-type]


LIBC = ProbedBinary(
    "libc.so.6",
    "/lib/libc.so.6",
    (
        _placement("malloc", Operation.ALLOC, 0x200, "step", "an argument is gone", return_file_offset=0x206),
        _placement("free", Operation.FREE, 0x100, "trap"),
    ),
    (Unresolved("free", "heap", "cfree", "is an IFUNC"),),
)
ABSENT = Unresolved("get", "conn", "conn_get", "has no symbol here")
LOADER = ProbedBinary("ld.so", "/lib/ld.so")


def test_a_table_that_does_not_fit_is_sentences() -> None:
    """Its lines were cut off."""
    stream = io.StringIO()
    write_probes([LOADER, LIBC], [ABSENT], stream, width=40)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[4:6] == ["  free free at 0x104: trap, push r12", "  alloc malloc at 0x204: step, push r12"]


def test_text() -> None:
    stream = io.StringIO()
    write_probes([LOADER, LIBC], [ABSENT], stream)
    assert stream.getvalue() == (
        "2 probes in 1 of 2 binaries; 2 functions not covered\n"
        "\n"
        "/lib/libc.so.6\n"
        "operation    function    offset    cost    instruction\n"
        "-----------  ----------  --------  ------  -------------\n"
        "free         free        0x104     trap    push r12\n"
        "alloc        malloc      0x204     step    push r12\n"
        "  malloc: an argument is gone\n"
        "\n"
        "trap: one trap, about 0.5 us\n"
        "step: single-stepped, about 17 us in a virtual machine\n"
        "\n"
        "not covered\n"
        "  free cfree in libc.so.6: is an IFUNC\n"
        "  get conn_get: has no symbol here\n"
        "\n"
        "nothing to probe in: ld.so\n"
    )


def test_json() -> None:
    stream = io.StringIO()
    write_probes_json([LIBC], [ABSENT], stream)
    document = json.loads(stream.getvalue())
    assert (document["format"], document["version"]) == ("refleak-probes", 1)
    assert document["absent"] == [
        {"operation": "get", "type": "conn", "function": "conn_get", "reason": "has no symbol here"}
    ]
    (binary,) = document["binaries"]
    assert binary["path"] == "/lib/libc.so.6"
    assert binary["probes"][0] == {
        "operation": "alloc", "type": "heap", "function": "malloc", "inlined": False,
        "function_offset": "0x200", "offset": "0x204",
        "return_offset": "0x206", "instruction": "push r12", "cost": "step", "reason": "an argument is gone",
    }  # fmt: skip
    assert (binary["probes"][1]["return_offset"], binary["probes"][1]["reason"]) == (None, None)
    assert binary["unresolved"] == [
        {"operation": "free", "type": "heap", "function": "cfree", "reason": "is an IFUNC"}
    ]


def test_nothing_at_all_is_still_a_list() -> None:
    stream = io.StringIO()
    write_probes([], [], stream)
    assert stream.getvalue() == "0 probes in 0 of 0 binaries\n"


def test_color_and_width_are_as_asked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = str(build(tmp_path, COUNTED))
    assert main(["probes", "--refs-only", "--color", "always", "--width", "50", program]) == 0
    colored = capsys.readouterr().out
    assert colored.startswith("\x1b[1m6 probes in 1 of ")
    assert main(["probes", "--refs-only", "--width", "50", program]) == 0
    plain = capsys.readouterr().out
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain != colored
    assert {len(line) <= 50 for line in plain.splitlines() if line.startswith("  create ")} == {True}


def _probes(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[tuple[str, str]]]:
    assert main(["probes", "--format", "json", *arguments]) == 0
    binaries = json.loads(capsys.readouterr().out)["binaries"]
    return {
        Path(binary["path"]).name: [(probe["operation"], probe["function"]) for probe in binary["probes"]]
        for binary in binaries
    }


def test_stubs_of_a_program_are_found_without_running_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = build(tmp_path, COUNTED)
    found = _probes(capsys, "--refs-only", str(program), "argument", "--heap-only")
    assert found.pop("program") == [
        ("create", "__refcnt__init"), ("get", "__refcnt__get"), ("put", "__refcnt__put"),
        ("get", "__refcnt__get_by"), ("put", "__refcnt__put_by"), ("delete", "refcnt__delete"),
    ]  # fmt: skip
    assert set(map(tuple, found.values())) == {()}


def test_heap_comes_from_the_start_up_libraries(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = str(build(tmp_path, COUNTED))
    assert {("alloc", "malloc"), ("free", "free"), ("map", "mmap")} <= set(_probes(capsys, program)["libc.so.6"])
    heap_only = _probes(capsys, "--heap-only", "--no-mappings", program)
    assert heap_only["program"] == []
    assert ("alloc", "malloc") in heap_only["libc.so.6"]
    assert ("map", "mmap") not in heap_only["libc.so.6"]


def test_allocator_library_is_probed_when_it_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    library = build(
        tmp_path, "void *malloc(unsigned long n) { return (void *)n; }\n", "-shared", "-fPIC", "-nostdlib",
        name="libown.so",
    )  # fmt: skip
    program = build(tmp_path, "int main(void) { return 0; }\n", "-Wl,--no-as-needed", str(library))
    assert _probes(capsys, str(program))["libown.so"] == []
    assert _probes(capsys, "--allocator", str(library), str(program))["libown.so"] == [("alloc", "malloc")]


def test_functions_that_the_user_named_and_nothing_has(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = str(build(tmp_path, COUNTED))
    type_ = "conn:create=refcnt__delete,get=conn_get,put=conn_*_put"
    assert main(["probes", "--format", "json", "--type", type_, program]) == 0
    absent = json.loads(capsys.readouterr().out)["absent"]
    assert [(missed["operation"], missed["function"]) for missed in absent] == [("get", "conn_get")]


def test_script_is_judged_by_its_interpreter(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    assert "sh" in _probes(capsys, str(script))


def test_process_of_ones_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.pipeline.target_check.os.getpid", lambda: 1)
    assert ("alloc", "malloc") in _probes(capsys, "-p", str(os.getppid()))["libc.so.6"]


def test_processes_are_named_as_for_a_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It took one number, and of a name it said "invalid int value"."""
    monkeypatch.setattr("tracer.pipeline.target_check.os.getpid", lambda: 1)
    source = "#include <stdio.h>\nint main(void) { puts(\"loaded\"); fflush(stdout); return getchar(); }\n"
    program = build(tmp_path, source, name=f"seen-{os.getpid()}")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdin is not None and started.stdout is not None
        assert started.stdout.readline() == b"loaded\n"
        for words in ((program.name,), (str(started.pid), "-p", str(os.getppid()))):
            found = _probes(capsys, "-p", *words)
            assert ("alloc", "malloc") in found["libc.so.6"] and program.name in found
        started.stdin.close()


def test_stripped_static_program_has_nothing_to_probe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program = build(tmp_path, "int main(void) { return 0; }\n", "-static", "-s")
    assert main(["probes", str(program)]) == 67
    output = capsys.readouterr()
    assert output.out.startswith("0 probes in 0 of 1 binary\n")
    assert "--allocator" in output.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "say what to look at"),
        (["-p", "1", "true"], 2, "say what to look at"),
        (["no-such-command-at-all"], 66, "there is no command"),
        (["-p", str((1 << 22) + 1)], 66, "there is no process"),
        (["-p", "no-such-program-at-all"], 66, "called no-such-program-at-all\n         ps -e lists what runs\n"),
        ([str(STUBS)], 77, "is not executable"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str) -> None:
    assert main(["probes", *arguments]) == status
    assert message in capsys.readouterr().err


def test_closed_folders_of_the_path_are_passed_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    really = Path.is_file

    def is_file(path: Path) -> bool:
        if path.parent == tmp_path:
            raise PermissionError
        return really(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert "libc.so.6" in _probes(capsys, "true")
