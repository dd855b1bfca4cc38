#!/usr/bin/env python3
"""Put into docs/reading.md what refleak prints now, and take README's picture: `refresh_reports.py [PERF]`, as root.

PERF is the program that examples/perf/build.sh makes; without it the first screen stays as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READING = ROOT / "docs" / "reading.md"
DEMO = "    sudo refleak --refs-only --top 1 --exec examples/demo/leaky\n\n"
PICTURE, PICTURE_SIZE = ROOT / "docs" / "page.png", "1100,760"
PERF = "    $ sudo refleak --user root --top 2 --exec ./perf probe vfs_read\n"


def printed(command: str, folder: Path) -> str:
    """Run a command of the page in a folder and return all that it prints, as an indented block."""
    words = shlex.split(command.replace("$", " "))[2:]
    environment = os.environ | {"PERF_CONFIG": "/dev/null"}
    done = subprocess.run(
        [ROOT / "refleak", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
        env=environment, check=False,
    )  # fmt: skip
    return "".join(f"    {line}".rstrip() + "\n" for line in done.stdout.rstrip().splitlines())


def take_picture() -> None:
    """Have Chromium draw the page of the demo. A file of its own is all that it is given."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        words = ["--format", "html", "-o", str(page), "--exec", "examples/demo/leaky"]
        subprocess.run([ROOT / "refleak", *words], cwd=ROOT, check=False, capture_output=True)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={PICTURE_SIZE}"]
        options += [f"--user-data-dir={folder}/profile", f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run(["chromium", *options], check=True, capture_output=True, timeout=120)


def block_after(command: str, text: str) -> str:
    """Return the indented block that stands below a command."""
    found = re.match(r"(?:    .*\n|\n(?=    ))+", text.partition(command)[2])
    return found[0] if found else ""


def main() -> None:
    if len(sys.argv) > 2 or any(not Path(program).is_file() for program in sys.argv[1:]):
        sys.exit("usage: refresh_reports.py [PERF]; PERF is the program that examples/perf/build.sh makes")
    text = READING.read_text()
    text = text.replace(DEMO + block_after(DEMO, text), DEMO + printed(DEMO, ROOT))
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "perf").symlink_to(Path(sys.argv[1]).resolve())
            text = text.replace(PERF + block_after(PERF, text), PERF + printed(PERF, Path(folder)))
    READING.write_text(text)
    take_picture()


if __name__ == "__main__":
    main()
