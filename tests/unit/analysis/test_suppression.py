"""Suppressions: the user's, and the known one-offs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made import Code, blocks, snapshot
from hypothesis import given
from hypothesis import strategies as st

from tracer.analysis import AnalysisOptions, Suppression, analyse, has_findings, parse_suppressions
from tracer.analysis.one_offs import ONE_OFFS, one_off
from tracer.analysis.setting_aside import set_aside
from tracer.errors import SpecInvalid
from tracer.model.findings import INDIRECT, LOST, Leak
from tracer.model.frames import Frame

LIBC, LD, CXX, GLIB = "libc.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6.0.30", "libglib-2.0.so.0"


def leak(*frames: tuple[str | None, str | None], kind: str = "allocation", type_: str = "malloc") -> Leak:
    stack = tuple(Frame(f, m, f"/usr/lib/{m}", file=f"/src/{f}.c") for f, m in frames)
    return Leak("0" * 12, kind, type_, 1, "leaked", 1, 8, stack, True, "complete")


def test_the_syntax_is_that_of_leak_sanitizer() -> None:
    text = "# known\n\n  leak:foo*bar  \nref:dso\r\nleak:^main$\n"
    assert parse_suppressions(text, "s.txt") == (
        Suppression("leak", "foo*bar", "s.txt:3"),
        Suppression("ref", "dso", "s.txt:4"),
        Suppression("leak", "^main$", "s.txt:5"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leak:a\nfoo\n", "s.txt:2: not a suppression: 'foo'"),
        ("race:foo", "s.txt:1: not a suppression: 'race:foo'"),
        ("\n\nleak:", "s.txt:3: the pattern of `leak:` would match everything"),
        ("ref:**", "s.txt:1: the pattern of `ref:**` would match everything"),
    ],
)
def test_what_is_no_suppression_is_told_by_file_and_line(text: str, message: str) -> None:
    with pytest.raises(SpecInvalid) as caught:
        parse_suppressions(text, "s.txt")
    assert str(caught.value) == message
    assert "ref:TYPE" in caught.value.hint


@given(st.text(max_size=80))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        for suppression in parse_suppressions(text, "s"):
            suppression.matches(leak(("f", "m"), kind="reference"))
    except SpecInvalid as error:
        assert str(error).startswith("s:")


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("parse", True), ("^parse_body$", True), ("^body", False), ("body$", True), ("parse*dy", True),
        ("libx.so", True), ("/usr/lib/libx", True), ("/src/main.c", True), ("main", True),
        ("p.rse", False), ("^main$", True), ("Parse", False),
    ],
)  # fmt: skip
def test_a_pattern_is_found_in_any_frame(pattern: str, matches: bool) -> None:
    assert Suppression("leak", pattern).matches(leak(("parse_body", "libx.so.1"), ("main", "srv"))) is matches


@pytest.mark.parametrize(("pattern", "matches"), [("dso", True), ("ds", False), ("d*", True), ("map", False)])
def test_a_type_is_matched_whole(pattern: str, matches: bool) -> None:
    rule = Suppression("ref", pattern)
    assert rule.matches(leak(("dso__new", "perf"), kind="reference", type_="dso")) is matches
    assert not rule.matches(leak(("dso__new", "perf"), type_="dso"))


def test_what_is_suppressed_is_counted_and_does_not_fail_a_run() -> None:
    code = Code()
    stack = code.stack(1, code.frame("malloc", binary=2), code.frame("cache_fill", "c.c:1"))
    snap = snapshot(code, allocations=blocks({"address": 1, "size": 5}, {"address": 2, "size": 6}, stack=stack))
    options = AnalysisOptions(parse_suppressions("leak:cache_", "s"))
    found = analyse(snap, code.symbols, options)
    assert found.leaks == ()
    assert [(s.suppressed_by, s.count, s.bytes) for s in found.suppressed] == [("leak:cache_", 2, 11)]
    assert not has_findings(found)
    assert has_findings(analyse(snap, code.symbols))


M = ("malloc", LIBC)
KNOWN = {
    "stdio-buffer": [M, ("_IO_file_doallocate", LIBC), ("_IO_doallocbuf", LIBC), ("printf", LIBC), ("main", "srv")],
    "libstdc++-pool": [M, (None, CXX), (None, LD), (None, LD)],
    "loader": [("calloc", LIBC), ("_dl_allocate_tls", LD), (None, LIBC), ("pthread_create", LIBC), ("main", "srv")],
    "last-words-static": [("mmap", "static"), ("__libc_message", "static"), ("main", "static")],
    "loader-static": [("malloc", "static"), ("_dl_important_hwcaps", "static"), ("_start", "static")],
    "thread-exit": [("calloc", LIBC), ("__cxa_thread_atexit_impl", LIBC), ("f", "srv")],
    "exit-handlers": [("calloc", LIBC), (None, LIBC), ("__cxa_atexit", LIBC), ("f", "srv")],
    "thread": [M, (None, LIBC), ("pthread_create", LIBC), ("main", "srv")],
    "thread-specific": [("calloc", LIBC), ("pthread_setspecific", LIBC), ("f", "srv")],
    "locale": [M, (None, LIBC), (None, LIBC), ("setlocale", LIBC), ("main", "srv")],
    "time-zone": [M, ("strdup", LIBC), (None, LIBC), ("localtime", LIBC), ("main", "srv")],
    "name-service": [M, (None, LIBC), ("getpwnam", LIBC), ("main", "srv")],
    "character-sets": [M, (None, LIBC), ("__gconv_open", LIBC), ("iconv_open", LIBC), ("main", "srv")],
    "glib-quarks": [M, ("g_malloc", GLIB), (None, GLIB), ("g_quark_from_string", GLIB), ("main", "srv")],
    "glib-start": [M, ("g_malloc", GLIB), (None, GLIB), (None, LD)],
    "python-start": [M, (None, "python3.11"), ("Py_InitializeFromConfig", "python3.11"), ("main", "python3.11")],
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_one_off_is_recognized(name: str) -> None:
    rule = one_off(leak(*KNOWN[name]))
    assert rule is not None
    assert rule.name == name


def test_what_the_runtime_of_go_maps_is_its_own() -> None:
    runtime = ("x_cgo_mmap", "srv"), ("runtime.callCgoMmap.abi0", "srv"), ("runtime.sysMap", "srv")
    rule = one_off(leak(("mmap", LIBC), *runtime, kind="mapping"))
    assert rule is not None
    assert rule.name == "go-runtime"
    assert one_off(leak(("mmap", LIBC), ("map_file", "srv"), ("_cgo_1_Cfunc_map_file", "srv"), kind="mapping")) is None


def test_what_a_sanitizer_maps_is_its_own_but_for_what_it_hands_out() -> None:
    san = "libasan.so.8"
    rule = one_off(leak(MMAP, ("__asan_backtrace_alloc", san), (None, san), ("exit", LIBC), kind="mapping"))
    assert rule is not None
    assert rule.name == "sanitizer"
    for name in ("mmap", "mmap64", "__interceptor_mmap", "___interceptor_mmap64"):
        assert one_off(leak(MMAP, (name, san), ("map_file", "srv"), kind="mapping")) is None


def test_a_thread_stack_is_a_mapping() -> None:
    rule = one_off(leak(("mmap", LIBC), (None, LIBC), ("pthread_create", LIBC), ("main", "srv"), kind="mapping"))
    assert rule is not None
    assert rule.name == "thread"


MMAP = ("mmap", LIBC)
MAPPED = {
    "locale": [MMAP, ("_nl_load_locale", LIBC), ("_nl_find_locale", LIBC), ("setlocale", LIBC), ("main", "srv")],
    "locale-data": [MMAP, (None, LIBC), ("newlocale", LIBC), ("main", "srv")],
    "character-set-books": [MMAP, ("__gconv_load_cache", LIBC), ("iconv_open", LIBC), ("f", "srv")],
    "messages": [MMAP, ("_nl_load_domain", LIBC), ("__dcigettext", LIBC), ("main", "srv")],
    "last-words": [MMAP, ("__libc_message", LIBC), ("abort", LIBC), ("main", "srv")],
    "heap": [MMAP, ("new_heap", LIBC), ("arena_get2.part.0", LIBC), ("tcache_init", LIBC), ("free", LIBC),
             ("f", "srv")],
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_what_libc_maps_for_itself_is_known(name: str) -> None:
    rule = one_off(leak(*MAPPED[name], kind="mapping"))
    assert rule is not None
    assert rule.name == name


def test_an_allocators_library_maps_for_itself() -> None:
    rule = one_off(leak(MMAP, (None, "libjemalloc.so.2"), (None, "libjemalloc.so.2"), ("f", "srv"), kind="mapping"))
    assert rule is not None
    assert rule.name == "heap"
    assert one_off(leak(MMAP, ("pool_grow", "srv"), ("free", LIBC), kind="mapping")) is None
    assert one_off(leak(("malloc", LIBC), ("f", "srv"))) is None


@pytest.mark.parametrize("function", ["mmap", "mmap64", "mremap"])
def test_mappings_by_a_call_of_the_allocators_library_are_the_programs(function: str) -> None:
    """tcmalloc has these calls in place of libc's."""
    library = "libtcmalloc_minimal.so.4"
    assert one_off(leak((function, library), ("f", "srv"), kind="mapping")) is None
    assert one_off(leak((function, library), (None, library), ("f", "srv"), kind="mapping")) is not None


