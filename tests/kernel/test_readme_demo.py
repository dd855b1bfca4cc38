"""README's examples print what README shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = "    sudo refleak --refs-only --exec examples/demo/leaky\n"
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
    _, _, rest = (ROOT / "README.md").read_text().partition(COMMAND)
    shown = re.match(r"\n((?:    .*\n|\n)+)", rest)
    assert shown is not None
    subprocess.run(["make", "-s", "-C", ROOT, "examples/demo/leaky"], check=True)
    trace = subprocess.run(
        [ROOT / "refleak", "--refs-only", "--exec", "examples/demo/leaky"], capture_output=True, text=True, cwd=ROOT,
        check=True,
    )  # fmt: skip
    assert _constant(trace.stdout + trace.stderr) == _constant(shown[1])
