"""refleak doctor: what it says, and the status that it ends with."""

from __future__ import annotations

import io
import json
import os
import re
import unittest.mock
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tracer.cli import doctor, self_trace
from tracer.cli.main import main
from tracer.errors import BccMissing, KernelLacks, ProgramRefused
from tracer.kernel import abilities, program_checks
from tracer.model.checks import Check, CheckState
from tracer.model.verified import Verified
from tracer.report.check_list import write_checks, write_checks_json

OK = Check("kernel", CheckState.OK, "Linux 6.18")
OBSTACLE = Check("BPF", CheckState.MISSING, "maps", "Linux 5.15 is needed", 71)
LATER_OBSTACLE = Check("BCC", CheckState.MISSING, "compiles", "install python3-bpfcc", 72)
EXTRA = Check("debuginfod", CheckState.MISSING, "fetches debug files", "install debuginfod")
UNTESTED = Check("holds", CheckState.UNTESTED, "children wait")


def test_table_says_what_to_do_and_names_the_first_obstacle() -> None:
    stream = io.StringIO()
    write_checks([OK, EXTRA, UNTESTED, OBSTACLE, LATER_OBSTACLE], stream)
    assert stream.getvalue() == (
        "kernel      ok        Linux 6.18\n"
        "debuginfod  missing   fetches debug files\n"
        "                      -> install debuginfod\n"
        "holds       untested  children wait\n"
        "BPF         missing   maps\n"
        "                      -> Linux 5.15 is needed\n"
        "BCC         missing   compiles\n"
        "                      -> install python3-bpfcc\n"
        "\n"
        "refleak cannot trace here: BPF: Linux 5.15 is needed\n"
    )


def test_long_lines_stay_within_80_columns() -> None:
    stream = io.StringIO()
    write_checks([Check("cache", CheckState.MISSING, "word " * 40, "other " * 40)], stream)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("cache  missing   word word")
    assert lines[-1] == "refleak can trace here"


def test_color_and_width_are_as_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "kernel_checks", lambda missing: [OK, OBSTACLE])
    monkeypatch.setattr(doctor, "bcc_check", lambda: Check("BCC", CheckState.OK, "compiles the BPF programs"))
    assert main(["doctor", "--color", "always", "--width", "40"]) == 71
    colored = capsys.readouterr().out
    assert "\x1b[1;32mok" in colored and "\x1b[1;31mrefleak cannot trace here" in colored
    assert main(["doctor", "--width", "40"]) == 71
    plain = capsys.readouterr().out
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
    assert "BCC         ok        compiles the BPF\n                      programs\n" in plain


@pytest.mark.parametrize(("checks", "can_trace"), [([OK, EXTRA, UNTESTED], True), ([OK, OBSTACLE], False)])
def test_json_says_whether_it_can_trace(checks: list[Check], can_trace: bool) -> None:
    stream = io.StringIO()
    write_checks_json(checks, stream)
    document = json.loads(stream.getvalue())
    assert (document["format"], document["version"], document["can_trace"]) == ("refleak-doctor", 1, can_trace)
    assert [check["name"] for check in document["checks"]] == [check.name for check in checks]
    assert document["checks"][0] == {
        "name": "kernel", "state": "ok", "meaning": "Linux 6.18", "remedy": "", "exit_code": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "bcc", "status"),
    [
        ([OK, EXTRA, UNTESTED], OK, 0),
        ([OK, OBSTACLE], LATER_OBSTACLE, 71),
        ([OK], LATER_OBSTACLE, 72),
    ],
)
def test_status_is_that_of_the_first_obstacle(
    monkeypatch: pytest.MonkeyPatch, kernel: list[Check], bcc: Check, status: int
) -> None:
    monkeypatch.setattr(doctor, "kernel_checks", lambda missing: kernel)
    monkeypatch.setattr(doctor, "bcc_check", lambda: bcc)
    programs = replace(bcc, name="programs")  # they are compiled by it
    monkeypatch.setattr(doctor, "programs_check", lambda cache: programs)
    assert main(["doctor"]) == status


