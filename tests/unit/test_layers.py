"""The house rules that a parser can check: who imports whom, owners of foreign libraries, sizes, names."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "tracer").rglob("*.py"))

EVERYBODYS = {"model", "errors", "lazy_names", "late_dataclasses", "late_patterns"}
"""What every room may import, but for those of EVERYBODYS itself."""
EDGES = {
    "__main__": {"cli"},
    "cli": {"api", "pipeline", "specs", "symbols", "analysis", "report", "recording", "capture", "probing", "kernel",
            "binaries", "dwarf", "elf", "procfs", "files"},
    "api": {"pipeline", "capture"},
    "pipeline": {"architecture", "specs", "sites", "symbols", "analysis", "report", "recording", "capture", "probing",
                 "kernel", "binaries", "elf", "files", "preload"},
    "capture": {"probing", "scanning", "unwinding", "jit", "spaces", "interpreters", "kernel", "binaries",
                "aggregation", "elf", "procfs", "mishaps"},
    "probing": {"architecture", "sites", "specs", "dwarf", "jit", "spaces", "interpreters", "kernel", "binaries",
                "elf", "procfs", "files", "mishaps"},
    "scanning": {"architecture", "reachability", "unwinding", "kernel", "elf", "procfs"},
    "unwinding": {"architecture", "spaces", "kernel", "binaries", "cfi", "procfs", "mishaps"},
    "jit": {"spaces", "binaries", "cfi", "elf", "procfs", "mishaps"},
    "spaces": {"interpreters", "kernel", "binaries", "cfi", "procfs", "mishaps"},
    "interpreters": {"architecture", "kernel", "binaries", "elf", "mishaps"},
    "kernel": {"architecture", "binaries", "files"},
    "binaries": {"architecture", "elf", "procfs", "files"},
    "sites": {"architecture", "cfi", "dwarf", "elf"},
    "specs": {"architecture", "dwarf", "files"},
    "symbols": {"architecture", "cfi", "dwarf", "elf", "files"},
    "recording": {"files"},
    "preload": {"files"},
    "analysis": set(),
    "report": set(),
    "aggregation": set(),
    "reachability": set(),
    "cfi": {"architecture", "dwarf", "elf", "files"},
    "dwarf": {"elf", "files"},
    "elf": {"files"},
    "procfs": {"files"},
    "architecture": set(),
    "mishaps": set(),
    "files": set(),
    "lazy_names": set(),
    "late_dataclasses": set(),
    "late_patterns": set(),
    "model": {"late_dataclasses", "late_patterns"},
    "errors": set(),
}  # fmt: skip
"""Which room may import which: the list is the order of the house, and holds no edge that nobody uses."""
STEPS = {
    "tracer.capture.session", "tracer.capture.assembly", "tracer.analysis.analysis", "tracer.symbols.symbolizer",
    "tracer.recording.reader", "tracer.recording.writer",
}
"""What `cli` does by `api` and `pipeline` only: tracing, reading, naming, judging."""
OWNERS = {
    "bcc": {"kernel"},
    "capstone": {"architecture"},
    "tabulate": {"report"},
    "rich": {"report"},
    "psutil": {"procfs"},
    "cxxfilt": {"symbols"},
    "argparse": {"cli"},
}
# The arrays of numpy are how layers hand bulk data to each other.
EVERYWHERE = {"numpy"}
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    """Return the part under `tracer` that a module belongs to; empty for `tracer` itself."""
    return module.split(".")[1] if "." in module else ""


def imported(tree: ast.AST, module: str, is_package: bool = False) -> Iterator[tuple[str, int]]:
    """Yield (absolute name of an imported module, line), of dynamic imports by literal name too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                kept = parents[: len(parents) - node.level + is_package]
                base = ".".join([*kept, base] if base else kept)
            if base == "tracer":
                yield from ((f"tracer.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield base, node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield from ((a.value, node.lineno) for a in node.args[:1] if isinstance(a, ast.Constant))


def edge_violation(package: str, other: str) -> str | None:
    if other == package or other.startswith("__"):
        return None
    if package not in EDGES or other not in EDGES:
        return f"{package if package not in EDGES else other} is in no list"
    if other in EDGES[package] or (other in EVERYBODYS and package not in EVERYBODYS):
        return None
    return f"{package} may not import {other}"


def import_violations(module: str, source: str, is_package: bool = False) -> list[str]:
    """Return what is wrong with the imports of one module, as `line: reason`."""
    package, found = package_of(module), []
    for name, line in imported(ast.parse(source), module, is_package):
        top = name.split(".")[0]
        if top == "tracer":
            reason = edge_violation(package, package_of(name)) if package and package_of(name) else None
            if package == "cli" and name in STEPS:
                reason = f"cli reaches past the pipeline to {name}"
        elif top in OWNERS:
            reason = None if package in OWNERS[top] else f"{top} belongs to {', '.join(OWNERS[top])}"
        elif top in sys.stdlib_module_names or top in EVERYWHERE:
            reason = None
        else:
            reason = f"{top} has no owner"
        if reason:
            found.append(f"{line}: {reason}")
    return found


def long_functions(source: str) -> list[str]:
    return [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def does_more_than_reexport(source: str) -> bool:
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    body = [node for node in ast.parse(source).body
            if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]  # fmt: skip
    return any(
        not isinstance(node, allowed) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in body
    )


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_down(path: Path) -> None:
    assert import_violations(module_name(path), path.read_text(), path.name == "__init__.py") == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_sizes(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_MODULE_LINES
    assert long_functions(path.read_text()) == []


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=module_name)
def test_package_only_reexports(path: Path) -> None:
    assert not does_more_than_reexport(path.read_text())


def edges_used() -> set[tuple[str, str]]:
    """Return (room, room that it imports) of all modules."""
    return {
        (package_of(module_name(path)), package_of(name))
        for path in MODULES
        for name, _ in imported(ast.parse(path.read_text()), module_name(path), path.name == "__init__.py")
        if name.startswith("tracer.")
    }


def test_no_edge_is_listed_that_nobody_uses() -> None:
    listed = {(room, other) for room, others in EDGES.items() for other in others}
    assert listed - edges_used() == set()


def test_no_room_imports_itself_by_others() -> None:
    sorter = TopologicalSorter({room: others | (EVERYBODYS - {room}) for room, others in EDGES.items()
                                if room not in EVERYBODYS})  # fmt: skip
    assert set(sorter.static_order()) == EDGES.keys()


def rooms(table: str) -> dict[str, set[str]]:
    """Return what each room imports by CONTRIBUTING's table: the name in the first column, the names in the third."""
    rows = [row.split("|")[1:4] for row in table.splitlines() if row.startswith("| `")]
    return {room.strip(" `"): set(re.findall(r"`(\w+)`", others)) for room, _, others in rows}


def test_contributing_names_every_room() -> None:
    folder = ROOT / "tracer"
    found = {path.stem for path in (*folder.glob("*.py"), *(init.parent for init in folder.glob("*/__init__.py")))}
    assert found - {"__init__"} == EDGES.keys()
    assert rooms((ROOT / "CONTRIBUTING.md").read_text().split("## How code looks")[0]) == EDGES


def test_unit_tests_stand_in_the_folder_of_a_room() -> None:
    folders = {path.name for path in (ROOT / "tests/unit").iterdir() if any(path.glob("test_*.py"))}
    assert folders - EDGES.keys() == {"bpf", "fuzz"}


def test_files_are_named_for_a_noun() -> None:
    assert [module_name(p) for p in MODULES if {p.stem, p.parent.name} & VAGUE] == []


QUESTIONS = ("What", "Where", "Which", "When", "Who", "Whose", "Why", "How", "Whether")


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_docstring_begins_with_the_thing_that_a_module_holds(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring is not None and docstring.split()[0] not in QUESTIONS


def test_bcc_is_imported_in_one_module_and_late() -> None:
    users, early = [], []
    for path in MODULES:
        tree = ast.parse(path.read_text())
        if any(name.split(".")[0] == "bcc" for name, _ in imported(tree, module_name(path))):
            users.append(module_name(path))
        top_level = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
        early += [module_name(path) for name, _ in imported(top_level, module_name(path)) if name.startswith("bcc")]
    assert len(users) <= 1, users
    assert early == []


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("tracer.model.frames", "import tracer.elf.image", "model may not import elf"),
        ("tracer.elf.image", "from tracer.capture import ring", "elf may not import capture"),
        ("tracer.sites.placement", "from tracer import specs", "sites may not import specs"),
        ("tracer.sites.placement", "from ..specs import toml", "sites may not import specs"),
        ("tracer.errors", "import tracer.model.frames", "errors may not import model"),
        ("tracer.report.text", "from tracer.elf.image import Image", "report may not import elf"),
        ("tracer.analysis.leaks", "def f():\n import tracer.procfs", "analysis may not import procfs"),
        ("tracer.cli.top", "from tracer.capture.session import Session",
         "cli reaches past the pipeline to tracer.capture.session"),
        ("tracer.cli.main", "import tracer.misc.x", "misc is in no list"),
        ("tracer.elf.image", "import capstone", "capstone belongs to architecture"),
        ("tracer.cli.main", "from rich.table import Table", "rich belongs to report"),
        ("tracer.report.text", "import importlib as i\ni.import_module('bcc')", "bcc belongs to kernel"),
        ("tracer.sites.placement", "import angr", "angr has no owner"),
        ("tracer.elf.image", "import elftools", "elftools has no owner"),
    ],
)
def test_a_violation_is_seen(module: str, source: str, reason: str) -> None:
    (violation,) = import_violations(module, source)
    assert violation.split(": ", 1)[1] == reason


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("tracer.cli.main", "import argparse\nfrom tracer import __version__\nfrom tracer.report.text import x"),
        ("tracer.report.text", "import numpy as np, rich, tabulate\nfrom tracer.errors import RefleakError"),
        ("tracer.architecture.x86_64.instructions", "import capstone\nfrom . import registers"),
        ("tracer.capture", "from .ring import Ring"),
    ],
)
def test_no_false_alarm(module: str, source: str) -> None:
    assert import_violations(module, source, is_package=module.count(".") == 1) == []


