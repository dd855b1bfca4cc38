"""Many small libraries, all different."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = """
#include <stdlib.h>
void *volatile kept_{n};
static int work(int (*step)(int), int times) {{ int sum = 0; while (times-- > 0) sum += step(times); return sum; }}
int apply_{n}(int (*step)(int)) {{ return work(step, {n}) + work(step, 7); }}
void leak_in_{n}(void) {{ kept_{n} = malloc({n} + {first}); }}
"""
FIRST_SIZE = 1
"""Bytes that leak in libmany0.so; in each following one more."""


def build_libraries(folder: Path, count: int) -> None:
    """Compile libmany0.so to libmanyN-1.so into a folder; raises OSError or CalledProcessError where gcc fails."""

    def build(n: int) -> None:
        command = ["gcc", "-O1", "-g", "-fPIC", "-shared", "-x", "c", "-", "-o", str(folder / f"libmany{n}.so")]
        subprocess.run(command, input=SOURCE.format(n=n, first=FIRST_SIZE), text=True, check=True, capture_output=True)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(build, range(count)))
