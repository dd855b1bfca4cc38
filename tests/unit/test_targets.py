"""tests/kernel/targets: every target builds, does what it is for, and is in the table."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TARGETS = Path(__file__).parents[1] / "kernel" / "targets"
ENDS_WELL = {
    "alloc_functions": "malloc calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc "
    "mmap mremap",
    "realloc_cases": "grow shrink in_place from_null to_zero fail fail_array_overflow",
    "munmap_parts": "start middle end several fixed move grow shrink reserved forgotten fork",
    "own_code": "turns over mremap mprotect copy fork",
    "longjmp": "malloc qsort",
    "interrupted_malloc": "makes hides",
    "deep": "100 200",
    "many_live": "1009",
    "fork_exec_chain": "0 7",
    "clean": "quiet",
    "shell_child": "system popen",
    "paces": "blocks threads forks libraries execs",
}
WITHOUT_ARGUMENTS = """
    free_null failed_alloc threads fork_no_exec fork_exec_chain vfork_exec posix_spawn exec_live dlopen_sequence
    realigned dlopen_stubs deep over_put use_after_zero delete_referenced reinit address_reuse_type other_name zero_init
    untracked_change first_member refs_threads refs_leak clean cpp signal_handler qsort_callback nested nested_wrapped
    short noise_target attach orphan raw_clone thread_fork dlopen_in_child attach_threads busy
"""
CASES = [
    *((f"{name} {word}", 0) for name, words in ENDS_WELL.items() for word in words.split()),
    *((name, 0) for name in WITHOUT_ARGUMENTS.split()),
    *((f"quick_exit {word}", 5) for word in ("exit", "quick_exit", "_exit")),
    ("many_children 7 3", 0),
    ("many_children 7 3 exec", 0),
    ("sigkill_self", -9),
    ("crash abort", -6),
    ("crash segv", -11),
    ("alloc_functions", 3),
    ("crash nothing", 3),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("targets")
    subprocess.run(["make", "-s", "-j2", "-C", TARGETS, f"OUT={folder}", "EXTRA_CFLAGS=-Werror"], check=True)
    return folder


@pytest.mark.parametrize(("command", "status"), CASES, ids=[command for command, _ in CASES])
def test_target_ends_as_it_should(command: str, status: int, built: Path) -> None:
    name, *arguments = command.split()
    result = subprocess.run([built / name, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert result.returncode == status, result.stderr
    assert bool(result.stderr) == (status == 3)


def test_the_libraries_share_an_address(built: Path) -> None:
    assert (built / "liba.so").stat().st_size == (built / "libb.so").stat().st_size
    assert subprocess.run([built / "dlopen_sequence"], capture_output=True, text=True).stdout == "same address\n"


def test_handshake(built: Path) -> None:
    with subprocess.Popen([built / "attach"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"g")
        assert process.stdout.readline() == b"done\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait() == 0


def test_variants_are_built(built: Path) -> None:
    table = (TARGETS / "README.md").read_text().split("## Other builds")[1]
    kinds = dict(re.findall(r"`NAME-(static|musl)`[^:]*: ([^.]*)\.", table.replace("\n", " ")))
    assert set(kinds) == {"static", "musl"}
    for kind, names in kinds.items():
        if kind == "musl" and shutil.which("musl-gcc") is None:
            pytest.skip("musl-gcc is not installed")
        made = {path.name.removesuffix(f"-{kind}") for path in built.glob(f"*-{kind}")}
        assert made == set(names.split(", "))


def test_every_target_is_in_the_table() -> None:
    table = (TARGETS / "README.md").read_text()
    sources = [path.stem for path in [*TARGETS.glob("*.c"), *TARGETS.glob("*.cc")]]
    assert [name for name in sources if not re.search(rf"\b{name}\b", table)] == []
