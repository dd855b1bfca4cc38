"""Stacks that the unwinder in BPF has to cut, walked to their end from a copy of registers and memory."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Refleak
from traced_report import callers, functions

LEAST_SENT, MOST_SENT = 400, 1024
"""Copies that the ring holds, if nobody reads it; that are made of stacks which were cut in the same code."""


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("ways", {("leak", "in_rbx", "one_way", "main"): 5, ("leak", "in_rbx", "other_way", "main"): 7}),
        (
            "expression",
            {
                ("leak", "in_expression", "through_expression", "main"): 3,
                ("leak", "in_rbx", "one_way", "in_expression", "through_all", "main"): 1,
            },
        ),
        ("rbp", {("leak", "rbp_in_r12", "with_variable_frame", "main"): 3}),
    ],
)
def test_the_callers_of_a_frame_in_another_register(
    refleak: Refleak, case: str, expected: dict[tuple[str, ...], int]
) -> None:
    run = refleak(target=("cut_frames", case))
    run.check_whole()
    found = {tuple(functions(callers(leak))[:-3]): leak["count"] for leak in run.leaks}
    assert found == expected
    assert {leak["stack_status"] for leak in run.leaks} == {"complete"}
    assert {functions(callers(leak))[-1] for leak in run.leaks} == {"_start"}


def test_a_signal_that_interrupts(refleak: Refleak) -> None:
    run = refleak(target=("cut_frames", "signal"))
    run.check_whole()
    [leak] = run.leaks
    names = functions(callers(leak))
    assert (names[:3], leak["stack_status"]) == (["leak", "in_rbx", "on_signal"], "complete")
    assert names[names.index("raise_signal") :][:2] == ["raise_signal", "main"] and names[-1] == "_start"


def test_a_return_address_that_a_probe_has_replaced(refleak: Refleak) -> None:
    run = refleak("--type", "thing:create=thing_new,put=thing_put", target=("cut_frames", "return"))
    run.check_whole()
    [leak] = [leak for leak in run.leaks if leak["kind"] == "allocation"]
    assert functions(callers(leak))[:4] == ["leak", "in_rbx", "thing_new", "main"]
    assert leak["stack_status"] == "complete"


def test_numbers_do_not_tell_stacks_apart(refleak: Refleak) -> None:
    run = refleak(target=("cut_frames", "numbers"))
    run.check_whole()
    [leak] = run.leaks
    assert (leak["count"], leak["stack_status"]) == (3000, "complete")
    assert functions(callers(leak))[:4] == ["leak", "in_rbx", "among_noise", "main"]


def test_the_same_frames_elsewhere_on_the_stack_are_one_stack(refleak: Refleak) -> None:
    run = refleak(target=("cut_frames", "depths"))
    run.check_whole()
    [leak] = run.leaks
    assert functions(callers(leak))[:4] == ["churn", "in_rbx", "at_depth", "main"]
    assert (leak["count"], leak["made"], leak["freed"]) == (10, 30, 20)


def test_more_continuations_than_are_followed_stay_cut(refleak: Refleak) -> None:
    """Dead words that might be decisive tell otherwise equal stacks apart."""
    run = refleak(target=("cut_frames", "addresses"))
    run.check_whole()
    whole, cut = sorted(run.leaks, key=lambda leak: leak["count"])
    assert LEAST_SENT <= whole["count"] <= MOST_SENT and whole["stack_status"] == "complete"
    assert functions(callers(whole))[:4] == ["leak", "in_rbx", "among_noise", "main"]
    assert (cut["count"], cut["stack_status"]) == (3000 - whole["count"], "unsupported")
    assert functions(callers(cut)) == ["leak", "in_rbx"]


def test_what_lies_beyond_the_copy_is_not_guessed(refleak: Refleak) -> None:
    run = refleak(target=("cut_frames", "far"))
    run.check_whole()
    [leak] = run.leaks
    assert functions(callers(leak)) == ["leak", "in_rbx", "far_away"] and not leak["stack_complete"]


LAZY = {
    "one.c": "int of_one(void) { return 1; }",
    "two.c": "int of_one(void); int of_two(void) { return of_one() + 1; }",
    "lazy.c": """
