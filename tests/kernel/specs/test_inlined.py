"""Gets and puts that the compiler inlined: each execution of each copy counts once, by both compilers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ITEM = (
    "item:create=item_new,get=item_ref,get=item_ref_used,get=item_ref_checked,put=item_unref,delete=item_free,counter=8"
)


def trace(folder: Path, compiler: str, *flags: str) -> dict[str, Any]:
    program, report = folder / "inlined", folder / "report.json"
    subprocess.run([compiler, "-g", *flags, "-o", str(program), str(HERE / "inlined.c")], check=True)
    command = [str(ROOT / "refleak"), "--refs-only", "--type", ITEM, "--format", "json", "-o", str(report)]
    done = subprocess.run([*command, "--exec", str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert (found["lost"], found["errors"], found["probes"]["unresolved"]) == ([], [], [])
    return found