def test_the_zone_of_a_tail_called_conversion_is_known() -> None:
    rule = one_off(leak(M, ("__tzstring", LIBC), ("__tz_convert", LIBC), ("f", "srv")))
    assert rule is not None
    assert rule.name == "time-zone"


@pytest.mark.parametrize(
    ("function", "name"), [(None, "musl-pages"), ("__malloc_alloc_meta", "musl-pages"), ("sem_open", None)]
)
def test_pages_of_musls_own_are_known(function: str | None, name: str | None) -> None:
    rule = one_off(leak((function, "ld-musl-x86_64.so.1"), ("main", "srv"), kind="mapping"))
    assert (rule.name if rule else None) == name
    assert one_off(leak((function, "ld-musl-x86_64.so.1"), ("main", "srv"))) is None
    assert one_off(leak((None, "srv"), ("main", "srv"), kind="mapping")) is None


@pytest.mark.parametrize(
    "frames",
    [
        [M, ("main", "srv")],
        [M, ("strdup", LIBC), ("main", "srv")],
        [M, ("fopen", LIBC), ("main", "srv")],
        [M, ("getdelim", LIBC), ("main", "srv")],
        [M, ("__gconv_open", LIBC), ("iconv_open", LIBC), ("main", "srv")],
        [M, ("newlocale", LIBC), ("main", "srv")],
        [M, ("constructor", "libx.so"), (None, LD), (None, LD)],
        [M, ("operator new(unsigned long)", CXX), ("f()", "srv"), (None, LD)],
        [M, ("my_setlocale", "srv"), ("setlocale", LIBC)],
        [M, (None, LIBC), ("__libc_start_main", LIBC), ("_start", "srv")],
        [("malloc", "ld-musl-x86_64.so.1"), ("strdup", "ld-musl-x86_64.so.1"), ("main", "srv")],
        [M, (None, LIBC), ("getaddrinfo", LIBC), ("main", "srv")],
        [M, (None, "python3.11"), ("PyBytes_FromString", "ext.so"), ("Py_InitializeFromConfig", "python3.11")],
        [M, ("g_malloc", GLIB), ("g_strdup", GLIB), ("main", "srv")],
        [M],
        [],
    ],
)  # fmt: skip
def test_memory_of_the_program_is_never_taken_for_a_one_off(frames: list[tuple[str | None, str]]) -> None:
    assert one_off(leak(*frames)) is None


