"""Make the library of --preload, by the system's C compiler when it is first needed, and keep it.

It stands beside the cache and not in it: whoever a target runs as must be able to read it, and as long as a child of
it lives. $LIB in its path is what keeps the loader of another kind of program from complaining of it: where that looks,
a 32-bit one finds an empty library for itself, if the compiler can make one; that of musl knows no $LIB, and goes on.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tracer.errors import CannotWrite, UsageError
from tracer.files.cache_folder import read_own, write_shared
from tracer.model.preload_names import SONAME, PreloadLibrary

_SOURCES = ("library.c", "wrappers.S")
_SAMPLER = ("sampling.c", "draws.h", "abi.h", "verifier.h")
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = (
    "-O2", "-fPIC", "-shared", "-nostdlib", "-fcf-protection", "-fno-stack-protector", "-fno-builtin",
    "-ftls-model=initial-exec",
    f"-Wl,-soname,{SONAME}", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,--build-id=sha1",
)  # fmt: skip
_EMPTY_32 = ("-m32", "-shared", "-nostdlib", "-x", "c", "/dev/null", f"-Wl,-soname,{SONAME}")
_LOADER = "/lib64/ld-linux-x86-64.so.2"
_FOLDERS_32 = ("lib/i386-linux-gnu", "lib", "lib32")
_SECONDS = 60


def preload_library(cache: Path, source: Path, sampler: Path, sample_bytes: int) -> PreloadLibrary:
    """Return the library, which is made if it is not there. `source`, `sampler`: folders of its sources and of those
    that it shares with the kernel side; `sample_bytes`: as of --sample-bytes.

    Raises UsageError where there is no compiler, or it fails; CannotWrite.
    """
    flags = [*_FLAGS, *([f"-DREFLEAK_SAMPLE_BYTES={sample_bytes}", f"-I{sampler}"] if sample_bytes else [])]
    sources = [source / name for name in _SOURCES] + ([source / _SAMPLER[0]] if sample_bytes else [])
    headers = [sampler / name for name in _SAMPLER[1:]] if sample_bytes else []
    folder = cache.with_name(f"{cache.name}-preload") / _key(flags, [*sources, *headers])
    path = folder / _lib() / SONAME
    try:
        if not _is_there(path):
            _make(path, folder, flags, sources)
    except OSError as error:
        raise CannotWrite(f"cannot keep the library of --preload in {folder}: {error.strerror}") from None
    return PreloadLibrary(os.path.realpath(path), f"{folder}/$LIB/{SONAME}", sample_bytes > 0)


def is_open_to_all(path: str) -> bool:
    """Tell whether every user may read a file, through all folders above it."""
    try:
        above = all(folder.stat().st_mode & stat.S_IXOTH for folder in Path(path).parents)
        return above and bool(Path(path).stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    """Tell whether it was made before; raises OSError where somebody else could have written it."""
    try:
        return bool(read_own(path))
    except FileNotFoundError:
        return False


def _make(path: Path, folder: Path, flags: Sequence[str], sources: Sequence[Path]) -> None:
    compiler = _find_compiler()
    write_shared(path, _compiled([compiler, *flags, *map(str, sources)]))
    with suppress(UsageError):  # few systems have 32-bit programs, and few compilers make them
        empty = _compiled([compiler, *_EMPTY_32])
        for name in _FOLDERS_32:
            if name != _lib():
                write_shared(folder / name / SONAME, empty)


def _find_compiler() -> str:
    for name in _COMPILERS:
        for directory in os.get_exec_path():
            if os.access(path := f"{directory}/{name}", os.X_OK):
                return path
    raise UsageError(
        "--preload needs a C compiler, to make its library when it is first used",
        "install gcc or clang, or leave --preload out",
    )


def _compiled(command: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / SONAME
        try:
            done = subprocess.run(
                [*command, "-o", str(output)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"{command[0]} cannot make the library of --preload: {error}", _HINT) from None
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it failed"])[0]
            raise UsageError(f"{command[0]} cannot make the library of --preload: {said}", _HINT)
        return output.read_bytes()


_HINT = "leave --preload out"


def _lib() -> str:
    """Return what $LIB stands for in the loader of 64-bit programs: where it is itself, below / or /usr."""
    folder = str(Path(_LOADER).resolve().parent).removeprefix("/usr").strip("/")
    return folder if folder.startswith("lib") else "lib64"


def _key(flags: Sequence[str], files: Sequence[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (*flags, *_EMPTY_32, *(path.read_text() for path in files)):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()
