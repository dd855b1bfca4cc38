"""Runtime frames, the machinery under a program: allocators, stubs, C and C++ runtimes."""

from __future__ import annotations

from functools import cache

from tracer.analysis.qualified_name import qualified_name
from tracer.late_patterns import late_pattern
from tracer.model.allocator_names import ALLOCATORS
from tracer.model.frames import Frame

_ALLOCATOR_FUNCTION = late_pattern(
    r"(__libc_|__GI_|__|je_|_rjem_|tc_|mi_|_int_|_PyMem_Raw)?"
    r"(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc|free"
    r"|mmap|mmap64|mremap|munmap|malloc_usable_size|Malloc|Calloc|Realloc)(@.*)?"
    r"|(je_|_rjem_)?(mallocx|rallocx|s?dallocx)|mi_(zalloc|mallocn|new|reallocf|rezalloc|recalloc|cfree|free_size)\w*"
    r"|mi_(m|c|re)alloc(n|_small|_aligned(_at)?)"
    r"|operator (new|delete)(\[\])?(\(.*)?|_Zn[wa].*|_Zd[la].*"
    r"|(__rustc::)?__(rust_(alloc|realloc|alloc_zeroed)|rdl_.*|rg_.*)"
    r"|sysmalloc(_mmap)?|(alloc_)?new_heap|arena_get2|tcache_init|ptmalloc_init|(_rjem_)?(je_|os_)?pages_map"
)
_OUTLINED = late_pattern(r"(\.(part|isra|constprop|cold|lto_priv)(\.\d+)?)+$")
"""What a compiler adds to the name of a function that it took apart or specialized."""
_HEAP_FUNCTION = late_pattern(
    r"(__libc_|__GI_|__|je_|_rjem_|tc_|mi_|_int_)?"
    r"(malloc|calloc|realloc|reallocarray|memalign|aligned_alloc|posix_memalign|valloc|pvalloc|free)(@.*)?"
    r"|sysmalloc(_mmap)?|new_heap|alloc_new_heap|arena_get2|tcache_init|ptmalloc_init|heap_trim|systrim"
    r"|(_rjem_)?(je_|os_)?pages_map"
)
_MAPPING_CALLS = ("mmap", "mmap64", "mremap")
_WRAPPER_FUNCTION = late_pattern(
    r"(do_x|safe_|s|e|_e|x|xx|z|ztry|ck_?)?(malloc|mallocz|calloc|callocz|realloc|reallocarray|zalloc|memalign)(_usable|_num)?"
    r"|(x|z|e|_e|safe_)(strdup|strndup|memdup|memdupz|strcpy|mmap|alloc_array)|x[nz]?(n?malloc|alloc)|xpalloc|ximemdup0?"
    r"|sqlite3_?(Db|Mem)?_?(M|m)alloc(Zero|Raw|RawNN|RawNNTyped|64)?|sqlite3_?(Db)?_?(R|r)ealloc(64)?|sqlite3DbStrN?Dup"
    r"|sqlite3Mem(Malloc|Realloc)|mallocWithAlarm|dbMallocRawFinish"
    r"|av_(malloc|mallocz|calloc|realloc|realloc_f|realloc_array|malloc_array|mallocz_array|memdup|strdup|fast_malloc)"
    r"|(CRYPTO|OPENSSL)_(malloc|zalloc|calloc|realloc|clear_realloc|memdup|strdup|strndup|malloc_array)"
    r"|_?Py(Mem|Object)_(Raw)?(Malloc|Calloc|Realloc|New)|_PyMem_(Raw|Debug)?\w*(Malloc|Calloc|Realloc)|_PyObject_\w*Alloc"
    r"|_?PyMem_(Raw)?(Wcs|Str)dup"
    r"|Perl_(safesys)?(malloc|calloc|realloc)|Perl_save(shared)?pvn?|ruby_x(malloc2?|calloc|realloc2?)"
    r"|Tcl(p|_)(Attempt)?(Alloc|Realloc)"
    r"|NRT_(Allocate(_External)?|Reallocate|MemInfo_(varsize_)?(re)?alloc\w*|MemInfo_new(_varsize)?(_dtor)?)"
    r"|nrt_allocate_\w+|ngx_(alloc|calloc|memalign)|apr_(palloc|pcalloc)|bfd_(z?malloc|z?alloc|realloc)|php_?(m|c|re)alloc|_em?alloc"
    r"|g_(try_)?(malloc|malloc0|realloc|malloc_n|malloc0_n|realloc_n)|g_slice_alloc0?|g_str(n)?dup|g_memdup2?"
    r"|g_(free(_sized)?|slice_free1|clear_pointer)|(__)?zfree|xfree|av_freep?|CRYPTO_free|sqlite3_?free|sqlite3DbFree(NN)?"
)
_JAVA_MODULE = "libjvm.so"
_JAVA_WRAPPER = late_pattern(
    r"os::(pd_)?(malloc|realloc|strdup(_check_oom)?|(try_)?(reserve|commit|uncommit|map|attempt_reserve)_memory\w*)"
    r"|(Allocate|Reallocate)Heap|ResourceArea::\w+|(resource_)?(re)?allocate_bytes"
    r"|(Arena|Chunk|ChunkPool|AllocateHeap)::(allocate\w*|grow|Arena|Amalloc\w*|operator)"
    r"|(CHeapObj\w*|ResourceObj|AnyObj|ArenaObj|StackObj)::operator|ArrayAllocator::\w+|anon_mmap\w*"
)
_STUB_FUNCTION = late_pattern(r"__refcnt__\w+|refcnt__\w+")
_LIBRARY_SCOPES = ("std::", "__gnu_cxx::", "__cxxabiv1::", "core::", "alloc::", "hashbrown::")
_LIBRARY_FUNCTION = late_pattern(
    r"<(alloc|core|std)::.*|<.* as core::alloc::global::GlobalAlloc>::\w+"
    r"|__libc_start_(call_)?main(_impl)?|__libc_csu_init|_start|_dl_\w+|start_thread|clone3?|__clone3?"
    r"|(__)?(strdup|strndup|asprintf|vasprintf|getline|getdelim|fopen|fopen64|fdopen|opendir|realpath)"
    r"|_IO_\w+"
)
ALLOCATOR_MODULE = late_pattern(rf"lib({'|'.join(ALLOCATORS)})\w*\b.*")
_RUNTIME_MODULE = late_pattern(
    r"libc\.so(\.6)?|libc-[\d.]+\.so|ld-linux\S*|ld-[\d.]+\.so|ld-musl\S*|libc\.musl\S*"
    r"|lib(stdc\+\+|c\+\+|c\+\+abi|gcc_s|pthread|dl|rt)[.-].*|linux-vdso\S*|\[vdso\]"
)
_INTERPRETER_MODULE = late_pattern(
    r"(lib)?python[\d.]+[a-z]*(\.so[\d.]*)?|(lib)?lua(jit)?[\d.-]*(c\+\+)?(\.so[\d.]*)?|libffi\.so.*|_ctypes\..*\.so"
    r"|node(js)?|libnode\.so.*"
)
_SYSTEM_LIBRARY = late_pattern(r"(/usr)?/lib(32|64|x32|exec)?/.+")
"""Not /usr/local and /opt, where one's own are put."""
_SYSTEM_HEADERS = ("/usr/include/", "/usr/lib/")
"""Functions of theirs are compiled into programs."""
_FROZEN = "<frozen "
"""What CPython says of modules that are part of it: importlib, site, ..."""
_OF_NODE = "node:"
"""What node says of modules that are part of it."""


