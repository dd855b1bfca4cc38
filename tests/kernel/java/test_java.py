"""Programs of Java: the virtual machine's own memory is no leak, what native code loses is one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
JAVA = shutil.which("java")
JAVAC = shutil.which("javac")
HEADERS = next(iter(sorted(Path(JAVAC).resolve().parents[1].glob("include/jni.h"))), None) if JAVAC else None


def traced(folder: Path, *command: str | Path) -> dict[str, Any]:
    report = folder / "report.json"
    refleak = [ROOT / "refleak", "--format", "json", "-o", report, *command]
    done = subprocess.run(refleak, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def lost(report: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return kind, count and the first caller outside of libjvm and libc of what is lost, sorted."""
    return sorted(
        (leak["kind"], leak["count"], next(f["function"] or "?" for f in leak["stack"]
                                           if f["module"] not in ("libjvm.so", "libc.so.6")))
        for leak in report["leaks"] if leak["reachability"] in ("lost", "possible", "indirect")
    )  # fmt: skip


@pytest.mark.skipif(JAVA is None, reason="needs Java (Debian: default-jre-headless)")
def test_java_that_only_says_its_version_loses_nothing(tmp_path: Path) -> None:
    assert JAVA is not None
    report = traced(tmp_path, JAVA, "-version")
    assert lost(report) == []
    aside = {entry["suppressed_by"] for entry in report["suppressed"]["entries"]}
    assert "built-in:java" in aside


@pytest.mark.skipif(HEADERS is None, reason="needs a compiler of Java (Debian: default-jdk-headless)")
def test_what_native_code_loses_is_found(tmp_path: Path) -> None:
    assert JAVA is not None and JAVAC is not None and HEADERS is not None
    include = ["-I", HEADERS.parent, "-I", HEADERS.parent / "linux"]
    library = tmp_path / "libnative.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", *include, "-o", library, HERE / "java_native.c"], check=True)
    subprocess.run([JAVAC, "-d", tmp_path, HERE / "JavaNative.java"], check=True)
    report = traced(tmp_path, JAVA, "-cp", tmp_path, "JavaNative", library)
    assert lost(report) == [("allocation", 7, "Java_JavaNative_lose")] * 2
    assert lost(traced(tmp_path, JAVA, "-cp", tmp_path, "JavaNative")) == []
