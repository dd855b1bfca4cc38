"""The files of the C library, by name: patterns to be matched as a whole."""

from __future__ import annotations

from tracer.late_patterns import late_pattern

LIBC = late_pattern(r"libc\.so\.6|libc-[\d.]+\.so|libpthread[.-].*")
MUSL = late_pattern(r"ld-musl\S*|libc\.musl\S*")
LOADER = late_pattern(r"ld-linux\S*|ld-[\d.]+\.so")
"""glibc's loader alone: musl's is its libc too, and calls of it may be the user's."""
BELOW_MAIN = "(below main)"
"""What valgrind calls, in a program that has no symbol `main`, the function of libc that called it."""
STARTS = ("__libc_start_main", "__libc_start_call_main", "generic_start_main")
"""Those functions (VG_(get_fnname_kind), coregrind/m_debuginfo/debuginfo.c)."""
