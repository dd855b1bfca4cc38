"""Known one-off allocations of the runtime libraries: data, each with its reason.

They are made once, kept on purpose, and are no mistake of the program. Each rule looks at the frames from the leaf,
past the allocator's own, so that memory which a library hands to its caller is never meant: `strdup`, `fopen`,
`getline`, `iconv_open`, `newlocale` and their likes match no rule. `__libc_start_main` has none either: a `main`
that ends in a tail call of `malloc` looks the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import takewhile

from tracer.analysis.qualified_name import qualified_name
from tracer.analysis.runtime import is_allocator, is_heap, is_machinery
from tracer.late_dataclasses import dataclass
from tracer.late_patterns import late_pattern
from tracer.model.c_library_names import LIBC, LOADER, MUSL
from tracer.model.findings import REACHABLE, FrameList, Leak
from tracer.model.frames import Frame

_LOOP = Frame(None, "python3")
"""What a frame of a script stands for: the interpreter's loop that runs it."""
BUILT_IN = "built-in:"
"""Begins the names of these rules in reports."""


@dataclass(frozen=True)
class Matcher:
    """Tells of the frames from the allocator's caller outwards."""

    first: Callable[[Frame], bool]
    """Whether the caller itself permits a match: most rules are out by this."""
    whole: Callable[[FrameList], bool] = lambda stack: True


@dataclass(frozen=True)
class OneOff:
    name: str
    reason: str
    matcher: Matcher
    kinds: tuple[str, ...] = ("allocation",)

    def __str__(self) -> str:
        return BUILT_IN + self.name


def one_off(leak: Leak) -> OneOff | None:
    """Return the first rule that knows where an entry was allocated."""
    if leak.kind == "reference":
        return None
    leaf = next((i for i, frame in enumerate(leak.stack) if not is_allocator(frame)), len(leak.stack))
    if leak.kind == "mapping" and any(map(is_heap, leak.stack[:leaf])):
        return _HEAP
    stack = leak.stack[leaf:]
    if not stack:
        return None
    caller = _LOOP if stack[0].language == "Python" and stack[0].kind == "guest" else stack[0]
    possible = _possible(caller.function, caller.module)
    return next((rule for rule in possible if leak.kind in rule.kinds and rule.matcher.whole(stack)), None)


@cache
def _possible(function: str | None, module: str | None) -> tuple[OneOff, ...]:
    """Return the rules that an allocator's caller permits."""
    frame = Frame(function, module)
    return tuple(rule for rule in ONE_OFFS if rule.matcher.first(frame))


def is_of_python(frame: Frame) -> bool:
    return (frame.kind == "guest" and frame.language == "Python") or _in(frame, _PYTHON)


def keeps_to_itself(rule: OneOff, leak: Leak) -> bool:
    """Tell whether a rule sets an entry aside: not arenas that a script filled, where they are no leak anyhow."""
    if rule.name != _PYTHON_ARENAS or (leak.state == "leaked" and leak.reachability != REACHABLE):
        return True
    return all(frame.kind != "guest" or is_machinery(frame) for frame in leak.stack)


def _in(frame: Frame, modules: re.Pattern[str]) -> bool:
    return frame.module is not None and modules.fullmatch(frame.module) is not None


def caller(functions: str) -> Matcher:
    """Match where the allocator's caller is one of these functions (a regular expression), in whatever binary."""
    pattern = late_pattern(functions)
    return Matcher(lambda frame: frame.function is not None and pattern.fullmatch(frame.function) is not None)


def caller_in(modules: re.Pattern[str]) -> Matcher:
    """Match where the allocator's caller is code of these binaries."""
    return Matcher(lambda frame: _in(frame, modules))


def inside(modules: re.Pattern[str], functions: str) -> Matcher:
    """Match where the allocator's caller is internal to these binaries: has no name (exported ones do), or is one of
    these functions."""
    pattern = late_pattern(functions)
    return Matcher(
        lambda frame: _in(frame, modules)
        and (frame.function is None or pattern.fullmatch(frame.function) is not None)
    )


def way_to(functions: str, modules: re.Pattern[str], least: int = 1) -> Matcher:
    """Match where all frames up to one of these functions are code of these binaries, and at least `least` of them.

    Frames of a script stand for the interpreter's loop, which runs them.
    """
    pattern = late_pattern(functions)

    def matches(stack: FrameList) -> bool:
        for depth, frame in enumerate(stack, start=1):
            if not _in(frame, modules) and not (frame.kind == "guest" and modules is _PYTHON):
                return False
            if frame.kind != "guest" and frame.function is not None and pattern.fullmatch(frame.function):
                return depth >= least
        return False

    return Matcher(lambda frame: _in(frame, modules), matches)


