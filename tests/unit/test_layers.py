"""The house rules that a parser can check: layers, owners of foreign libraries, sizes, names."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "tracer").rglob("*.py"))

LAYERS = {
    "__main__": 6, "cli": 5, "api": 4, "pipeline": 3,
    "specs": 2, "sites": 2, "capture": 2, "recording": 2, "symbols": 2, "analysis": 2, "report": 2,
    "elf": 1, "procfs": 1, "books": 1, "guests": 1, "jit": 1, "reachability": 1,
    "model": 0, "errors": 0, "files": 0, "lazy_names": 0,
}  # fmt: skip
STEPS = {
    "tracer.capture.session", "tracer.capture.assembly", "tracer.analysis.analysis", "tracer.symbols.symbolizer",
    "tracer.recording.reader", "tracer.recording.writer",
}
"""What `cli` does by `api` and `pipeline` only: tracing, reading, naming, judging."""
LAYER_0_ONLY = {"analysis", "report"}
OWNERS = {
    "bcc": {"capture"},
    "capstone": {"sites"},
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
    if package not in LAYERS or other not in LAYERS:
        return f"{package if package not in LAYERS else other} stands in no layer"
    if LAYERS[other] > LAYERS[package]:
        return f"back edge: {package} imports {other} above it"
    if LAYERS[other] == LAYERS[package]:
        return f"siblings: {package} imports {other}"
    if package in LAYER_0_ONLY and LAYERS[other] != 0:
        return f"{package} may import layer 0 only, not {other}"
    return None


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


def rooms(table: str) -> dict[str, int]:
    """Return the layer of each package or module that the first two columns of CONTRIBUTING's table name."""
    rows = [row.split("|")[1:3] for row in table.splitlines() if row.startswith("|")]
    return {name: int(layer) for layer, names in rows if layer.strip().isdecimal()
            for name in re.findall(r"`(\w+)`", names)}  # fmt: skip


def test_contributing_names_every_room() -> None:
    folder = ROOT / "tracer"
    found = {path.stem for path in (*folder.glob("*.py"), *(init.parent for init in folder.glob("*/__init__.py")))}
    assert found - {"__init__"} - LAYERS.keys() == set()
    assert rooms((ROOT / "CONTRIBUTING.md").read_text()) == LAYERS


def test_files_are_named_for_a_noun() -> None:
    assert [module_name(p) for p in MODULES if {p.stem, p.parent.name} & VAGUE] == []


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
        ("tracer.model.frames", "import tracer.elf.image", "back edge: model imports elf above it"),
        ("tracer.elf.image", "from tracer.capture import ring", "back edge: elf imports capture above it"),
        ("tracer.sites.placement", "from tracer import specs", "siblings: sites imports specs"),
        ("tracer.sites.placement", "from ..specs import toml", "siblings: sites imports specs"),
        ("tracer.errors", "import tracer.model.frames", "siblings: errors imports model"),
        ("tracer.report.text", "from tracer.elf.image import Image", "report may import layer 0 only, not elf"),
        ("tracer.analysis.leaks", "def f():\n import tracer.procfs", "analysis may import layer 0 only, not procfs"),
        ("tracer.cli.top", "from tracer.capture.session import Session",
         "cli reaches past the pipeline to tracer.capture.session"),
        ("tracer.cli.main", "import tracer.misc.x", "misc stands in no layer"),
        ("tracer.elf.image", "import capstone", "capstone belongs to sites"),
        ("tracer.cli.main", "from rich.table import Table", "rich belongs to report"),
        ("tracer.report.text", "import importlib as i\ni.import_module('bcc')", "bcc belongs to capture"),
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
        ("tracer.sites.placement", "import capstone\nfrom . import scan\nfrom tracer.elf.image import Image"),
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


def test_test_modules_have_distinct_names() -> None:
    """pytest imports them by their file's name alone, and refuses to collect two of one name together."""
    names = Counter(path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
