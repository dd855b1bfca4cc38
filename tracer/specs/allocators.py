"""The malloc family and the memory-mapping calls, as C libraries and their well-known replacements export them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tracer.architecture.current import argument
from tracer.model.allocator_names import ALLOCATORS
from tracer.model.operations import (
    NO_FLAGS,
    NOWHERE,
    RETURN_VALUE,
    FunctionSpec,
    Location,
    Operation,
    SiteFlag,
    Spec,
)

REPLACEMENTS = tuple(f"lib{name}*.so*" for name in ALLOCATORS)
LIBRARIES = ("libc.so*", "libc-2.*.so", "ld-musl-*", "libc.musl*", *REPLACEMENTS)
"""Names (file or soname) of glibc, musl and the replacements; another library's `malloc` is its own affair."""


def _alloc(
    function: str, size: Location, count: Location = NOWHERE, libraries: tuple[str, ...] = LIBRARIES
) -> FunctionSpec:
    return FunctionSpec(
        function,
        Operation.ALLOC,
        type_name=function,
        flags=SiteFlag.PRODUCT if count else NO_FLAGS,
        object=RETURN_VALUE,
        count=count,
        size=size,
        libraries=libraries,
    )


def _aligned(
    function: str, alignment: Location, size: Location, libraries: tuple[str, ...] = LIBRARIES
) -> FunctionSpec:
    """`count` without the flag PRODUCT is the alignment."""
    return replace(_alloc(function, size, libraries=libraries), count=alignment)


def _realloc(
    function: str, size: Location, count: Location = NOWHERE, libraries: tuple[str, ...] = LIBRARIES
) -> FunctionSpec:
    flags = SiteFlag.FREES_ON_ZERO | (SiteFlag.PRODUCT if count else NO_FLAGS)
    return FunctionSpec(
        function,
        Operation.REALLOC,
        type_name=function,
        flags=flags,
        object=argument(0),
        count=count,
        size=size,
        libraries=libraries,
    )


def _free(function: str, libraries: tuple[str, ...] = LIBRARIES) -> FunctionSpec:
    return FunctionSpec(
        function,
        Operation.FREE,
        type_name=function,
        flags=NO_FLAGS | SiteFlag.ENTRY_RESULT,
        object=argument(0),
        size=argument(1),  # of a sized or an aligned operator delete, which may come here by a jump
        libraries=libraries,
    )


def _mapping(
    function: str, operation: Operation, size: Location, count: Location = NOWHERE, type_name: str = "mmap"
) -> FunctionSpec:
    return FunctionSpec(
        function, operation, type_name=type_name, object=argument(0), size=size, count=count, libraries=LIBRARIES
    )


def _posix_memalign(function: str = "posix_memalign", libraries: tuple[str, ...] = LIBRARIES) -> FunctionSpec:
    return FunctionSpec(
        function,
        Operation.ALLOC,
        type_name=function,
        flags=NO_FLAGS | SiteFlag.OUT_POINTER,
        name=argument(0),
        size=argument(2),
        count=argument(1),
        libraries=libraries,
    )


_NEW = ("_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t")
_ALIGNED_NEW = (
    "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t",
)  # fmt: skip
_DELETE = (
    "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t", "_ZdaPvSt11align_val_tRKSt9nothrow_t",
)  # fmt: skip
# The replacements implement operator new without calling malloc; libstdc++'s comes through malloc.
_OPERATORS = (
    *(_alloc(name, argument(0), libraries=REPLACEMENTS) for name in _NEW),
    *(_aligned(name, argument(1), argument(0), REPLACEMENTS) for name in _ALIGNED_NEW),
    *(_free(name, REPLACEMENTS) for name in _DELETE),
)

_JEMALLOC, _TCMALLOC, _MIMALLOC = ("libjemalloc*.so*",), ("libtcmalloc*.so*",), ("libmimalloc*.so*",)


def _of_jemalloc(prefix: str, libraries: tuple[str, ...]) -> tuple[FunctionSpec, ...]:
    """Return what jemalloc has besides malloc and its kin, under the prefix that its functions were given."""
    return (
        _alloc(f"{prefix}mallocx", argument(0), libraries=libraries),
        _realloc(f"{prefix}rallocx", argument(1), libraries=libraries),
        *(_free(f"{prefix}{name}", libraries) for name in ("dallocx", "sdallocx")),
    )


def _of_c(prefix: str) -> tuple[FunctionSpec, ...]:
    """Return malloc and its kin under a prefix, in any binary."""
    anywhere: tuple[str, ...] = ()
    return (
        *(_alloc(f"{prefix}{name}", argument(0), libraries=anywhere) for name in ("malloc", "valloc", "pvalloc")),
        _alloc(f"{prefix}calloc", argument(1), argument(0), anywhere),
        _realloc(f"{prefix}realloc", argument(1), libraries=anywhere),
        _realloc(f"{prefix}reallocarray", argument(2), argument(1), anywhere),
        _posix_memalign(f"{prefix}posix_memalign", anywhere),
        *(_aligned(f"{prefix}{name}", argument(0), argument(1), anywhere) for name in ("aligned_alloc", "memalign")),
        *(_free(f"{prefix}{name}", anywhere) for name in ("free", "cfree", "free_sized", "free_aligned_sized")),
    )