def test_only_a_trace_that_finds_all_says_that_it_can_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blind = Check("trace", CheckState.MISSING, "blocks found: 0", "report it", 78)
    monkeypatch.setattr(doctor, "kernel_checks", lambda missing: [OK])
    monkeypatch.setattr(doctor, "bcc_check", lambda: OK)
    monkeypatch.setattr(doctor, "_costs", lambda unprivileged: [])
    monkeypatch.setattr(self_trace, "self_trace", lambda: blind)
    assert main(["doctor"]) == 78
    assert "refleak cannot trace here: trace: report it" in capsys.readouterr().out
    monkeypatch.setattr(self_trace, "self_trace", lambda: Check("trace", CheckState.OK, "both found"))
    assert main(["doctor"]) == 0
    assert "refleak can trace here" in capsys.readouterr().out


def test_a_trace_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_child: object) -> None:
        raise ProgramRefused("the kernel refused the BPF program on_call", "log")

    monkeypatch.setattr(self_trace, "_traced", refused)
    check = self_trace.self_trace()
    assert (check.state, check.exit_code) == (CheckState.MISSING, 73)
    assert "the kernel refused the BPF program on_call" in check.meaning


def test_without_privileges_it_says_what_it_could_not_test(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "missing_capabilities", lambda: ["CAP_BPF", "CAP_PERFMON"])
    assert main(["doctor", "--format", "json"]) == 77
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["privileges"]["meaning"] == "CAP_BPF, CAP_PERFMON missing"
    assert checks["privileges"]["remedy"] == "run the same command with sudo"
    untested = {name for name, check in checks.items() if check["state"] == "untested"}
    assert untested == {"BPF", "lockdown", "links", "holds", "forks", "costs", "programs", "trace"}


def test_costs_are_said_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"nop5": 210.0, "nop": 400.0, "push": 460.0, "call": 450.0, "branch": 470.0, "other": 16_300.0}
    monkeypatch.setattr(doctor, "known_costs", lambda _directory: measured)
    (check,) = doctor._costs(False)
    others = "0.5 us on a push, 0.5 us on a jump, 16.3 us where it is single-stepped"
    assert check.meaning == f"an empty probe: 0.2 us on a 5-byte nop, {others}"
    measured["nop10"] = 180.0
    (check,) = doctor._costs(False)
    assert check.meaning == f"an empty probe: 0.2 us on a 5-byte nop, 0.2 us on a 10-byte nop, {others}"
    measured["nop5"] = float("inf")
    (check,) = doctor._costs(False)
    assert check.meaning == (
        f"an empty probe: 0.2 us on a 10-byte nop, {others}; none on a 5-byte nop: forked children would crash"
    )


def test_kernel_without_type_information(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks() -> None:
        raise KernelLacks("cannot read the kernel's type information")

    monkeypatch.setattr(abilities, "kernel_offsets", lacks)
    check = next(check for check in abilities.kernel_checks(["CAP_BPF"]) if check.name == "BTF")
    assert (check.state, check.meaning, check.exit_code) == (
        CheckState.MISSING, "cannot read the kernel's type information", 71,
    )  # fmt: skip


def test_missing_bcc_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise BccMissing("no BCC")

    monkeypatch.setattr(abilities, "bcc_version", missing)
    check = abilities.bcc_check()
    assert (check.state, check.exit_code) == (CheckState.MISSING, 72)
    assert "python3-bpfcc" in check.remedy


def _checks_of_tools(monkeypatch: pytest.MonkeyPatch, **tools: str) -> dict[str, Check]:
    monkeypatch.setattr(doctor, "find_tool", lambda name: tools.get(name.replace("-", "_")))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: tools.get(name.replace("-", "_")))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    return {check.name: check for check in doctor._tools()}


def test_either_symbolizer_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _checks_of_tools(monkeypatch, llvm_symbolizer="/bin/llvm-symbolizer", debuginfod_find="/bin/find")
    assert found["symbolizer"] == Check(
        "symbolizer", CheckState.OK, "/bin/llvm-symbolizer: source lines and inlined functions"
    )
    assert found["debuginfod"].meaning == "/bin/find: unused: DEBUGINFOD_URLS is not set"
    assert _checks_of_tools(monkeypatch, addr2line="/bin/addr2line")["symbolizer"].state is CheckState.OK
    none = _checks_of_tools(monkeypatch)
    assert {check.state for check in none.values()} == {CheckState.MISSING}
    assert not any(check.is_obstacle for check in none.values())


def test_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, private_folders: Callable[[], Path]) -> None:
    folder = private_folders()
    monkeypatch.setenv("REFLEAK_CACHE", str(folder / "absent"))
    assert doctor._cache().state is CheckState.OK
    assert not (folder / "absent").exists()
    folder.chmod(0o777)
    monkeypatch.setenv("REFLEAK_CACHE", str(folder))
    assert doctor._cache().state is CheckState.MISSING
    folder.chmod(0o700)
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: mode == os.F_OK)
    assert doctor._cache().state is CheckState.MISSING


