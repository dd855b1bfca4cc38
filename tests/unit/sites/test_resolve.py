"""Specs resolved in binaries that gcc built here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tracer.architecture.current import argument
from tracer.elf.image import Image
from tracer.model.operations import NOWHERE, FunctionSpec, Operation, Site, SiteFlag, Spec
from tracer.model.snapshot import Unresolved
from tracer.sites.resolve import common_fragment, resolve
from tracer.specs.allocators import HEAP, MAPPINGS
from tracer.specs.stubs import STUBS

STUB_SOURCE = """
void __refcnt__init(int *r, int n, void *o, const char *s) { *r = n; }
__attribute__((noinline)) static void __refcnt__get(int *r, void *o, const char *s) { *(volatile int *)r += 1; }
int __refcnt__put(int *r, void *o, const char *s) { return --*r == 0; }
void refcnt__delete(void *o) { *(volatile char *)o = 0; }
void __refcnt__delete(void *o) __attribute__((alias("refcnt__delete")));
void take(int *r, void *o) { __refcnt__get(r, o, "o"); __refcnt__get(r, o, "o"); }
"""
CLONES = "".join(
    f'.globl "{name}"\n.type "{name}",@function\n"{name}": push %rbx\npop %rbx\nret\n.size "{name}",.-"{name}"\n'
    for name in (
        "__refcnt__get.constprop.0.isra.0", "__refcnt__get.part.0", "__refcnt__get.constprop.0.cold",
        "__refcnt__put.lto_priv.0", "__refcnt__init.something.0",
    )
)  # fmt: skip
MALLOC_SOURCE = """
static char pool[64];
void *malloc(unsigned long n) { return pool + n; }
void free(void *p) { *(volatile char *)p = 0; }
static __attribute__((noinline)) void *valloc(unsigned long n) { return *(void *volatile *)(pool + n); }
void *use(void) { return valloc(3); }
"""
MAIN = "int main(void) { return 0; }\n"


def build(folder: Path, source: str, name: str, *options: str, compiler: str = "gcc") -> Image:
    kind = "a.s" if source is CLONES else "a.c"
    (folder / kind).write_text(source)
    command = [compiler, "-O1", "-w", "-fno-builtin", *options, "-o", name, kind]
    subprocess.run(command, cwd=folder, check=True)
    return Image.open(folder / name)


def names(sites: list[Site]) -> list[str]:
    return sorted(site.function.function for site in sites)


@pytest.mark.parametrize("strip", [False, True])
def test_stubs_are_found_in_libraries(tmp_path: Path, strip: bool) -> None:
    image = build(tmp_path, STUB_SOURCE, "libx.so", "-shared", "-fPIC", *(["-s"] if strip else []))
    sites, unresolved = resolve(image, [STUBS], allocator=False)
    hidden = [] if strip else ["__refcnt__get"]
    assert names(sites) == [*hidden, "__refcnt__init", "__refcnt__put", "refcnt__delete"]
    assert unresolved == []
    init = next(site for site in sites if site.function.operation is Operation.CREATE)
    assert bytes(image.data[init.file_offset :][: init.size]).endswith(b"\xc3")
    assert image.file_offset_of(init.link_address) == init.file_offset


def test_imported_stubs_are_no_sites(tmp_path: Path) -> None:
    source = "void __refcnt__get(int *, void *, const char *);" + MAIN + "void f(void) { __refcnt__get(0, 0, 0); }"
    image = build(tmp_path, source, "libx.so", "-shared", "-fPIC")
    assert resolve(image, [STUBS], allocator=False) == ([], [])


def test_clones_are_reported_or_passed_over(tmp_path: Path) -> None:
    sites, unresolved = resolve(build(tmp_path, CLONES, "libx.so", "-shared", "-s"), [STUBS], allocator=False)
    assert names(sites) == ["__refcnt__put"]
    clone = "__refcnt__get.constprop.0.isra.0"
    assert unresolved == [Unresolved("get", "", clone, f"was cloned with other arguments ({clone})")]


def test_ifuncs_are_reported(tmp_path: Path) -> None:
    source = """
    static int put(int *r, void *o, const char *s) { return 0; }
    static void *choose(void) { return put; }
    int __refcnt__put(int *r, void *o, const char *s) __attribute__((ifunc("choose")));
    """
    sites, unresolved = resolve(build(tmp_path, source, "libx.so", "-shared", "-fPIC"), [STUBS], allocator=False)
    assert sites == []
    assert unresolved == [Unresolved("put", "", "__refcnt__put", "is an IFUNC, whose code is chosen at run time")]


@pytest.mark.parametrize(
    ("file", "options", "given", "expected"),
    [
        ("plugin.so", ["-shared", "-fPIC"], False, []),
        ("plugin.so", ["-shared", "-fPIC"], True, ["free", "malloc"]),
        ("libjemalloc.so.2", ["-shared", "-fPIC"], False, ["free", "malloc"]),
        ("renamed.so", ["-shared", "-fPIC", "-Wl,-soname,libtcmalloc_minimal.so.4"], False, ["free", "malloc"]),
        ("libc++.so.1", ["-shared", "-fPIC"], False, []),
    ],
)
def test_whose_malloc_counts(
    tmp_path: Path, file: str, options: list[str], given: bool, expected: list[str]
) -> None:
    image = build(tmp_path, MALLOC_SOURCE, file, *options)
    assert names(resolve(image, [HEAP, MAPPINGS], allocator=given)[0]) == expected


def test_a_program_that_defines_malloc_is_probed_but_not_its_private_functions(tmp_path: Path) -> None:
    image = build(tmp_path, MALLOC_SOURCE + MAIN, "program")
    assert names(resolve(image, [HEAP], allocator=False)[0]) == ["free", "malloc"]
    source = "static void *malloc(long n) { return 0; } void *f(void) { return malloc(1); }" + MAIN
    private = build(tmp_path, source, "p")
    assert resolve(private, [HEAP], allocator=False)[0] == []


@pytest.mark.parametrize("link", ["-static", "-static-pie"])
def test_static_programs_are_probed(tmp_path: Path, link: str) -> None:
    source = "#include <stdlib.h>\nint main(void) { char *p = malloc(9); p = realloc(p, 99); free(p); return p == 0; }"
    image = build(tmp_path, source, "program", link)
    assert {"malloc", "realloc", "free"} <= set(names(resolve(image, [HEAP], allocator=False)[0]))


def test_static_functions_of_a_named_program_are_found(tmp_path: Path) -> None:
    source = (
        "static __attribute__((noinline)) void thing_put(int *t) { *(volatile int *)t -= 1; }\n"
        "void use(int *t) { thing_put(t); }\n" + MAIN
    )
    function = FunctionSpec("thing_put", Operation.PUT, type_name="thing", libraries=("program*",))
    spec = Spec("things", (function,))
    sites, unresolved = resolve(build(tmp_path, source, "program"), [spec], allocator=False)
    assert names(sites) == ["thing_put"]
    assert unresolved == []


def test_the_plain_program_has_no_allocator_of_its_own(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }"
    assert resolve(build(tmp_path, source, "program"), [HEAP, MAPPINGS, STUBS], allocator=False) == ([], [])


def test_wildcards_and_names_at_one_address(tmp_path: Path) -> None:
    source = "".join(f"int {n}_get(int *p) {{ return *p + {i}; }}\n" for i, n in enumerate(("dso", "map")))
    source += 'int old_get(int *p) __attribute__((alias("dso_get"))); int dso_put(int *p) { return *p; }'
    image = build(tmp_path, source, "libx.so", "-shared", "-fPIC")
    getter = FunctionSpec("*_get", Operation.GET, type_name="x", object=argument(0))
    sites, _ = resolve(image, [Spec("x", (getter,))], allocator=False)
    assert names(sites) == ["dso_get", "map_get"]
    twice = Spec("x", (getter, replace(getter, operation=Operation.PUT), replace(getter, group=3)))
    assert len(resolve(image, [twice], allocator=False)[0]) == 6


def test_common_fragment_rules_out_a_whole_spec() -> None:
    assert common_fragment(tuple(f.function for f in STUBS.functions)) == "refcnt__"
    assert common_fragment(("*_get", "*_put")) in ("_", "t")
    assert common_fragment(()) == ""


def test_specs_say_where_their_values_are() -> None:
    by_name = {f.function: f for spec in (STUBS, HEAP, MAPPINGS) for f in spec.functions}
    init = by_name["__refcnt__init"]
    assert (init.counter, init.count, init.object, init.name) == (
        argument(0), argument(1, 4), argument(2), argument(3),
    )  # fmt: skip
    assert by_name["__refcnt__put_by"].holder == argument(3)
    assert by_name["__refcnt__put"].holder == NOWHERE
    assert by_name["refcnt__delete"].flags == SiteFlag.ENTRY_RESULT | SiteFlag.DELETES_OBJECT
    assert (by_name["calloc"].count, by_name["calloc"].size) == (argument(0), argument(1))
    assert by_name["reallocarray"].flags == SiteFlag.FREES_ON_ZERO | SiteFlag.PRODUCT
    assert (by_name["posix_memalign"].name, by_name["posix_memalign"].size) == (argument(0), argument(2))
    assert (by_name["mremap"].count, by_name["mremap"].size) == (argument(1), argument(2))
    complete_at_entry = (Operation.CREATE, Operation.GET, Operation.PUT, Operation.DELETE, Operation.FREE)
    for function in by_name.values():
        entry_only = function.operation in complete_at_entry
        assert bool(function.flags & SiteFlag.ENTRY_RESULT) == entry_only, function.function