def test_a_long_function_is_seen() -> None:
    body = "\n    pass"
    assert long_functions("def f():" + body * MAX_FUNCTION_LINES) == ["f has 61 lines"]
    assert long_functions("def f():" + body * (MAX_FUNCTION_LINES - 1)) == []


def test_code_in_a_package_file_is_seen() -> None:
    assert does_more_than_reexport('"""Doc."""\ndef f(): pass')
    assert not does_more_than_reexport('"""Doc."""\nfrom .a import b\n__all__ = ["b"]')


REGISTER = re.compile(r"\b[re]?(?:ax|bx|cx|dx|si|di|sp|bp|ip)\b|\br(?:8|9|1[0-5])[dwb]?\b", re.IGNORECASE)
ARCHITECTURE = ("tracer/architecture/", "bpf/x86_64.h", "bpf/include/")
"""Where all is that depends on the processor."""


def named_registers(source: str) -> list[str]:
    """Return the registers of x86-64 that a text names; a variable may be called `sp` or `ip`."""
    return [name for name in REGISTER.findall(source) if name.lower() not in ("sp", "bp", "ip", "si", "di")]


def test_nothing_else_names_a_register() -> None:
    sources = [*MODULES, *(ROOT / "bpf").rglob("*.[ch]")]
    others = [p for p in sources if not p.relative_to(ROOT).as_posix().startswith(ARCHITECTURE)]
    found = {p.relative_to(ROOT).as_posix(): names for p in others if (names := named_registers(p.read_text()))}
    assert found == {}
    contexts = [p.name for p in others if p.parent.name == "bpf" and re.search(r"ctx->(?!argument)", p.read_text())]
    assert contexts == [], "a context is read by the macros of x86_64.h"


def test_a_register_is_seen() -> None:
    assert named_registers("walk->bp = sp + ctx->rbp; /* %eax, r12d */ u64 ip") == ["rbp", "eax", "r12d"]


def test_test_modules_have_distinct_names() -> None:
    """pytest imports them by their file's name alone, and refuses to collect two of one name together."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
