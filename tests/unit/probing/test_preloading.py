"""Which programs call the heap through the library of --preload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tracer.binaries.open_binaries import OpenBinary
from tracer.elf.symbol_table import STB_GLOBAL, STB_LOCAL, STT_FUNC, Symbol
from tracer.model.operations import FunctionSpec, Operation, Site, SiteFlag, place_at_entry
from tracer.model.preload_names import SONAME, PreloadLibrary
from tracer.probing.preloading import Preloading

LIBRARY = PreloadLibrary(f"/kept/lib/{SONAME}", f"/kept/$LIB/{SONAME}")
HEAP = ("malloc", "free", "realloc")


@dataclass
class Symbols:
    functions: Mapping[str, int] = field(default_factory=dict)
    mentioned: tuple[str, ...] = ()

    def find(self, name: str) -> tuple[Symbol, ...]:
        binding = self.functions.get(name)
        return () if binding is None else (Symbol(name, 1, 1, STT_FUNC, binding, None, 1),)

    def mentions(self, text: str) -> bool:
        return any(text in name for name in (*self.functions, *self.mentioned))


def _binary(
    path: str, *functions: str, heap: tuple[str, ...] = (), soname: str | None = None, **rest: Any
) -> OpenBinary:  # fmt: skip
    operations = {"free": Operation.FREE, "realloc": Operation.REALLOC}
    placements = [
        (n, place_at_entry(Site(FunctionSpec(name, operations.get(name, Operation.ALLOC)), path, 0, 0)))
        for n, name in enumerate(heap)
    ]
    symbols = Symbols(dict.fromkeys(functions, rest.pop("binding", STB_GLOBAL)), rest.pop("mentioned", ()))
    return cast(OpenBinary, SimpleNamespace(
        id=abs(hash(path)), path=path, placements=placements, image=SimpleNamespace(soname=soname), names=symbols,
        is_static=rest.get("is_static", False), is_loader=rest.get("is_loader", False),
    ))  # fmt: skip


PROGRAM = _binary("/bin/prog")
LOADER = _binary("/lib/ld.so", "malloc", is_loader=True)
LIBC = _binary("/lib/libc.so.6", "dlsym", "malloc", heap=HEAP, soname="libc.so.6")
OURS = _binary(LIBRARY.path, "malloc", soname=SONAME)
PLAIN = [PROGRAM, LOADER, OURS, LIBC]
JEMALLOC = _binary("/lib/libjemalloc.so.2", "malloc", heap=("malloc", "_Znwm"))


def test_a_plain_program_calls_the_heap_through_the_library() -> None:
    preloading = Preloading(LIBRARY)
    preloading.starts(7, PLAIN)
    assert (preloading.has(7), preloading.notes) == (True, ())
    assert preloading.chosen(7, LIBC) == []


@pytest.mark.parametrize(
    ("binaries", "reason"),
    [
        ([_binary("/bin/prog", heap=HEAP, is_static=True)], "it is static"),
        ([PROGRAM, LOADER, LIBC], "LD_PRELOAD does not name the library in its environment, or it is not found under"),
        ([*PLAIN, JEMALLOC], "it has an allocator of its own, in /lib/libjemalloc.so.2"),
        ([*PLAIN, _binary("/lib/libown.so", "malloc")], "it has an allocator of its own, in /lib/libown.so"),
        ([*PLAIN, _binary("/lib/libx.so", mentioned=("__libc_free",))], "/lib/libx.so calls libc's malloc by another"),
        ([PROGRAM, LOADER, OURS, _binary("/lib/libc.so", "malloc", heap=HEAP)], "its C library is not glibc 2.34 or"),
        ([PROGRAM, LOADER, OURS, _binary("/lib/libc.so.6", "malloc", heap=HEAP, soname="libc.so.6")],
         "its C library is not glibc 2.34 or newer"),
        ([PROGRAM, LOADER, OURS, _binary("/l/libc.so.6", "dlsym", heap=(*HEAP, "free_sized"), soname="libc.so.6")],
         "its C library has free_sized(), which the library does not know"),
    ],
)  # fmt: skip
def test_others_are_probed_as_without_it_and_told_why(binaries: list[OpenBinary], reason: str) -> None:
    preloading = Preloading(LIBRARY)
    preloading.starts(7, binaries)
    assert not preloading.has(7)
    assert [note.startswith(f"not preloaded: /bin/prog: {reason}") for note in preloading.notes] == [True]
    assert [len(preloading.chosen(7, binary)) for binary in binaries] == [len(b.placements) for b in binaries]


def test_a_private_malloc_is_no_allocator() -> None:
    preloading = Preloading(LIBRARY)
    preloading.starts(7, [*PLAIN, _binary("/lib/libown.so", "malloc", binding=STB_LOCAL)])
    assert preloading.has(7)


def test_a_child_does_as_its_parent() -> None:
    preloading = Preloading(LIBRARY)
    preloading.starts(7, PLAIN)
    preloading.forked(7, 8)
    preloading.forked(6, 9)
    assert (preloading.has(8), preloading.has(9)) == (True, False)
    preloading.forget(8)
    assert not preloading.has(8)


def test_what_was_left_out_is_probed_once_where_the_loader_did_not_load_it() -> None:
    preloading = Preloading(LIBRARY)
    preloading.starts(7, PLAIN)
    preloading.chosen(7, LIBC)
    assert not preloading.is_missing(7, [PROGRAM, LOADER])
    assert not preloading.is_missing(7, PLAIN)
    assert preloading.left_out(7, LIBC) == []
    assert preloading.is_missing(7, [PROGRAM, LOADER, LIBC])
    assert preloading.left_out(7, LIBC) == LIBC.placements
    assert preloading.left_out(7, LIBC) == []
    assert preloading.notes == ("not preloaded: /bin/prog: its loader has not loaded the library",)


def test_places_of_the_library_are_probed_with_it_alone() -> None:
    place = FunctionSpec("refleak_begin_free", Operation.FREE, flags=SiteFlag.WRAPPER)
    library = cast(OpenBinary, SimpleNamespace(id=1, placements=[(1, place_at_entry(Site(place, "", 0, 0)))]))
    preloading = Preloading(LIBRARY)
    assert preloading.chosen(7, library) == []
    preloading.starts(7, PLAIN)
    assert preloading.chosen(7, library) == library.placements


@pytest.mark.parametrize(
    ("binaries", "environment", "given"),
    [
        ([PROGRAM, LOADER, LIBC], {}, {"LD_PRELOAD": LIBRARY.name}),
        ([PROGRAM, LOADER, LIBC], {"LD_PRELOAD": "/other.so"}, {"LD_PRELOAD": f"{LIBRARY.name}:/other.so"}),
        ([PROGRAM, LOADER, LIBC, JEMALLOC], {}, {}),
        ([], {}, {}),
    ],
)
def test_the_variable_is_set_for_those_that_do_with_it(
    binaries: list[OpenBinary], environment: dict[str, str], given: dict[str, str]
) -> None:
    assert Preloading(LIBRARY).variables(binaries, environment) == given
    assert Preloading(None).variables(binaries, environment) == {}
