"""What refleak does not import where it is not needed: each of these takes a tenth of a second or more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DEAR = ("bcc", "setuptools", "pkg_resources", "urllib.request", "ssl")


def _imported(work: str, *others: str) -> set[str]:
    """Return those of _DEAR and of others that a Python of its own has imported when it has done `work`."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {work}; import json; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return {*_DEAR, *others} & set(json.loads(done.stdout.splitlines()[-1]))


def test_decoding_instructions_takes_no_setuptools() -> None:
    importing = "from tracer.architecture.current import ARCHITECTURE as x86"
    assert not _imported(f"{importing}; assert len(x86.decode(b'\\x90\\xc3', 0, 9)) == 2")


def test_a_trace_begins_before_what_reports_it_is_imported() -> None:
    assert not _imported("import tracer.cli.trace", "tracer.analysis.analysis", "tracer.report.json_report", "xml")


def test_what_names_holders_brings_no_masked_arrays() -> None:
    assert not _imported("from tracer.dwarf.data_entries import no_entries; no_entries()", "numpy.ma")
