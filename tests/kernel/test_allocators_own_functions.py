"""Functions that allocators have besides malloc and its kin."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Refleak

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def built(folder: Path, source: str, library: str, *options: str) -> Path:
    """Build a program, of C++ if it has `new`, with an allocator that no header is installed of."""
    if not (LIBRARIES / library).exists():
        pytest.skip(f"needs {library}")
    program, text = folder / "program", folder / ("program.cc" if "new " in source else "program.c")
    text.write_text(source)
    compiler = "g++" if text.suffix == ".cc" else "gcc"
    subprocess.run([compiler, "-w", "-g", "-O1", *options, text, "-o", program, f"-l:{library}"], check=True)
    return program


DELETES = """
#include <string>
int main()
{
	for (int n = 0; n < 101; n++) {
		delete new std::string(100, 'x');
		delete[] new char[40];
	}
}
"""


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libmimalloc.so.2"])
def test_a_delete_that_calls_free_frees_once(refleak: Refleak, tmp_path: Path, library: str) -> None:
    """Two in each turn were noted as frees of something not seen to be made, in a correct program."""
    run = refleak("--heap-only", target=(built(tmp_path, DELETES, library, "-O0", "-fsized-deallocation"),))
    run.check_whole()
    assert [note for note in run.report["notes"] if "not seen" in note] == []
    assert run.report["errors"] == []
