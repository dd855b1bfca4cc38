"""refleak doctor: what it says, and the status that it ends with."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from tracer.capture import abilities
from tracer.cli import doctor, self_trace
from tracer.cli.main import main
from tracer.errors import BccMissing, KernelLacks, ProgramRefused
from tracer.model.checks import Check, CheckState
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
    assert untested == {"BPF", "links", "holds", "costs", "trace"}


def test_costs_are_said_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"nop5": 210.0, "nop": 400.0, "push": 460.0, "call": 450.0, "branch": 470.0, "other": 16_300.0}
    monkeypatch.setattr(doctor, "known_costs", lambda _directory: measured)
    (check,) = doctor._costs(False)
    assert check.meaning == (
        "an empty probe: 0.2 us on a 5-byte nop, 0.5 us on a push, 0.5 us on a jump, 16.3 us where it is single-stepped"
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


def test_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "absent"))
    assert doctor._cache().state is CheckState.OK
    assert not (tmp_path / "absent").exists()
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: mode == os.F_OK)
    assert doctor._cache().state is CheckState.MISSING