REFUSAL = "the kernel refused the BPF program unwind (Bad address): too complex"
LOG = "1: (95) exit"
REFUSED = Verified("unwind", 800, refusal=REFUSAL, log=LOG)


def _verified(monkeypatch: pytest.MonkeyPatch, *programs: Verified) -> None:
    monkeypatch.setattr(program_checks, "kernel_offsets", dict)
    monkeypatch.setattr(program_checks, "Maps", unittest.mock.MagicMock())
    monkeypatch.setattr(program_checks, "has_uprobe_multi", lambda: True)
    monkeypatch.setattr(program_checks, "verify_programs", lambda *_arguments, multi: iter(programs))


@pytest.mark.parametrize(
    ("programs", "state", "status"),
    [
        ([Verified("unwind", 800, 4000), Verified("interpreters", 900, 6000)], CheckState.OK, 0),
        ([REFUSED, Verified("interpreters", 900, 6000)], CheckState.MISSING, 73),
        ([Verified("interpreters", 9, refusal=REFUSAL, is_needed=False)], CheckState.MISSING, 0),
    ],
)
def test_it_cannot_trace_where_the_kernel_refuses_a_program_that_is_needed(
    monkeypatch: pytest.MonkeyPatch, programs: list[Verified], state: CheckState, status: int
) -> None:
    _verified(monkeypatch, *programs)
    monkeypatch.setattr(doctor, "kernel_checks", lambda missing: [OK])
    monkeypatch.setattr(doctor, "bcc_check", lambda: OK)
    check = program_checks.programs_check(Path("/nowhere"))
    assert (check.state, check.exit_code) == (state, status)
    assert (check.meaning == REFUSAL) == (state is CheckState.MISSING)
    assert main(["doctor"]) == status


def test_programs_are_not_tried_where_something_else_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "kernel_checks", lambda missing: [OBSTACLE])
    monkeypatch.setattr(doctor, "bcc_check", lambda: OK)
    assert main(["doctor", "--format", "json"]) == 71
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["programs"]["state"] == "untested"


NO_BCC = Check("BCC", CheckState.MISSING, "compiles the BPF programs", BccMissing.hint, BccMissing.exit_code)


@pytest.mark.parametrize("kept", [True, False])
def test_without_bcc_it_can_trace_where_the_programs_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kept: bool
) -> None:
    """A trace of an installation without BCC went well while doctor said that it could not."""
    _verified(monkeypatch, Verified("unwind", 800, 4000))
    if not kept:
        monkeypatch.setattr(program_checks, "verify_programs", unittest.mock.Mock(side_effect=BccMissing("no BCC")))
    monkeypatch.setattr(doctor, "kernel_checks", lambda missing: [OK])
    monkeypatch.setattr(doctor, "bcc_check", lambda: NO_BCC)
    monkeypatch.setattr(doctor.self_trace, "self_trace", lambda: OK)
    assert main(["doctor", "--format", "json"]) == (0 if kept else BccMissing.exit_code)
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["programs"]["state"] == ("ok" if kept else "untested")
    assert checks["BCC"]["state"] == "missing"
    assert ("in the cache" in checks["BCC"]["meaning"]) is kept


def test_programs_are_listed_and_a_refusal_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "check_privileges", lambda: None)
    _verified(monkeypatch, Verified("on_entry", 2400, 39380, 208))
    assert main(["doctor", "--programs"]) == 0
    assert capsys.readouterr().out == (
        "program      instructions    verified    stack\n"
        "---------  --------------  ----------  -------\n"
        "on_entry            2,400      39,380      208\n"
        "all                 2,400      39,380\n"
    )
    _verified(monkeypatch, Verified("on_entry", 2400, 39380, 208), REFUSED)
    assert main(["doctor", "--programs"]) == 73
    out, err = capsys.readouterr()
    assert "unwind                800     refused" in out
    assert err.splitlines()[0] == f"refleak: {REFUSAL}"
    assert LOG not in err
    assert main(["doctor", "--programs", "-v", "--format", "json"]) == 73
    out, err = capsys.readouterr()
    assert [program["refusal"] for program in json.loads(out)["programs"]] == ["", REFUSAL]
    assert err.startswith(LOG)
