"""C++ programs of the distribution, all of which free as they should: `python -m cpp_programs` traces all and says what
was told of each, under libc, jemalloc, tcmalloc and mimalloc. It prints the table of docs/heap-errors.md.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[3]
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
ALLOCATORS = {
    "libc": None, "jemalloc": LIBRARIES / "libjemalloc.so.2", "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
    "mimalloc": LIBRARIES / "libmimalloc.so.2",
}  # fmt: skip
BINARY = "/usr/bin/eu-nm"
QML = str(Path(__file__).with_name("quits.qml"))
QT = Path(__file__).with_name("qt")
PROGRAMS: Mapping[str, Sequence[str]] = {
    "qml": ("/usr/lib/qt5/bin/qml", "-platform", "offscreen", QML),
    "qtdiag": ("/usr/lib/qt5/bin/qtdiag", "-platform", "offscreen"),
    "qtpaths": ("/usr/lib/qt5/bin/qtpaths", "--paths", "DataLocation"),
    "lupdate": ("/usr/lib/qt5/bin/lupdate", "-silent", QML, "-ts", "/dev/stdout"),
    "moc": ("/usr/lib/qt5/bin/moc", f"{QT}/widget.h"),
    "uic": ("/usr/lib/qt5/bin/uic", f"{QT}/window.ui"),
    "rcc": ("/usr/lib/qt5/bin/rcc", f"{QT}/files.qrc"),
    "lconvert": ("/usr/lib/qt5/bin/lconvert", "-of", "po", "-o", "/dev/stdout", f"{QT}/words.ts"),
    "lrelease": ("/usr/lib/qt5/bin/lrelease", "-silent", f"{QT}/words.ts", "-qm", "/dev/null"),
    "qdbuscpp2xml": ("/usr/lib/qt5/bin/qdbuscpp2xml", f"{QT}/widget.h"),
    "qdbusxml2cpp": ("/usr/lib/qt5/bin/qdbusxml2cpp", "-p", "-", f"{QT}/widget.xml"),
    "qtplugininfo": ("/usr/lib/qt5/bin/qtplugininfo", f"{LIBRARIES}/qt5/plugins/platforms/libqoffscreen.so"),
    "qmake": ("/usr/lib/qt5/bin/qmake", "-query"),
    "qhelpgenerator": ("/usr/lib/qt5/bin/qhelpgenerator", "-v"),
    "pixeltool": ("/usr/lib/qt5/bin/pixeltool", "-platform", "offscreen", "--help"),
    "sqlitebrowser": ("sqlitebrowser", "-platform", "offscreen", "--quit"),
    "lximage-qt": ("timeout", "20", "lximage-qt", "-platform", "offscreen"),
    "qterminal": ("qterminal", "-platform", "offscreen", "-e", "true"),
    "qpdfview": ("qpdfview", "-platform", "offscreen", "--help"),
    "featherpad": ("featherpad", "--version"),
    "node": ("node", "-e", "let a = []; for (let i = 0; i < 2e3; i++) a.push({i}); JSON.stringify(a).length"),
    "node threads": ("node", "-e", "new (require('worker_threads').Worker)('setTimeout(() => 0, 1)', {eval: true})"),
    "cmake": ("cmake", "--help-command-list"),
    "ctest": ("ctest", "--version"),
    "ninja": ("ninja", "--version"),
    "gdb": ("gdb", "-nx", "-batch", "-ex", "info functions main", BINARY),
    "clang": ("clang-14", "-fsyntax-only", "-x", "c++", "/dev/null"),
    "clang-format": ("clang-format-14", "-style=LLVM", __file__),
    "llc": ("llc-14", "-o", "/dev/null", "/dev/null"),
    "opt": ("opt-14", "-O2", "-o", "/dev/null", "/dev/null"),
    "lli": ("lli-14", "--version"),
    "lld": ("ld.lld-14", "--help"),
    "llvm-mc": ("llvm-mc-14", "-filetype=obj", "-o", "/dev/null", "/dev/null"),
    "llvm-nm": ("llvm-nm-14", "-D", BINARY),
    "llvm-objdump": ("llvm-objdump-14", "-d", BINARY),
    "llvm-dwarfdump": ("llvm-dwarfdump-14", "--eh-frame", BINARY),
    "llvm-readobj": ("llvm-readobj-14", "-a", BINARY),
    "llvm-symbolizer": ("llvm-symbolizer-14", "-e", BINARY, "0x3000"),
    "llvm-cxxfilt": ("llvm-cxxfilt-14", "_ZNSt6vectorIiSaIiEE9push_backEOi"),
    "ld.gold": ("ld.gold", "--help"),
    "groff": ("grotty", "-F/usr/share/groff/current/font", "/dev/null"),
    "apt-config": ("apt-config", "dump"),
    "apt-cache": ("apt-cache", "policy", "bash"),
    "apt-get": ("apt-get", "-s", "-o", "Debug::NoLocking=1", "install", "bash"),
    "apt-mark": ("apt-mark", "showmanual"),
    "lto-dump": ("lto-dump-12", "--help"),
    "bpftrace": ("bpftrace", "--version"),
    "ctags": ("ctags", "-f", "-", __file__),
    "appstreamcli": ("appstreamcli", "--version"),
    "eu-nm": ("eu-nm", "-D", "-C", BINARY),
    "icuinfo": ("icuinfo",),
    "pzstd": ("pzstd", "-c", BINARY),
    "qemu": ("qemu-system-x86_64", "--version"),
    "cppcheck": ("cppcheck", "--enable=all", str(Path(__file__).with_name("bad_operators.cpp"))),
    "doxygen": ("doxygen", "-g", "-"),
    "ledger": ("ledger", "-f", "/dev/null", "balance"),
    "qpdf": ("qpdf", "--empty", "/dev/null"),
    "protoc": ("protoc", "--help"),
    "fish": ("fish", "-c", "for i in (seq 40); echo $i; end"),
}


def command_of(program: str, allocator: str) -> list[str]:
    """Return the command that runs a program under an allocator. Raises KeyError."""
    preload = ALLOCATORS[allocator]
    return [*(() if preload is None else ("/usr/bin/env", f"LD_PRELOAD={preload}")), *_program(program)]


def _program(program: str) -> list[str]:
    name, *arguments = PROGRAMS[program]
    return [shutil.which(name) or name, *arguments]


def is_here(program: str, allocator: str) -> bool:
    preload = ALLOCATORS[allocator]
    return shutil.which(PROGRAMS[program][0]) is not None and (preload is None or preload.exists())


def report_of(program: str, allocator: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            CHECKOUT / "refleak", "--user", "root", "--heap-only", "-o", report, "--exec",
            *command_of(program, allocator),
        ]  # fmt: skip
        subprocess.run(command, capture_output=True, timeout=400, check=False, stdin=subprocess.DEVNULL)
        return dict(json.loads(report.read_text()))


def main(programs: Sequence[str]) -> None:
    """Print the table, of these programs; of all if none is named."""
    print(f"| program | {' | '.join(ALLOCATORS)} |\n|---|{'--:|' * len(ALLOCATORS)}")
    for program in programs or PROGRAMS:
        cells = []
        for allocator in ALLOCATORS:
            if not is_here(program, allocator):
                cells.append("")
                continue
            report = report_of(program, allocator)
            freed = report["totals"]["allocations"]["freed"]
            told = f", {len(report['errors'])} told" if report["errors"] else ""
            cells.append(f"{freed:,}{'' if report['complete'] else ' (incomplete)'}{told}")
        print(f"| {program} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
