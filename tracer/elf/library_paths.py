"""Library paths of a dynamic loader, as rules: ld.so(8) of glibc 2.36, dynlink.c of musl 1.2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tracer.late_patterns import late_pattern

DEFAULT_FOLDERS = (
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
)  # fmt: skip
"""Of Debian's glibc and then of others: only the loader knows its own, and a library for another machine is no find."""
MUSL_FOLDERS = ("/lib", "/usr/local/lib", "/usr/lib")
MUSL_OWN = late_pattern(r"lib(c|pthread|rt|m|dl|util|xnet)\.so")
"""Libraries that musl's loader is itself."""
PRELOAD_FILE = "/etc/ld.so.preload"

_TOKEN = late_pattern(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
_LIB = ("lib/x86_64-linux-gnu", "lib64", "lib")
_PLATFORM = ("haswell", "xeon_phi", "x86_64")
_MUSL_LOADER = late_pattern(r"(.*?)(?:/[^/]*)?/ld-musl-([a-z0-9_]+)\.so\.1")

_LEVEL_2 = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}
_LEVEL_3 = _LEVEL_2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_LEVEL_4 = _LEVEL_3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_LEVELS = (("x86-64-v4", _LEVEL_4), ("x86-64-v3", _LEVEL_3), ("x86-64-v2", _LEVEL_2))
CPU_FILE = "/proc/cpuinfo"
_FLAGS_BYTES = 8192


@cache
def processor_levels() -> tuple[str, ...]:
    """Return the folders of glibc-hwcaps that are for this processor, the best first (x86-64 psABI, section 3.1.1)."""
    with open(CPU_FILE, encoding="ascii", errors="replace") as file:
        text = file.read(_FLAGS_BYTES)  # of the first processor: each one costs the kernel time
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    flags = set(line.split())
    return tuple(name for name, needs in _LEVELS if needs <= flags)


def with_levels(folder: str) -> tuple[str, ...]:
    """Return a folder of libraries after those below it for newer processors."""
    return (*(f"{folder}/glibc-hwcaps/{level}" for level in processor_levels()), folder)


def expanded(text: str, origin: str | None) -> Iterator[str]:
    """Yield what $ORIGIN, $LIB and $PLATFORM make of a path: all that they can be, since only the loader knows.

    `origin` is the folder of the binary that names the path; nothing comes of what needs it if it is not known.
    """
    names = {match[1] or match[2] for match in _TOKEN.finditer(text)}
    if "ORIGIN" in names and origin is None:
        return
    for library in _LIB if "LIB" in names else ("",):
        for platform in _PLATFORM if "PLATFORM" in names else ("",):
            yield _replaced(text, {"ORIGIN": origin or "", "LIB": library, "PLATFORM": platform})


def _replaced(text: str, values: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda match: values[match[1] or match[2]], text)


def folders_of(text: str, origin: str | None, separators: str = ":") -> Iterator[str]:
    """Yield the folders of a list, as in DT_RUNPATH; an empty one is the working directory."""
    for item in re.split(f"[{separators}]", text) if text else ():
        for folder in expanded(item or ".", origin):
            yield folder.rstrip("/") or "/"


def preloaded(text: str) -> list[str]:
    """Return the libraries that LD_PRELOAD names."""
    return re.split(r"[\s:]+", text.strip(" \t\n:")) if text.strip(" \t\n:") else []


def preloaded_by_file(text: str) -> list[str]:
    """Return the libraries that /etc/ld.so.preload names."""
    return preloaded(" ".join(line.partition("#")[0] for line in text.splitlines()))


def musl_list(loader: str) -> str | None:
    """Return the path of the file that names the folders of a musl loader; None where it is no musl loader."""
    match = _MUSL_LOADER.fullmatch(loader)
    return f"{match[1]}/etc/ld-musl-{match[2]}.path" if match else None


def musl_folders(text: str) -> list[str]:
    """Return the folders of that file."""
    return [Path(line).as_posix() for line in re.split("[:\n]", text) if line]