JVM, JLI = "libjvm.so", "libjli.so"
VM = [("Threads::create_vm(JavaVMInitArgs*, bool*)", JVM), ("JNI_CreateJavaVM", JVM), ("JavaMain", JLI)]
OS = ("os::malloc(unsigned long, MEMFLAGS)", JVM)
NEW_HANDLE = [M, OS, ("OopStorage::allocate()", JVM), ("jni_NewGlobalRef", JVM)]


@pytest.mark.parametrize(
    ("kind", "frames"),
    [
        ("mapping", [MMAP, ("os::pd_reserve_memory(unsigned long, bool)", JVM), ("universe_init()", JVM), *VM]),
        ("mapping", [MMAP, ("os::pd_commit_memory(char*, unsigned long, bool)", JVM), (None, None)]),
        ("mapping", [MMAP, ("JIMAGE_Open", "libjimage.so"), ("ClassLoader::setup()", JVM), *VM]),
        ("allocation", [M, OS, ("Arena::grow(unsigned long)", JVM), *VM]),
        ("allocation", [M, OS, ("JVM_StartThread", JVM), (None, None)]),
        ("allocation", [*NEW_HANDLE, ("JNU_ClassString", "libjava.so")]),
        ("allocation", [M, ("strdup", LIBC), ("JLI_StringDup", JLI), ("main", "java")]),
    ],
)  # fmt: skip
def test_the_virtual_machine_of_java_has_memory_of_its_own(kind: str, frames: list[tuple[str, str]]) -> None:
    rule = one_off(leak(*frames, kind=kind))
    assert rule is not None and rule.name == "java"


