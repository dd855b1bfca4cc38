"""Which processes may use what glibc rounds sizes up to."""

from __future__ import annotations

import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hand_made import snapshot

from tracer.binaries.open_binaries import Binaries
from tracer.binaries.usable_sizes import asks_for_usable_size
from tracer.model.snapshot import Mapping, Process
from tracer.scanning.surroundings import ModuleTable

ASKS = "#include <malloc.h>\nint main(void) { return malloc_usable_size(0); }"
LOOKS_UP = """#define _GNU_SOURCE
#include <dlfcn.h>
int main(void) { return !dlsym(RTLD_DEFAULT, "%s"); }"""
PLAIN = "#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }"


@pytest.mark.parametrize(("source", "options", "expected"), [
    (PLAIN, (), False), (ASKS, (), True), (PLAIN, ("-static",), True), (PLAIN, ("-static", "-s"), True),
    (LOOKS_UP % "malloc_usable_size", (), True), (LOOKS_UP % "malloc", (), False),
    (PLAIN, ("-shared", "-fPIC", "-nostdlib"), False), (ASKS, ("-shared", "-fPIC", "-nostdlib"), True),
])  # fmt: skip
def test_who_uses_slack(tmp_path: Path, source: str, options: tuple[str, ...], expected: bool) -> None:
    """A library that names none that it needs is no static program; who is gone may have left pointers there."""
    (tmp_path / "a.c").write_text(source)
    subprocess.run(["gcc", "-fno-builtin", *options, "-o", "a.out", "a.c"], cwd=tmp_path, check=True, timeout=100)
    path = str(tmp_path / "a.out")
    process = Process(7, 1, None, (path,), path, 0, ended_ns=9)
    mapping = Mapping(7, 1, 0x1000, 0x2000, 0, 1, True, 0, until_ns=5, link_address=0)
    made = snapshot(processes=(process,), mappings=(mapping,))
    with closing(Binaries()) as binaries:
        assert binaries.open([path], path)
        assert ModuleTable(made, partial(asks_for_usable_size, binaries)).uses_slack(process) == expected


def test_one_that_cannot_be_read_may() -> None:
    process = Process(7, 1, None, (), None, 0)
    mapping = Mapping(7, 1, 0x1000, 0x2000, 0, 1, True, 0, link_address=0)
    made = snapshot(processes=(process,), mappings=(mapping,))
    with closing(Binaries()) as binaries:
        assert ModuleTable(made, partial(asks_for_usable_size, binaries)).uses_slack(process)
