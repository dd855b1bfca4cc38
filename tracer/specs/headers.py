"""Prototypes from the C headers that are installed for a library, as its callers see them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from tracer.dwarf.debug_facts import FunctionFacts, Pointee
from tracer.files.plain_file import read_plain

FOLDERS = (Path("/usr/include"), Path("/usr/local/include"))
_LARGEST_HEADER = 1 << 22
_MOST_HEADERS = 400
_COMPILER_SECONDS = 20
_CALLABLE = re.compile(rb"\b([A-Za-z_]\w+)\s*\(")
_INCLUDES = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_DECLARATION = re.compile(r"/\* .*? \*/ extern (?P<returns>.*?)\b(?P<name>\w+) \((?P<parameters>.*)\);$")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|restrict|__restrict|struct|union|enum)\b")
_NAME = re.compile(r"[A-Za-z_]\w*")
_PLAIN = frozenset(("char", "int", "long", "short", "unsigned", "signed", "float", "double", "_Bool"))
_UNTYPED = frozenset(("gpointer", "gconstpointer"))
_HANDLE = re.compile(rb"\btypedef\s+(?:const\s+)?(?:struct|union)\s+\w+\s*\*\s*(\w+)\s*;")
_POINTER_NAME = "Ptr"
"""How libxml2 and its like end the names of types that are pointers."""


def read_prototypes(functions: Collection[str], library: str) -> dict[str, FunctionFacts]:
    """Return the prototypes of those functions that headers declare; empty without headers or without gcc.

    `library` is the name after -l, by which pkg-config's files tell where the headers are. gcc reads the headers
    (-fsyntax-only -aux-info) and prints one line per declaration: "GCC Command Options", Debugging options.
    """
    compiler = shutil.which("gcc")
    if compiler is None or not functions:
        return {}
    flags = (*(f"-I{folder}" for folder in FOLDERS), *_package_flags(library))
    found: dict[str, FunctionFacts] = {}
    settled: set[str] = set()
    headers = _headers(functions)
    handles = {name for header in headers for name in header.handles}
    for header in headers:
        if header.declares - settled:
            declared = _declared(compiler, flags, header.path, functions, handles)
            found.update(declared)
            settled |= header.declares if declared else set()
    return found


class _Header:
    """`handles`: names of types that are pointers to structs."""

    def __init__(self, path: Path, declares: set[str], includes: set[str], handles: set[str]) -> None:
        self.path, self.declares, self.includes, self.handles = path, declares, includes, handles


def _headers(functions: Collection[str]) -> list[_Header]:
    """Return headers that name some of the functions, and those that include them; most functions first."""
    wanted = {name.encode() for name in functions}
    all_headers = [_Header(*described) for described in _read_all(wanted)]
    naming = [header for header in all_headers if header.declares]
    parts = {header.path.name for header in naming}
    around = [header for header in all_headers if not header.declares and parts & header.includes]
    naming.sort(key=lambda header: (-len(header.declares), len(header.path.parts), header.path))
    by_part = {header.path.name: header.declares for header in naming}
    for header in around:
        header.declares = set().union(*(by_part.get(part, set()) for part in header.includes))
    around.sort(key=lambda header: (-len(header.declares), header.path))
    return [*around[:8], *naming[:_MOST_HEADERS], *around[8:_MOST_HEADERS]]


def _read_all(wanted: set[bytes]) -> Iterator[tuple[Path, set[str], set[str], set[str]]]:
    for folder in FOLDERS:
        for place, _, names in os.walk(folder):
            for name in names:
                if not name.endswith(".h"):
                    continue
                try:
                    text = read_plain(Path(place, name), _LARGEST_HEADER)
                except OSError:
                    continue
                declares = wanted.intersection(_CALLABLE.findall(text))
                includes = {part.rpartition(b"/")[2].decode(errors="replace") for part in _INCLUDES.findall(text)}
                handles = {handle.decode() for handle in _HANDLE.findall(text)}
                yield Path(place, name), {function.decode() for function in declares}, includes, handles


def _package_flags(library: str) -> Iterable[str]:
    """Return what pkg-config says of the packages that link with -lLIBRARY."""
    tool = shutil.which("pkg-config")
    places = [Path(root, "pkgconfig") for root in ("/usr/share", "/usr/lib", "/usr/local/lib", *_multiarch())]
    links = re.compile(rb"^Libs:.*-l" + re.escape(library).encode() + rb"(?:\s|$)", re.MULTILINE)
    packages = []
    for path in sorted(path for place in places for path in place.glob("*.pc")):
        try:
            if links.search(read_plain(path, 1 << 20)):
                packages.append(path.stem)
        except OSError:
            continue
    if tool is None or not packages:
        return ()
    said = subprocess.run(
        [tool, "--cflags", "--", *packages], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=_COMPILER_SECONDS,
    )  # fmt: skip
    return tuple(flag for flag in said.stdout.split() if flag.startswith(("-I", "-D")))


def _multiarch() -> list[str]:
    return [str(path) for path in Path("/usr/lib").glob("*-linux-gnu")]


def _declared(
    compiler: str, flags: Iterable[str], header: Path, functions: Collection[str], handles: Collection[str]
) -> dict[str, FunctionFacts]:
    """Return what one header declares by itself; empty where it cannot be compiled so."""
    with tempfile.TemporaryDirectory(prefix="refleak-") as folder:
        listing = Path(folder, "declarations")
        command = [compiler, *flags, "-w", "-x", "c", "-fsyntax-only", "-aux-info", str(listing), "-"]
        try:
            subprocess.run(
                command, input=f'#include "{header}"\n', cwd=folder, capture_output=True, text=True, check=True,
                timeout=_COMPILER_SECONDS,
            )  # fmt: skip
            lines = listing.read_text(errors="replace").splitlines()
        except (OSError, subprocess.SubprocessError):
            return {}
    facts = (parse_declaration(line, handles) for line in lines)
    return {fact.name: fact for fact in facts if fact is not None and fact.name in functions}


def parse_declaration(line: str, handles: Collection[str] = ()) -> FunctionFacts | None:
    """Return the function of one line of -aux-info; None where the line is none, or too odd to tell.

    `handles`: names of types that are pointers to structs; each stands for its struct.
    """
    match = _DECLARATION.fullmatch(line)
    if match is None:
        return None
    parameters = () if match["parameters"] in ("void", "") else _split(match["parameters"])
    pointees = tuple(_pointee(parameter, handles) for parameter in parameters)
    return FunctionFacts(match["name"], pointees, _pointee(match["returns"], handles))


def _split(text: str) -> tuple[str, ...]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return (*parts, text[start:])


def _pointee(text: str, handles: Collection[str]) -> Pointee:
    """Return what a C type points to: `const struct foo **` is a foo through two pointers, `void *` nothing by name."""
    if "(" in text or "[" in text:
        return Pointee()
    pointers = text.count("*")
    is_const = "const" in text.partition("*")[0].split()
    names = _NAME.findall(_QUALIFIERS.sub(" ", text.partition("*")[0]))
    if len(names) != 1 or names[0] in _PLAIN:
        return Pointee()
    name = names[0]
    if name in _UNTYPED or (name == "void" and pointers):
        return Pointee("", pointers or 1)
    if name.endswith(_POINTER_NAME) and len(name) > len(_POINTER_NAME):
        name, pointers = name.removesuffix(_POINTER_NAME), pointers + 1
    elif name in handles:
        pointers += 1
    return Pointee(name, pointers, is_const) if pointers else Pointee()