@pytest.mark.parametrize(
    ("kind", "frames"),
    [
        ("allocation", [M, OS, ("Unsafe_AllocateMemory0", JVM), (None, None)]),
        ("allocation", [M, ("AllocateHeap(unsigned long)", JVM), ("jni_GetStringUTFChars", JVM), ("f", "libn.so")]),
        ("allocation", [*NEW_HANDLE, ("f", "libn.so")]),
        ("allocation", [M, ("f", "libn.so"), (None, None), *VM]),
        ("allocation", [M, ("strdup", LIBC), ("f", "libn.so"), *VM]),
        ("allocation", [M, ("JvmtiEnv::Allocate(long, unsigned char**)", JVM), ("f", "libagent.so")]),
        ("mapping", [MMAP, ("Java_sun_nio_ch_FileChannelImpl_map0", "libnio.so"), (None, None)]),
    ],
)  # fmt: skip
def test_memory_that_java_hands_out_is_not_its_own(kind: str, frames: list[tuple[str, str]]) -> None:
    assert one_off(leak(*frames, kind=kind)) is None


def test_what_is_lost_with_its_owner_is_a_part_of_it() -> None:
    """The step of a conversion, of iconv_open that was not closed: its entry says what hangs below it."""
    below = replace(leak(*KNOWN["locale"]), reachability=INDIRECT, owner="1" * 12)
    assert set_aside([below], AnalysisOptions())[0].suppressed_by is None
    for alone in (replace(below, owner=None), replace(below, reachability=LOST)):
        assert set_aside([alone], AnalysisOptions())[0].suppressed_by == "built-in:locale"
    own = AnalysisOptions(parse_suppressions("leak:main", "s.txt"))
    assert set_aside([below], own)[0].suppressed_by == "leak:main"


def test_one_offs_are_no_references_and_have_reasons() -> None:
    assert one_off(leak(*KNOWN["locale"], kind="reference")) is None
    assert len({rule.name for rule in ONE_OFFS}) == len(ONE_OFFS)
    assert all(len(rule.reason) > 10 for rule in ONE_OFFS)


def test_the_built_in_ones_can_be_turned_off() -> None:
    code = Code()
    stack = code.stack(1, code.frame("malloc", binary=2), code.frame("_IO_file_doallocate", binary=2))
    snap = snapshot(code, allocations=blocks({"address": 1, "size": 4096, "stack": stack}))
    assert [s.suppressed_by for s in analyse(snap, code.symbols).suppressed] == ["built-in:stdio-buffer"]
    assert analyse(snap, code.symbols, AnalysisOptions(default_suppressions=False)).suppressed == ()
