"""No long load of a library keeps the threads of refleak waiting: who is held waits for one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.pipeline.site_finder import site_finder
from tracer.pipeline.trace_options import TraceOptions

ROOT = Path(__file__).parents[2]
LOADED = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[1])
from tracer.architecture.x86_64.instructions import lines_of
seen = []
loads = ctypes.CDLL.__init__
def watched(self, name, *more, **named):
    with open("/proc/self/maps") as maps:
        seen.append((str(name), "libcapstone" in maps.read()))
    loads(self, name, *more, **named)
ctypes.CDLL.__init__ = watched
names = [line.name for line in lines_of(bytes([0x90, 0xC3]), 0)]
print(json.dumps([names, [loaded for name, loaded in seen if "capstone" in name]]))
"""
SLOW = """
#include <unistd.h>
__attribute__((constructor)) static void wait(void) { usleep(400000); }
"""
BEATS = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from tracer.architecture.early_library import load_early
beats, end = [time.monotonic()], threading.Event()
def beat():
    while not end.wait(0.01):
        beats.append(time.monotonic())
thread = threading.Thread(target=beat)
thread.start()
load_early("slow_package", ["libnone.so", "libslow.so"])
end.set()
thread.join()
print(time.monotonic() - beats[0], max(b - a for a, b in zip(beats, beats[1:] + [time.monotonic()])))
"""


def python(program: str, folder: Path, interpreter: str = sys.executable) -> str:
    command = [interpreter, "-c", program, str(ROOT)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout


def test_capstones_library_is_there_before_its_package_asks(tmp_path: Path) -> None:
    names, loaded = json.loads(python(LOADED, tmp_path))
    assert names == ["nop", "ret"] and loaded == [True]


def test_other_threads_run_while_a_library_is_loaded(tmp_path: Path) -> None:
    library = tmp_path / "slow_package" / "lib" / "libslow.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "slow_package" / "__init__.py").touch()
    command = ["gcc", "-shared", "-fPIC", "-o", str(library), "-xc", "-"]
    subprocess.run(command, input=SLOW, text=True, check=True, timeout=60)
    took, longest_gap = map(float, python(BEATS, tmp_path).split())
    assert took >= 0.4 and longest_gap < 0.3


def test_a_trace_has_the_kernel_read_capstones_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    files = Path("/proc/self/fd")
    monkeypatch.setattr(os, "posix_fadvise", lambda file, *_: asked.append(str((files / str(file)).readlink())))
    site_finder(TraceOptions())
    assert len(asked) == 1 and "libcapstone.so" in asked[0]


@pytest.mark.parametrize("package", ["json", "no_such_package"])
def test_a_library_that_is_nowhere_is_left_to_its_package(package: str, tmp_path: Path) -> None:
    program = BEATS.replace("slow_package", package).replace('"libslow.so"', '"libnowhere.so"')
    assert float(python(program, tmp_path).split()[0]) < 10
