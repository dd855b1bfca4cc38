"""The examples of docs/api.md, as files that run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def examples() -> dict[str, str]:
    """Return the code of each example by its heading."""
    sections = (section.partition("\n") for section in (ROOT / "docs/api.md").read_text().split("\n## "))
    return {heading: found[1] for heading, _, text in sections if (found := _CODE.search(text))}


def run_in(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with the checkout's package."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=300,
        env=variables | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