def constructor_of(modules: re.Pattern[str], most: int) -> Matcher:
    """Match where at most `most` frames of these binaries were called by the loader: they initialize themselves."""

    def matches(stack: FrameList) -> bool:
        depth = next((i for i, frame in enumerate(stack) if not _in(frame, modules)), len(stack))
        return 1 <= depth <= most and depth < len(stack) and _in(stack[depth], LOADER)

    return Matcher(lambda frame: _in(frame, modules), matches)


def own_memory(modules: re.Pattern[str], handed_out: str, users: re.Pattern[str] | None = None) -> Matcher:
    """Match where these binaries allocate for themselves: none of the functions that hand memory to their caller is on
    the way, or the caller is one of `users`. What libc copies for them counts as theirs."""
    pattern = late_pattern(handed_out)

    def first(frame: Frame) -> bool:
        return _in(frame, modules) or (_in(frame, LIBC) and frame.function in _COPIES)

    def matches(stack: FrameList) -> bool:
        inner = stack if _in(stack[0], modules) else stack[1:]
        own = list(takewhile(lambda frame: _in(frame, modules), inner))
        names = (qualified_name(frame.function) for frame in own if frame.function)
        if not own or not any(pattern.fullmatch(name) for name in names):
            return bool(own)
        return users is not None and len(own) < len(inner) and _in(inner[len(own)], users)

    return Matcher(first, matches)


_COPIES = ("strdup", "__strdup", "strndup", "__strndup")
_LIBSTDCXX = late_pattern(r"libstdc\+\+\.so\b.*")
_GLIB = late_pattern(r"lib(glib|gobject|gio|gmodule|gthread)-2\.0\.so.*")
_PYTHON = late_pattern(r"python3(\.\d+)?|libpython3[\w.]*\.so.*")
_JAVA = late_pattern(r"lib(jvm|jli|jimage)\.so")
_JDK = late_pattern(r"lib(java|net|nio|zip|verify|management(_ext)?|instrument|extnet|prefs|jdwp)\.so")
_SANITIZER = late_pattern(r"lib(a|hwa|l|t|ub)san\.so.*")
_JAVA_HANDS_OUT = (
    r"Unsafe_(Allocate|Reallocate)Memory0?|jni_Get\w*(Chars|Critical|Elements)\w*|jni_New(Weak)?GlobalRef"
    r"|(JvmtiEnv(Base)?|JNI)::\w+|jvmti_\w+"
)
_STATIC_RESULTS = (
    r"(get|set|end)(pw|gr|sp|serv|proto|host|net|rpc|mnt)ent"
    r"|get(pwnam|pwuid|grnam|grgid|spnam|servbyname|servbyport|protobyname|protobynumber)(_r)?"
    r"|gethostby(name|name2|addr)(_r)?|getgrouplist|initgroups|getlogin(_r)?|ttyname"
)

_PYTHON_ARENAS = "python-arenas"
_BOTH = ("allocation", "mapping")
_HEAP = OneOff("heap", "what an allocator maps to cut blocks from; the blocks themselves are judged",
               Matcher(lambda frame: False), ("mapping",))