# What their headers declare besides (jemalloc.h 5.3, tcmalloc.h 2.10, mimalloc.h 2.0). Most names of tcmalloc and many
# of mimalloc are others of the same functions, and count once. Left out are those that change a block in its place
# (xallocx, mi_expand), that do not say a size (mi_strdup), and heaps that are destroyed as a whole (mi_heap_malloc).
_OWN_FUNCTIONS = (
    *_of_jemalloc("", _JEMALLOC),
    *(_alloc(name, argument(0), libraries=_TCMALLOC) for name in ("tc_malloc", "tc_malloc_skip_new_handler")),
    *(_alloc(f"mi_{name}", argument(0), libraries=_MIMALLOC) for name in (
        "malloc", "malloc_small", "zalloc", "zalloc_small", "new", "new_nothrow", "valloc", "pvalloc",
    )),
    *(_alloc(f"mi_{name}", argument(1), argument(0), _MIMALLOC) for name in (
        "calloc", "mallocn", "new_n", "calloc_aligned", "calloc_aligned_at",
    )),
    *(_aligned(f"mi_{name}", argument(1), argument(0), _MIMALLOC) for name in (
        "malloc_aligned", "malloc_aligned_at", "zalloc_aligned", "zalloc_aligned_at", "new_aligned",
        "new_aligned_nothrow",
    )),
    *(_aligned(f"mi_{name}", argument(0), argument(1), _MIMALLOC) for name in ("memalign", "aligned_alloc")),
    _posix_memalign("mi_posix_memalign", _MIMALLOC),
    *(_realloc(f"mi_{name}", argument(1), libraries=_MIMALLOC) for name in (
        "realloc", "reallocf", "rezalloc", "new_realloc", "realloc_aligned", "realloc_aligned_at", "rezalloc_aligned",
        "rezalloc_aligned_at",
    )),
    *(_realloc(f"mi_{name}", argument(2), argument(1), _MIMALLOC) for name in (
        "reallocn", "reallocarray", "recalloc", "new_reallocn", "recalloc_aligned", "recalloc_aligned_at",
        "aligned_recalloc", "aligned_offset_recalloc",
    )),
    *(_free(f"mi_{name}", _MIMALLOC) for name in ("free", "cfree", "free_size", "free_aligned", "free_size_aligned")),
)  # fmt: skip


def embedded(names: Callable[[str], Iterable[str]]) -> Spec | None:
    """Return the functions of allocators that a binary has under names of their own, linked in: jemalloc with a prefix,
    as in Redis (je_) and Rust's programs (_rjem_), and mimalloc. None where there is none.

    Its operators of C++ are jemalloc's own then, which pass over the functions of C. `names` returns those of the
    binary's functions that match a pattern (fnmatch).
    """
    found: list[FunctionSpec] = []
    for name in names("?*_mallocx"):
        prefix = name.removesuffix("mallocx")
        if all(any(names(f"{prefix}{other}")) for other in ("malloc", "sdallocx", "free")):
            operators = (replace(one, libraries=()) for one in _OPERATORS)
            found += (*_of_c(prefix), *_of_jemalloc(prefix, ()), *operators)
    if any(names("mi_malloc")) and any(names("mi_free")):
        found += (replace(one, libraries=()) for one in _OWN_FUNCTIONS if one.libraries == _MIMALLOC)
    return Spec("embedded", tuple(found), source="built in") if found else None


HEAP = Spec(
    "heap",
    (
        _alloc("malloc", argument(0)),
        _alloc("calloc", argument(1), count=argument(0)),
        _realloc("realloc", argument(1)),
        _realloc("reallocarray", argument(2), count=argument(1)),
        _posix_memalign(),
        _aligned("aligned_alloc", argument(0), argument(1)),
        _aligned("memalign", argument(0), argument(1)),
        _alloc("valloc", argument(0)),
        _alloc("pvalloc", argument(0)),
        _free("free"),
        _free("cfree"),
        _free("free_sized"),
        _free("free_aligned_sized"),
        *_OPERATORS,
        *_OWN_FUNCTIONS,
    ),
    description="Blocks of malloc and its relatives",
    source="built in",
)

MAPPINGS = Spec(
    "mappings",
    (
        _mapping("mmap", Operation.MAP, argument(1), count=argument(3, width=4)),
        _mapping("mmap64", Operation.MAP, argument(1), count=argument(3, width=4)),
        _mapping("munmap", Operation.UNMAP, argument(1), type_name="munmap"),
        _mapping("mremap", Operation.REMAP, argument(2), count=argument(1), type_name="mremap"),
    ),
    description="Mappings of mmap, munmap and mremap",
    source="built in",
)
