"""Functions that allocators have besides malloc and its kin: mallocx of jemalloc, mi_zalloc of mimalloc and their like.

Each makes one block that is kept and seven that are freed, by all functions that free in turn.
"""

from __future__ import annotations

import subprocess
from itertools import cycle
from pathlib import Path

import pytest
from conftest import Refleak

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
FREED = 7
JEMALLOC = {"mallocx": "{}, 0", "rallocx": "malloc(9), {}, 0"}
"""Each function's arguments, with {} for the size; `3, {}` makes three of it."""
JEMALLOC_FREES = ("dallocx(made, 0)", "sdallocx(made, {}, 0)", "free(made)")
MIMALLOC = {
    **dict.fromkeys(("malloc", "malloc_small", "zalloc", "zalloc_small", "new", "new_nothrow"), "{}"),
    "valloc": "{}", "pvalloc": "{}",
    **dict.fromkeys(("calloc", "mallocn", "new_n"), "3, {}"),
    "calloc_aligned": "3, {}, 64", "calloc_aligned_at": "3, {}, 64, 0",
    **dict.fromkeys(("malloc_aligned", "zalloc_aligned", "new_aligned", "new_aligned_nothrow"), "{}, 64"),
    **dict.fromkeys(("malloc_aligned_at", "zalloc_aligned_at"), "{}, 64, 0"),
    **dict.fromkeys(("memalign", "aligned_alloc"), "64, {}"),
    **dict.fromkeys(("realloc", "reallocf", "rezalloc", "new_realloc"), "malloc(9), {}"),
    **dict.fromkeys(("realloc_aligned", "rezalloc_aligned"), "malloc(9), {}, 64"),
    **dict.fromkeys(("realloc_aligned_at", "rezalloc_aligned_at"), "malloc(9), {}, 64, 0"),
    **dict.fromkeys(("reallocn", "reallocarray", "recalloc", "new_reallocn"), "malloc(9), 3, {}"),
    **dict.fromkeys(("recalloc_aligned", "aligned_recalloc"), "malloc(9), 3, {}, 64"),
    **dict.fromkeys(("recalloc_aligned_at", "aligned_offset_recalloc"), "malloc(9), 3, {}, 64, 0"),
}  # fmt: skip
MIMALLOC_FREES = (
    "mi_free(made)", "mi_cfree(made)", "mi_free_size(made, {})", "mi_free_aligned(made, 64)",
    "mi_free_size_aligned(made, {}, 64)", "free(made)",
)  # fmt: skip


def built(folder: Path, source: str, library: str, *options: str) -> Path:
    """Build a program, of C++ if it has `new`, with an allocator that no header is installed of."""
    shared = min(LIBRARIES.glob(f"{library}.so.[0-9]*"), key=lambda path: len(path.name), default=None)
    if shared is None:
        pytest.skip(f"needs {library}")
    program, text = folder / "program", folder / ("program.cc" if "new " in source else "program.c")
    text.write_text(source)
    compiler = "g++" if text.suffix == ".cc" else "gcc"
    subprocess.run([compiler, "-w", "-g", "-O1", *options, text, "-o", program, f"-l:{shared.name}"], check=True)
    return program


def source_of(functions: dict[str, str], frees: tuple[str, ...]) -> tuple[str, list[int]]:
    """Return a program that calls them all, and the sizes of what it keeps."""
    lines, sizes, declared = [], [], []
    for size, ((name, arguments), end) in enumerate(zip(functions.items(), cycle(frees), strict=False), start=41):
        declared.append(f"void *{name}();")
        call = f"{name}({arguments.format(f'{size}UL')})"
        sizes.append(size * (3 if "3, {}" in arguments else 1))
        lines.append(f"kept[{len(lines)}] = {call};")
        lines.append(f"for (int n = 0; n < {FREED}; n++) {{ void *made = {call}; {end.format(f'{sizes[-1]}UL')}; }}")
    head = "#include <stdlib.h>\nvoid *kept[200];\n"
    return "\n".join([head, *declared, "int main(void) {", *lines, "return 0; }"]), sorted(sizes)


@pytest.mark.parametrize(
    ("library", "functions", "frees"),
    [
        ("libjemalloc", JEMALLOC, JEMALLOC_FREES),
        ("libmimalloc", {f"mi_{name}": arguments for name, arguments in MIMALLOC.items()}, MIMALLOC_FREES),
    ],
)
def test_all_are_seen_with_their_sizes(
    refleak: Refleak, tmp_path: Path, library: str, functions: dict[str, str], frees: tuple[str, ...]
) -> None:
    source, sizes = source_of(functions, frees)
    run = refleak("--heap-only", "--no-mappings", target=(built(tmp_path, source, library),))
    run.check_whole()
    assert sorted(leak["bytes"] for leak in run.leaks) == sizes
    assert [leak["count"] for leak in run.leaks] == [1] * len(sizes)
    assert run.report["notes"] == []
    assert run.report["errors"] == []


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


@pytest.mark.parametrize("library", ["libjemalloc", "libmimalloc"])
def test_a_delete_that_calls_free_frees_once(refleak: Refleak, tmp_path: Path, library: str) -> None:
    """Two in each turn were noted as frees of something not seen to be made, in a correct program."""
    run = refleak("--heap-only", target=(built(tmp_path, DELETES, library, "-O0", "-fsized-deallocation"),))
    run.check_whole()
    assert [note for note in run.report["notes"] if "not seen" in note] == []
    assert run.report["errors"] == []