ONE_OFFS: tuple[OneOff, ...] = (
    _HEAP,
    OneOff("stdio-buffer", "a stream keeps its buffer until it is closed; the stream itself is judged",
           caller(r"_IO_w?file_doallocate")),
    OneOff("libstdc++-pool", "the reserve for exceptions that are thrown when memory has run out",
           constructor_of(_LIBSTDCXX, 3)),
    OneOff("libstdc++-pool-static", "the reserve for exceptions, in a static executable",
           caller(r"_GLOBAL__sub_I_eh_alloc\.cc|(\(anonymous namespace\)|__gnu_cxx)::pool::pool\(.*")),
    OneOff("loader", "the dynamic loader's books of what is loaded, and thread-local storage", caller_in(LOADER)),
    OneOff("loader-static", "the loader's books inside a static executable",
           caller(r"_dl_\w+|__libc_setup_tls|__tls_get_addr|allocate_dtv")),
    OneOff("musl-pages", "pages of musl's allocator, and libraries that its loader maps",
           inside(MUSL, r"(__malloc_)?alloc_(meta|group|slot)|__expand_heap|map_library|load_library"), ("mapping",)),
    OneOff("dlerror", "the text of the last dlerror, one a thread", way_to(r"dlerror|_dlerror_run", LIBC)),
    OneOff("thread-exit", "the list of destructors that a thread runs as it ends",
           caller(r"__cxa_thread_atexit_impl")),
    OneOff("exit-handlers", "the list of functions to call at exit",
           way_to(r"__cxa_atexit|__cxa_at_quick_exit|on_exit|atexit|__register_atfork|pthread_atfork", LIBC)),
    OneOff("thread", "stacks and storage of threads, cached for the next one",
           way_to(r"pthread_create", LIBC), _BOTH),
    OneOff("thread-specific", "the second level of the table of thread-specific values",
           way_to(r"(__)?pthread_setspecific|tss_set", LIBC)),
    OneOff("libc-start", "libc's own start", way_to(r"__libc_init_first|__libc_early_init|__libc_init_secure", LIBC)),
    OneOff("locale", "the data of the locale in use", way_to(r"setlocale", LIBC), _BOTH),
    OneOff("locale-data", "a locale's tables, mapped once and kept for whoever asks for it next",
           way_to(r"newlocale|_nl_(find|load)_locale(_from_archive)?", LIBC), ("mapping",)),
    OneOff("messages", "translated messages, kept for the next question",
           way_to(r"(__)?d?c?n?gettext|(__)?dc?gettext|(bind_)?textdomain(_codeset)?|bindtextdomain"
                  r"|_nl_(load_domain|find_domain|find_msg)|__dcigettext", LIBC), _BOTH),
    OneOff("time-zone", "the rules of the time zone in use",
           way_to(r"tzset|(__)?(localtime|gmtime)(_r)?|mktime|timelocal|ctime(_r)?|w?strftime(_l)?"
                  r"|wcsftime(_l)?|__strftime_internal|__mktime_internal|__tz\w+|tzset_\w+", LIBC)),
    OneOff("message-buffer", "the buffer behind the last answer", way_to(r"strerror(_l)?|strsignal|perror", LIBC)),
    OneOff("name-service", "services that answer questions about users, groups and hosts, and their last answers",
           way_to(_STATIC_RESULTS + r"|__nss_\w+|__res_(n?init|iclose|nclose)|res_n?init|__resolv_\w+"
                  r"|__nscd_get_\w+", LIBC), _BOTH),
    OneOff("character-sets", "the table of character set conversions; the descriptor itself is judged",
           way_to(r"__gconv_open", LIBC, least=2)),
    OneOff("character-set-books", "the table of character set conversions",
           way_to(r"__gconv_(get_\w+|load_\w+|read_\w+|find_\w+|lookup_\w+|compare_\w+)", LIBC), _BOTH),
    OneOff("last-words", "what libc says before it ends the process",
           way_to(r"__libc_(message|fatal)\w*|malloc_printerr\w*|__assert(_perror)?(_fail)?(_base)?|__fortify_fail\w*"
                  r"|__chk_fail|__stack_chk_fail", LIBC), _BOTH),
    OneOff("last-words-static", "what libc says before it ends the process, in a static executable",
           caller(r"__libc_(message|fatal)\w*"), _BOTH),
    OneOff("backtrace", "libgcc, loaded for the first stack trace", way_to(r"backtrace", LIBC)),
    OneOff("glib-start", "GLib and GObject initialize themselves", constructor_of(_GLIB, 40)),
    OneOff("glib-quarks", "interned strings live as long as the process",
           way_to(r"g_quark_\w+|g_intern_(static_)?string", _GLIB)),
    OneOff("glib-types", "registered types live as long as the process",
           way_to(r"g_type_(register_\w+|add_interface_\w+|class_ref|init\w*|default_interface_ref|ensure)"
                  r"|g_(enum|flags|boxed|pointer)(_type)?_register_\w+|g_signal_newv?", _GLIB)),
    OneOff("glib-threads", "one record for each thread",
           way_to(r"g_thread_self|g_private_(get|set|replace)|g_main_context_default", _GLIB)),
    OneOff("python-start", "the interpreter's own objects, which it does not free at exit",
           way_to(r"Py_Initialize(Ex|FromConfig)?|_Py_InitializeMain|Py_Finalize(Ex)?", _PYTHON)),
    OneOff("python-books", "interned strings, types and modules live until exit",
           way_to(r"_?PyUnicode_Intern\w+|PyType_Ready|PyImport_Import\w*", _PYTHON)),
    OneOff("java", "heaps, code and books of Java's virtual machine, whose pointers are compressed or biased",
           own_memory(_JAVA, _JAVA_HANDS_OUT, _JDK), _BOTH),
    OneOff("sanitizer", "a sanitizer's own books and debug information",
           own_memory(_SANITIZER, r"_*interceptor_\w+|mmap(64)?"), _BOTH),
    OneOff("go-runtime", "the heap and the books of Go's runtime, which collects what is in them",
           caller(r"x_cgo_(mmap|thread_start)"), _BOTH),  # of runtime/cgo: the code of Go itself maps past libc
    OneOff(_PYTHON_ARENAS, "arenas of the interpreter's pools",
           way_to(r"_?Py(Object|Mem)_(Malloc|Calloc|Realloc)|_PyObject_(Arena\w+|New|GC_\w+)", _PYTHON), ("mapping",)),
)  # fmt: skip