#include <dlfcn.h>
#include <stdio.h>
__attribute__((noinline)) static int call(int (*function)(void)) { return function() - 2; }
int main(int argc, char **argv)
{
    void *one = dlopen(argv[argc - 2], RTLD_NOW | RTLD_GLOBAL), *two = dlopen(argv[argc - 1], RTLD_LAZY);
    return one && two ? call((int (*)(void))dlsym(two, "of_two")) : 3;
}
""",
}


def test_the_loader_s_resolver_of_lazy_bindings(refleak: Refleak, tmp_path: Path) -> None:
    """It keeps its frame in rbx. The loader notes below it that one library needs the other."""
    for name, text in LAZY.items():
        source, made = tmp_path / name, tmp_path / name.replace(".c", "" if name == "lazy.c" else ".so")
        source.write_text(text)
        flags = [] if name == "lazy.c" else ["-shared", "-fPIC", "-Wl,-z,lazy"]
        subprocess.run(["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", *flags, "-o", made, source], check=True)
    libraries = (tmp_path / "one.so", tmp_path / "two.so")
    run = refleak("--no-default-suppressions", target=(tmp_path / "lazy", *libraries))
    run.check_whole()
    [leak] = run.below("of_two", "allocation")
    names = functions(callers(leak))
    assert leak["stack_status"] == "complete"
    assert "ld-linux-x86-64.so.2" in {frame["module"] for frame in callers(leak)[: names.index("of_two")]}
    assert names[names.index("of_two") :][:3] == ["of_two", "call", "main"]


IN_RBX = """
__asm__(".text\\n.globl in_rbx\\n.type in_rbx, @function\\nin_rbx:\\n.cfi_startproc\\n"
        "push %rbx\\n.cfi_adjust_cfa_offset 8\\n.cfi_rel_offset %rbx, 0\\n"
        "mov %rsp, %rbx\\n.cfi_def_cfa_register %rbx\\nand $-64, %rsp\\nsub $192, %rsp\\ncall *%rdi\\n"
        "mov %rbx, %rsp\\n.cfi_def_cfa_register %rsp\\npop %rbx\\n.cfi_adjust_cfa_offset -8\\nret\\n"
        ".cfi_endproc\\n.size in_rbx, . - in_rbx\\n");
void in_rbx(void (*call)(void));
void *malloc(unsigned long);
void *volatile kept;
__attribute__((noinline)) static void leak(void) { kept = malloc(101); }
"""
PLUGIN = """
__attribute__((noinline)) static void NAME(void (*in)(void (*)(void)), void (*leak)(void)) { in(leak); }
void enter(void (*in)(void (*)(void)), void (*leak)(void)) { NAME(in, leak); }
"""
HOST = IN_RBX + """
#include <dlfcn.h>
int main(int argc, char **argv)
{
    for (int turn = 0; turn < 20; turn++) {
        void *plugin = dlopen(argv[argc - 2 + turn % 2], RTLD_NOW);
        void (*enter)(void (*)(void (*)(void)), void (*)(void)) = plugin ? dlsym(plugin, "enter") : 0;
        if (!enter)
            return 3;
        for (int i = 0; i < 4; i++)
            enter(in_rbx, leak);
        dlclose(plugin);
    }
    return 0;
}
"""


def built(folder: Path, name: str, text: str, *flags: str) -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    command = ["gcc", "-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", *flags, "-o", folder / name, source]
    subprocess.run(command, check=True)
    return folder / name


def test_a_library_that_was_replaced_at_its_address(refleak: Refleak, tmp_path: Path) -> None:
    """The words on the stack are the same, and stand for other code."""
    flags = ("-shared", "-fPIC")
    plugins = [built(tmp_path, f"{n}.so", PLUGIN.replace("NAME", f"only_in_{n}"), *flags) for n in ("a", "b")]
    run = refleak(target=(built(tmp_path, "host", HOST), *plugins))
    run.check_whole()
    found: Counter[str | None] = Counter()
    for leak in run.below("in_rbx", "allocation"):
        found[functions(callers(leak))[2]] += leak["count"]
        assert leak["stack_status"] == "complete"
    assert found == {"only_in_a": 40, "only_in_b": 40}


def test_frames_of_a_script_beyond_the_cut(refleak: Refleak, tmp_path: Path) -> None:
    library = built(tmp_path, "go.so", IN_RBX + "void go(void) { in_rbx(leak); }", "-shared", "-fPIC")
    script = tmp_path / "script.py"
    script.write_text(f"import ctypes\ngo = ctypes.CDLL({str(library)!r}).go\ndef load():\n    go()\nload()\n")
    run = refleak("--top", 1000, target=("/usr/bin/python3", "-I", script))
    assert (run.status, run.report["lost"]) == (0, []), run.stderr
    [leak] = [leak for leak in run.leaks if functions(callers(leak))[:3] == ["leak", "in_rbx", "go"]]
    calls = [(frame["function"], frame["line"]) for frame in callers(leak) if frame["kind"] == "guest"]
    assert (calls, leak["stack_status"]) == ([("load", 4), ("<module>", 5)], "complete")
    assert "_PyEval_EvalFrameDefault" not in functions(callers(leak))
