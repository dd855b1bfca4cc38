"""What a second trace of a plain program does without: compiling, and whatever only other programs need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from conftest import CHECKOUT

_TRACE = """
import sys
sys.path.insert(0, {checkout!r})
from tracer.cli.main import main
status = main(["--user", "root", "-o", {report!r}, "--exec", {target!r}, "quiet"])
import json
print(json.dumps([status, sorted(sys.modules)]))
"""
_NEEDLESS = {
    "bcc", "setuptools", "pkg_resources", "cxxfilt", "urllib.request", "ssl", "xml", "tracer.recording.writer",
    "tracer.report.html_page", "tracer.report.json_report", "tracer.report.sarif", "tracer.cli.interval",
}  # fmt: skip


def test_it_imports_neither_bcc_nor_what_other_traces_need(targets: Path, tmp_path: Path) -> None:
    code = _TRACE.format(checkout=str(CHECKOUT), report=str(tmp_path / "report"), target=str(targets / "clean"))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
        status, modules = json.loads(done.stdout.splitlines()[-1])
        assert status == 0
    assert _NEEDLESS & set(modules) == set()
