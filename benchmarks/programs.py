"""The benchmark's own C programs, compiled when first needed."""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path

from benchmarks.commands import Unmeasured, run

SOURCES = Path(__file__).resolve().parent
TARGETS = SOURCES.parent / "tests" / "kernel" / "targets"
_COMPILE_SECONDS = 60


class Programs:
    """Compiles into one folder. Every property raises Unmeasured where there is no compiler."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _build(self, name: str, *words: str) -> Path:
        program = self._folder / name
        if shutil.which("gcc") is None:
            raise Unmeasured("gcc is not installed")
        sources = [str(SOURCES / word) if word.endswith(".c") else word for word in words]
        run(["gcc", "-O2", "-g", "-pthread", "-o", program, *sources], _COMPILE_SECONDS).checked()
        return program

    @cached_property
    def pairs(self) -> Path:
        return self._build("pairs", "pairs.c", "-fomit-frame-pointer")

    @cached_property
    def pairs_with_frame_pointers(self) -> Path:
        return self._build("pairs-frame-pointers", "pairs.c", "-fno-omit-frame-pointer")

    @cached_property
    def pairs_plain(self) -> Path:
        return self._build("pairs-plain", "pairs.c", "plain_stubs.c", "-DPLAIN_STUBS")

    @cached_property
    def pairs_sanitized(self) -> Path:
        return self._build("pairs-sanitized", "pairs.c", "-fsanitize=leak")

    @cached_property
    def many_stacks(self) -> Path:
        return self._build("many_stacks", "many_stacks.c")

    @cached_property
    def many_libraries(self) -> Path:
        return self._build("many_libraries", str(TARGETS / "many_libraries.c"), f"-I{TARGETS}")

    @cached_property
    def paced(self) -> Path:
        return self._build("paced", "paced.c")

    @cached_property
    def forks(self) -> Path:
        return self._build("forks", "forks.c")

    @cached_property
    def stamp(self) -> Path:
        return self._build("stamp.so", "stamp.c", "-shared", "-fPIC")
