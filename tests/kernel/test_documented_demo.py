"""The demo prints what docs/reading.md shows."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHANGING = (
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r"\bpid \d+", "pid PID"),
    (r"\b\d[\d.]* (?:ns|us|ms|s)\b", "TIME"),
    (r"\bTIME to TIME\b", "TIME"),  # two that read alike are one
)


def _constant(text: str) -> str:
    """Return the text without what differs from run to run: addresses, times, and where lines break for them."""
    text = " ".join(text.split())
    for pattern, stands_for in CHANGING:
        text = re.sub(pattern, stands_for, text)
    return text


def test_the_demo_prints_what_is_documented() -> None:
    page = runpy.run_path(str(ROOT / "docs/refresh_reports.py"))
    shown = page["block_after"](page["DEMO"], page["READING"].read_text())
    assert "LEAK: 3 objects of 1 type" in shown
    subprocess.run(["make", "-s", "-C", ROOT, "examples/demo/leaky"], check=True)
    assert _constant(page["printed"](page["DEMO"], ROOT)) == _constant(shown), "run docs/refresh_reports.py"
