"""Reports of shell scripts with many short commands, one of which loses something."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LOSES = """
#include <stdlib.h>

int main(int count, char **arguments)
{
	if (count > 1) {
		*(char *volatile *)&arguments[1] = malloc(32);
		arguments[1] = NULL;
	}
	return 0;
}
"""
SCRIPT = """
i=0
while [ $i -lt 40 ]; do
    x=$(./loses); ( : )
    [ $i = 17 ] && ./loses 1
    i=$((i + 1))
done
"""


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_what_one_of_many_children_loses_is_all_that_is_listed(tmp_path: Path, shell: str) -> None:
    (tmp_path / "loses.c").write_text(LOSES)
    subprocess.run(["gcc", "-g", "-O1", "-fno-builtin", "-o", "loses", "loses.c"], cwd=tmp_path, check=True)
    (tmp_path / "script").write_text(SCRIPT)
    output = tmp_path / "report.txt"
    command = [str(ROOT / "refleak"), "--hold", "20", "-o", str(output), shell, "script"]
    environment = os.environ | {"LC_ALL": "C"}
    subprocess.run(command, cwd=tmp_path, check=True, timeout=200, env=environment)
    report = output.read_text()
    assert report.startswith("refleak: LEAK: lost 32 bytes in 1 block"), report[:2000]
    assert [line for line in report.splitlines() if line.startswith("#")] == ["#1  32 bytes lost: 1 block (malloc)"]
    assert len(report.splitlines()) < 50, report
