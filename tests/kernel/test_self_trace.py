"""refleak doctor traces a child of its own, and says that it can trace only where that found what the child kept."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from conftest import CHECKOUT, REFLEAK
from patience import TIMEOUT_SECONDS

BLIND = """
import sys
from tracer.kernel import programs
from tracer.kernel.namespaces import PidNamespace
from tracer.cli.main import main
programs.own_pid_namespace = lambda offsets: PidNamespace(1, 1)
sys.exit(main(["doctor", "--format", "json"]))
"""


def checks(command: list[str]) -> tuple[int, dict[str, Any], dict[str, Any]]:
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False, cwd=CHECKOUT)
    assert result.stderr == ""
    document = json.loads(result.stdout)
    return result.returncode, document, {check["name"]: check for check in document["checks"]}


@pytest.mark.parametrize("within", [[], ["unshare", "--mount", "--pid", "--fork", "--mount-proc"]])
def test_a_block_and_a_reference_are_found(within: list[str]) -> None:
    status, document, found = checks([*within, str(REFLEAK), "doctor", "--format", "json"])
    assert (status, document["can_trace"]) == (0, True)
    assert found["trace"]["state"] == "ok"
    assert found["trace"]["meaning"].endswith("both found")


def test_a_trace_that_sees_nothing_is_no_trace() -> None:
    status, document, found = checks([sys.executable, "-c", BLIND])
    assert (status, document["can_trace"]) == (78, False)
    assert found["trace"]["meaning"].endswith("blocks found: 0, references: 0, events lost: 0")


def test_a_user_namespace_is_no_place_to_trace() -> None:
    command = ["unshare", "--user", "--map-root-user", str(REFLEAK), "doctor", "--format", "json"]
    status, document, found = checks(command)
    assert (status, document["can_trace"]) == (77, False)
    assert found["namespaces"]["state"] == "missing"
    assert found["trace"]["state"] == found["BPF"]["state"] == "untested"
