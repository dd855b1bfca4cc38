"""Programs of Go with C in them: what C loses is told, and what Go's runtime maps for itself is none of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Refleak

SOURCE = """package main

/*
#include <stdlib.h>

static void *lose(int size) { return calloc(1, size); }
*/
import "C"

func main() {
	for i := 0; i < 7; i++ {
		C.lose(71)
	}
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cgo")
    (folder / "main.go").write_text(SOURCE)
    variables = os.environ | {"GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "1"}
    subprocess.run(["go", "build", "-o", "main", "main.go"], cwd=folder, env=variables, check=True, timeout=300)
    return folder / "main"


def test_what_c_loses_is_all_that_is_lost(refleak: Refleak, program: Path) -> None:
    run = refleak("--mappings", target=(program,))
    assert run.report["complete"], run.report["lost"]
    assert [(leak["kind"], leak["count"], leak["bytes"]) for leak in run.report["leaks"]] == [("allocation", 7, 497)]
    assert "built-in:go-runtime" in {one["suppressed_by"] for one in run.report["suppressed"]["entries"]}
    stack = run.report["leaks"][0]["stack"]
    assert stack[-1]["function"] == "runtime.asmcgocall.abi0"  # it switches stacks: next is an address in data
    assert not [frame for frame in stack if frame["why_unknown"] == "code in no binary"]
