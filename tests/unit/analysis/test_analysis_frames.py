"""Names that stay, and whose code a frame is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.analysis.identity import frame_key, keys_of, module_key, stable_id
from tracer.analysis.own_frame import own_frame
from tracer.analysis.qualified_name import qualified_name
from tracer.model.frames import Frame


def frame(function: str | None, module: str | None = "srv", **more: object) -> Frame:
    return Frame(function, module, **more)  # type: ignore[arg-type]


def test_an_id_knows_functions_and_modules_only() -> None:
    one = (frame("f", "libx.so.1.2", file="a.c", line=3, address=0x10, offset=2), frame("main", line=1))
    two = (frame("f.isra.0", "libx.so.1.3", file="b.c", line=9, address=0x90, offset=7), frame("main", line=2))
    assert stable_id("allocation", "malloc", keys_of(one)) == stable_id("allocation", "malloc", keys_of(two))


def test_an_id_is_what_it_was() -> None:
    assert stable_id("allocation", "malloc", keys_of((frame("f"), frame("main")))) == "3d4e313b6749"


@pytest.mark.parametrize(
    "other",
    [
        ("reference", "malloc", ("f@srv",)),
        ("allocation", "calloc", ("f@srv",)),
        ("allocation", "malloc", ("g@srv",)),
        ("allocation", "malloc", ("f@srv", "f@srv")),
        ("allocation", "mallocf@srv", ()),
        ("allocation", None, ("f@srv",)),
    ],
)
def test_an_id_tells_apart(other: tuple[str, str | None, tuple[str, ...]]) -> None:
    id_ = stable_id("allocation", "malloc", ("f@srv",))
    assert stable_id(*other) != id_
    assert len(id_) == 12


def test_a_frame_without_a_name_is_its_place() -> None:
    assert frame_key(frame(None, "libc.so.6", address=0x27249)) == "libc+0x27249"
    assert frame_key(frame(None, None, address=0x7FFF1234)) == "?", "an address of one run means nothing in the next"


@pytest.mark.parametrize(
    ("name", "key"),
    [("libc.so.6", "libc"), ("libc-2.36.so", "libc"), ("libglib-2.0.so.0", "libglib"),
     ("perf", ""), ("perf2-6.1", ""), ("[vdso]", "[vdso]"), (None, "")],
)
def test_a_version_is_no_part_of_a_module(name: str | None, key: str) -> None:
    assert module_key(name) == key


@pytest.mark.parametrize(
    ("stack", "own"),
    [
        ([("malloc", "libc.so.6"), ("f", "srv")], 1),
        ([("malloc", "libc.so.6"), ("strdup", "libc.so.6"), (None, "libx.so.1")], 2),
        ([("__refcnt__init", "srv"), ("dso__new", "srv")], 1),
        ([("refcnt__delete", "srv"), ("dso__delete", "srv")], 1),
        ([("malloc", "libc.so.6"), ("operator new(unsigned long)", "libstdc++.so.6"), ("f()", "srv")], 2),
        ([("_Znwm", "srv"), ("std::vector<int>::push_back(int const&)", "srv"), ("Foo::bar()", "srv")], 2),
        ([("void std::__push_heap<int*>(int*)", "srv"), ("Foo::bar()", "srv")], 1),
        ([("malloc", "libjemalloc.so.2"), ("xmalloc", "srv"), ("stdout_open", "srv")], 2),
        ([(None, "libstdc++.so.6"), (None, "ld-linux-x86-64.so.2")], None),
        ([("malloc", "srv"), ("__libc_start_main", "srv"), ("_start", "srv")], None),
        ([(None, None), ("f", "srv")], 1),
        ([("_rjem_malloc", "srv"), ("<jem::Jemalloc as core::alloc::global::GlobalAlloc>::alloc", "srv"),
          ("__rustc::__rust_alloc", "srv"), ("alloc::boxed::Box<T>::new", "srv"), ("srv::keep", "srv")], 4),
        ([("je_mallocx", "srv"), ("mi_zalloc_aligned", "srv"), ("_rjem_sdallocx", "srv"), ("keep", "srv")], 3),
        ([("calloc", "ld-musl-x86_64.so.1"), ("strdup", "ld-musl-x86_64.so.1"), ("f", "srv")], 2),
        ([("standard::f()", "srv")], 0),
        ([("_PyMem_RawWcsdup", "python3.11"), ("config_set", "srv")], 1),
        ([("allocate_page", "srv")], 0),
        ([("malloc_page", "srv")], 0),
        ([], None),
    ],
)
def test_the_own_frame_is_the_first_that_is_not_machinery(
    stack: list[tuple[str | None, str | None]], own: int | None
) -> None:
    assert own_frame(tuple(frame(function, module) for function, module in stack)) == own


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("Ns<std::string>::visit()", "Ns::visit"),
        ("void Ns<std::string>::visit()", "Ns::visit"),
        ("Foo<int, std::string>::bar(std::map<int, int> const&) const", "Foo::bar"),
        ("std::vector<int, std::allocator<int> > Foo::make(int)", "Foo::make"),
        ("std::vector<int>::push_back(int const&)", "std::vector::push_back"),
        ("void std::__push_heap<int*>(int*)", "std::__push_heap"),
        ("(anonymous namespace)::f()", "_::f"),
        ("std::ostream& operator<< <char>(std::ostream&, Foo)", "operator"),
        ("Foo::operator<(Foo const&) const", "Foo::operator"),
        ("Foo::operator std::string() const", "Foo::operator"),
        ("std::function<void ()>::operator()() const", "std::function::operator"),
        ("auto f<int>(int)::{lambda(int)#1}::operator()(int) const", "f::_::operator"),
        ("f[abi:cxx11](int)", "f"),
        ("Foo::bar() [clone .cold]", "Foo::bar"),
        ("main", "main"),
        ("alloc::vec::from_elem", "alloc::vec::from_elem"),
        ("cooperator::run(int)", "cooperator::run"),
        ("", ""),
    ],
)
def test_the_qualified_name_of_a_function(function: str, name: str) -> None:
    assert qualified_name(function) == name


@given(st.text(alphabet="abN:<>()[]{} ,*&~operator", max_size=40))
def test_any_text_has_a_qualified_name(text: str) -> None:
    assert len(qualified_name(text)) <= len(text) + len("operator")


SYSTEM = {"path": "/usr/lib/x86_64-linux-gnu/libfoo.so.1"}


def test_a_library_of_the_distribution_is_not_own_where_the_program_called_it() -> None:
    library, program = frame("g_object_new", "libfoo.so.1", **SYSTEM), frame("main", "srv", path="/home/srv")
    assert own_frame((frame("malloc", "libc.so.6"), library, library, program)) == 3
    assert own_frame((frame("malloc", "libc.so.6"), library, frame("start", "libc.so.6"))) == 1
    assert own_frame((library, frame("f", "libown.so", path="/home/libown.so"), program)) == 1
    assert own_frame((frame("f", "libown.so", path="/usr/local/lib/libown.so"), library, program)) == 0
    assert own_frame((frame("f", "git", path="/usr/lib/git-core/git"), program)) == 0
    header = frame("QList::append", "srv", path="/usr/bin/srv", file="/usr/include/qt5/QtCore/qlist.h")
    assert own_frame((frame("malloc", "libc.so.6"), header, library, program)) == 3


@pytest.mark.parametrize(
    "wrapper",
    ["zmalloc", "ztrymalloc_usable", "zcalloc", "zcalloc_num", "xmalloc", "do_xmalloc", "xstrdup", "xmemdupz",
     "sqlite3MemMalloc", "sqlite3DbMallocRawNN", "sqlite3_malloc64", "av_malloc", "av_mallocz", "CRYPTO_zalloc",
     "PyMem_Malloc", "PyObject_Malloc", "_PyMem_RawMalloc", "g_malloc0", "ngx_alloc", "alloc::vec::from_elem",
     "emalloc", "_emalloc", "Perl_safesysmalloc", "Perl_savesharedpvn", "ruby_xmalloc2", "TclpAlloc", "Tcl_Alloc",
     "std::vector<int>::_M_realloc_insert(int*)"],
)  # fmt: skip
def test_a_wrapper_of_malloc_is_passed_over(wrapper: str) -> None:
    assert own_frame((frame("malloc", "libc.so.6"), frame(wrapper, "srv"), frame("load", "srv"))) == 2


@pytest.mark.parametrize(
    "wrapper",
    ["os::malloc(unsigned long, MEMFLAGS, NativeCallStack const&)", "AllocateHeap(unsigned long, MEMFLAGS)",
     "Arena::grow(unsigned long, AllocFailStrategy::AllocFailEnum)",
     "CHeapObj<(MEMFLAGS)5>::operator new(unsigned long)",
     "os::pd_commit_memory_or_exit(char*, unsigned long, bool, char const*)", "os::strdup(char const*, MEMFLAGS)"],
)  # fmt: skip
def test_what_java_allocates_by_is_passed_over(wrapper: str) -> None:
    library = {"path": "/usr/lib/jvm/lib/server/libjvm.so"}
    stack = frame("malloc", "libc.so.6"), frame(wrapper, "libjvm.so", **library)
    assert own_frame((*stack, frame("Unsafe_AllocateMemory0", "libjvm.so", **library))) == 2
    assert own_frame((frame("malloc", "libc.so.6"), frame(wrapper, "srv"), frame("main", "srv"))) == 1


@pytest.mark.parametrize(
    "function", ["Ns<std::string>::visit()", "void Ns<std::string>::visit()", "Foo<int, std::string>::bar()",
                 "std::string Foo::name(int) const", "malloc_page", "normalloc", "std_init", "alloc_node"],
)  # fmt: skip
def test_a_function_of_the_user_is_own(function: str) -> None:
    assert own_frame((frame("malloc", "libc.so.6"), frame(function, "srv"), frame("main", "srv"))) == 1


@pytest.mark.parametrize("program", ["perf2", "perf-6.1.0", "a.out"])
def test_a_renamed_program_keeps_its_ids(program: str) -> None:
    def id_of(name: str) -> str:
        own = Frame("map__new", name), Frame(None, name, address=16), Frame("main", name)
        return stable_id("reference", "map", keys_of((Frame("malloc", "libc.so.6"), *own)))

    assert id_of(program) == id_of("perf")
