"""Packages of Python that refleak cannot do without, looked for before any of them is imported."""

from __future__ import annotations

from importlib.util import find_spec

from tracer.errors import BccMissing, PackageMissing
from tracer.model.checks import Check, CheckState

_OF_DEBIAN = {name: f"python3-{name}" for name in ("numpy", "psutil", "tabulate", "capstone", "rich")}
_BCC = "bcc"


def _missing() -> list[str]:
    return [name for name in _OF_DEBIAN if find_spec(name) is None]


def check_packages() -> None:
    """Raise PackageMissing where a package is not there: some are imported only when a trace has ended."""
    for name in _missing():
        raise PackageMissing(f"the Python package {name} is missing")


def package_checks() -> list[Check]:
    """Return what is missing, as `refleak doctor` prints it; nothing where all packages but BCC are there."""
    missing = _missing()
    if not missing:
        return []
    remedy = f"run `make venv` in a checkout, or install {' '.join(_OF_DEBIAN[name] for name in missing)}"
    meaning = f"of Python: {', '.join(missing)}"
    packages = Check("packages", CheckState.MISSING, meaning, remedy, PackageMissing.exit_code)
    if find_spec(_BCC) is not None:
        return [packages, Check("BCC", CheckState.UNTESTED, "compiles the BPF programs")]
    bcc = Check("BCC", CheckState.MISSING, "compiles the BPF programs", BccMissing.hint, BccMissing.exit_code)
    return [packages, bcc]
