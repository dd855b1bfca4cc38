"""README's example prints what README shows."""

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
)


def _constant(text: str) -> str:
    """Return the text without what differs from run to run: addresses, times, and where lines break for them."""
    text = " ".join(text.split())
    for pattern, stands_for in CHANGING:
        text = re.sub(pattern, stands_for, text)
    return text


def test_demo_prints_what_the_readme_shows() -> None:
    readme = runpy.run_path(str(ROOT / "docs/refresh_readme.py"))
    shown = readme["block_after"](readme["DEMO"], (ROOT / "README.md").read_text())
    assert "LEAK: 3 objects of 1 type" in shown
    subprocess.run(["make", "-s", "-C", ROOT, "examples/demo/leaky"], check=True)
    assert _constant(readme["printed"](readme["DEMO"], ROOT)) == _constant(shown), "run docs/refresh_readme.py"
