"""Threads of the command: numpy starts none of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import os
from tracer.cli.main import main
assert main(["report", "/nonexistent.refleak"])
import numpy
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(("given", "expected"), [({}, "1 None"), ({"OPENBLAS_NUM_THREADS": "2"}, "2 2")])
def test_numpy_starts_none_but_where_that_is_asked_for(given: dict[str, str], expected: str) -> None:
    if given and len(os.sched_getaffinity(0)) < 2:
        expected = "1 2"
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"} | given
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == expected