@cache
def _is_allocator(function: str | None, module: str | None) -> bool:
    named = function is not None and _ALLOCATOR_FUNCTION.fullmatch(_OUTLINED.sub("", function)) is not None
    return named or (module is not None and ALLOCATOR_MODULE.fullmatch(module) is not None)


def is_allocator(frame: Frame) -> bool:
    """Tell whether a frame is the allocator itself: its function by name, or a library that is nothing else."""
    return frame.kind != "guest" and _is_allocator(frame.function, frame.module)


@cache
def _is_heap(function: str | None, module: str | None) -> bool:
    if function in _MAPPING_CALLS:  # tcmalloc has its own, which programs call
        return False
    named = function is not None and _HEAP_FUNCTION.fullmatch(function.split(".", 1)[0]) is not None
    return named or (module is not None and ALLOCATOR_MODULE.fullmatch(module) is not None)


def is_heap(frame: Frame) -> bool:
    """Tell whether a frame is an allocator of blocks, which mmap is not."""
    return frame.kind != "guest" and _is_heap(frame.function, frame.module)


@cache
def _is_machinery(function: str | None, module: str | None) -> bool:
    if module is not None and _RUNTIME_MODULE.fullmatch(module):
        return True
    if function is None:
        return False
    if module == _JAVA_MODULE and _JAVA_WRAPPER.fullmatch(qualified_name(function)):
        return True
    if any(p.fullmatch(function) for p in (_STUB_FUNCTION, _WRAPPER_FUNCTION, _LIBRARY_FUNCTION)):
        return True
    return "::" in function and qualified_name(function).startswith(_LIBRARY_SCOPES)


def is_machinery(frame: Frame) -> bool:
    """Tell whether a frame is an allocator, a stub or part of a language's runtime, thus never the user's own."""
    if frame.kind == "guest":
        return (frame.file or "").startswith(_FROZEN)
    if frame.language == "JavaScript":
        return (frame.file or "").startswith(_OF_NODE)
    return is_allocator(frame) or _is_machinery(frame.function, frame.module)


def is_distributed(frame: Frame) -> bool:
    """Tell whether a frame is code of a library of the system or of its headers, which its user did not write."""
    if frame.kind == "guest":
        return False
    if (frame.file or "").startswith(_SYSTEM_HEADERS):
        return True
    return _is_system_library(frame.path, frame.module)


@cache
def _is_system_library(path: str | None, module: str | None) -> bool:
    if path is None or module is None or ".so" not in module:
        return False
    return _SYSTEM_LIBRARY.fullmatch(path) is not None


def is_interpreter(frame: Frame) -> bool:
    """Tell whether a frame is that of an interpreter's own code, which no user looks at who sees the script's."""
    return frame.kind != "guest" and frame.module is not None and _is_of_interpreter(frame.module)


@cache
def _is_of_interpreter(module: str) -> bool:
    return _INTERPRETER_MODULE.fullmatch(module) is not None
