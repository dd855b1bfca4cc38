"""Small programs that the symbol tests build, and where their calls return to."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from tracer.elf.image import Image
from tracer.model.snapshot import Binary

CALL_BYTES = 5
INLINED = """\
#include <stdlib.h>
static inline __attribute__((always_inline)) void *innermost(size_t n) {
	return malloc(n);
}
static inline __attribute__((always_inline)) void *middle(size_t n) {
	return innermost(n + 1);
}
__attribute__((noinline)) static char *hidden(size_t n) {
	return (char *)middle(n) + 1;
}
__attribute__((noinline, visibility("default"))) char *outer(size_t n) {
	return hidden(n + 2) + 1;
}
int main(int argc, char **argv) {
	return *outer(argc) == 'x';
}
"""
"""hidden() calls malloc through two inlined functions, at lines 3, 6 and 9; outer() calls hidden() at line 12."""


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(folder: Path, source: str, *flags: str, compiler: str = "gcc", name: str = "program") -> Path:
    suffix = {"g++": ".cpp", "clang++": ".cpp", "rustc": ".rs"}.get(compiler, ".c")
    text = folder / f"{name}{suffix}"
    text.write_text(source)
    run(compiler, "-o", folder / name, text, *flags)
    return folder / name


def present(*commands: str) -> list[str]:
    return [command for command in commands if shutil.which(command)]


def return_address(program: Path, function: str, callee: str) -> int:
    """Return the link address behind the first call of `callee` in the unstripped `program`'s `function`.

    Both are patterns, since one place can have several names.
    """
    listing = run("objdump", "-d", "--no-show-raw-insn", program)
    body = listing[re.search(rf"^[0-9a-f]+ <{function}>:$", listing, re.M).end() :].split("\n\n", 1)[0]
    return int(re.search(rf"([0-9a-f]+):\tcall .*<{callee}(?:@plt)?>$", body, re.M)[1], 16) + CALL_BYTES


def start_of(program: Path, function: str) -> int:
    return int(re.search(rf"^([0-9a-f]+) . {re.escape(function)}$", run("nm", program), re.M)[1], 16)


def binary(file: Path, number: int = 1, **changes: object) -> Binary:
    with Image.open(file) as image:
        return replace(Binary(number, str(file), image.build_id), **changes)
