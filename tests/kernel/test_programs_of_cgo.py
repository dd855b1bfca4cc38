"""Programs of Go with C in them: what C loses is told, and what Go's runtime maps for itself is none of it."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak

LOSING = """package main

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


KEEPING = """package main

/*
#include <stdlib.h>

static void *keep(int size) { return malloc(size); }
*/
import "C"
import (
	"os"
	"runtime"
	"unsafe"
)

type node struct {
	kept unsafe.Pointer
	next *node
}

var (
	global unsafe.Pointer
	table = map[int]unsafe.Pointer{}
	list *node
)

func worker(ready, end chan int) {
	kept := C.keep(505)
	ready <- 1
	<-end
	C.free(kept)
}

func main() {
	global = C.keep(101)
	for i := 0; i < 50; i++ {
		table[i] = C.keep(202)
		list = &node{C.keep(303), list}
	}
	for i := 0; i < 9; i++ {
		C.keep(404)
	}
	for i := 0; i < 5; i++ {
		ready := make(chan int)
		go worker(ready, make(chan int))
		<-ready
	}
	runtime.GC()
	os.Exit(len(table) - 47)
}
"""


def built(folder: Path, source: str, *options: str) -> Path:
    (folder / "main.go").write_text(source)
    variables = os.environ | {"GOCACHE": str(folder / "cache"), "GO111MODULE": "off", "CGO_ENABLED": "1"}
    command = ["go", "build", *options, "-o", "main", "main.go"]
    subprocess.run(command, cwd=folder, env=variables, check=True, timeout=300)
    return folder / "main"


@pytest.mark.parametrize("options", [(), ("-ldflags=-s -w",)], ids=["whole", "stripped"])
def test_what_go_keeps_is_not_lost(refleak: Refleak, tmp_path: Path, options: tuple[str, ...]) -> None:
    """In variables, in maps and lists, and on the stacks of goroutines. Its runtime ends by the system call."""
    run = refleak("--reachability", "auto", target=(built(tmp_path, KEEPING, *options),))
    assert (run.report["complete"], run.status) == (True, 3), run.report["lost"]
    found = Counter(leak["reachability"] for leak in run.report["leaks"] for _ in range(leak["count"]))
    assert found == {"lost": 9, "reachable": 106}
    assert [leak["bytes"] for leak in run.report["leaks"] if leak["reachability"] == "lost"] == [9 * 404]


def test_what_c_loses_is_all_that_is_lost(refleak: Refleak, tmp_path: Path) -> None:
    run = refleak("--mappings", target=(built(tmp_path, LOSING),))
    assert run.report["complete"], run.report["lost"]
    assert [(leak["kind"], leak["count"], leak["bytes"]) for leak in run.report["leaks"]] == [("allocation", 7, 497)]
    assert "built-in:go-runtime" in {one["suppressed_by"] for one in run.report["suppressed"]["entries"]}
    stack = run.report["leaks"][0]["stack"]
    assert stack[-1]["function"] == "runtime.asmcgocall.abi0"  # it switches stacks: next is an address in data
    assert not [frame for frame in stack if frame["why_unknown"] == "code in no binary"]
