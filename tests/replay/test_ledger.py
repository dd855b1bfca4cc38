"""A recording made once by a real run gives the same reports for ever, wherever it is read.

ledger.c is the target; ledger.refleak was made with `refleak -o ledger.refleak --exec ./ledger`. Where a change of the
reports is meant, REFLEAK_RENEW=1 writes the expected files anew: look at their difference before you commit it.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tracer.cli.main import main
from tracer.recording.reader import read_recording

HERE = Path(__file__).parent
RECORDING = HERE / "ledger.refleak"


def report(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["report", str(RECORDING), *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def assert_as_expected(found: str, name: str) -> None:
    expected = HERE / name
    if os.environ.get("REFLEAK_RENEW"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert_as_expected(report(capsys), "ledger.txt")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert_as_expected(report(capsys, "--format", "json"), "ledger.json")


@pytest.mark.parametrize("syntax", ["lsan", "valgrind"])
def test_suppressions_set_aside_what_they_were_made_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, syntax: str
) -> None:
    text = report(capsys, "--gen-suppressions", syntax)
    assert_as_expected(text, f"ledger.{syntax}.supp")
    (tmp_path / "supp").write_text(text)
    found = json.loads(report(capsys, "--format", "json", "--suppressions", str(tmp_path / "supp")))
    left = [leak for leak in found["leaks"] if leak["state"] != "inherited"]
    assert {leak["stack"][1]["function"] for leak in left} == ({"main"} if syntax == "lsan" else set())
    assert not [note for note in found["notes"] if "matched nothing" in note]


def test_the_numbers_are_those_of_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(report(capsys, "--format", "json", "--no-default-suppressions"))
    assert found["complete"] and found["mode"] == "launched"
    (account,) = (leak for leak in found["leaks"] if leak["kind"] == "reference")
    assert (account["type"], account["count"], account["state"]) == ("account", 3, "leaked")
    own = [leak for leak in found["leaks"] if leak["state"] == "leaked" and leak["pid"] == account["pid"]]
    # 3 accounts of 16 bytes, their names of 4, 5 pages of 4096 to 4100 bytes, stdio's buffer
    sizes = sorted(leak["bytes"] for leak in own if leak["kind"] == "allocation")
    assert [size for size in sizes if size not in (1024, 4096)] == [12, 48, 20490]
    assert [leak["bytes"] for leak in own if leak["kind"] == "mapping"] == [3 * 4096]
    assert [error["kind"] for error in found["errors"]] == ["over-put"]


def test_nothing_is_looked_up_outside_the_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No binary of the target's is opened, no tool is started, nothing is fetched."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("looked up outside the recording")

    monkeypatch.setattr("tracer.elf.image.Image.open", refuse)
    monkeypatch.setattr("subprocess.Popen", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    assert report(capsys) == (HERE / "ledger.txt").read_text(encoding="utf-8")


def test_the_recording_is_small() -> None:
    assert RECORDING.stat().st_size < 20_000
    assert read_recording(RECORDING).notes == ()
