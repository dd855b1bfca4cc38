"""tests/conftest.py: a skip is a skip, until REFLEAK_NO_SKIPS makes it a failure; and what hangs is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kernel"))

from features import LACKS

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
import pytest

def test_passes(): pass

def test_skips(): pytest.skip("no such tool")

@pytest.mark.skipif(True, reason="never")
def test_is_marked(): pass

@pytest.mark.xfail
def test_fails_as_expected(): assert False
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(TESTS)
    return pytester


def test_skips_are_allowed_by_default(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFLEAK_NO_SKIPS", raising=False)
    suite.runpytest_subprocess().assert_outcomes(passed=1, skipped=2, xfailed=1)


def test_skips_fail_when_forbidden(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLEAK_NO_SKIPS", "1")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1, errors=1, xfailed=1)  # a skip by mark is an error of the set-up
    result.stdout.fnmatch_lines(["*no such tool*"])


def test_what_an_old_kernel_lacks_is_no_failure(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.makepyfile(test_needs=f'import pytest\ndef test_new(): pytest.skip("{LACKS} nop5")\n')
    monkeypatch.setenv("REFLEAK_NO_SKIPS", "1")
    suite.runpytest_subprocess("test_needs.py").assert_outcomes(skipped=1)


def test_a_module_that_skips_itself_fails_too(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.makepyfile(test_absent='import pytest\npytest.importorskip("no_such_module_at_all")\n')
    monkeypatch.setenv("REFLEAK_NO_SKIPS", "1")
    suite.runpytest_subprocess("test_absent.py").assert_outcomes(errors=1)


def test_kernel_tests_skip_without_root(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFLEAK_NO_SKIPS", raising=False)
    suite.mkdir("kernel")
    suite.path.joinpath("kernel/test_attach.py").write_text("def test_attaches(): pass\n")
    suite.path.joinpath("sitecustomize.py").write_text("import os\nos.geteuid = lambda: 1000\n")
    monkeypatch.setenv("PYTHONPATH", str(suite.path))
    result = suite.runpytest_subprocess("kernel", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs root*"])


HANGS = """
import subprocess

def test_hangs():
    with subprocess.Popen(["sleep", "1000"]) as process:
        process.wait()

def test_goes_on(): pass
"""


def test_what_does_not_end_fails_and_the_next_one_runs(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makepyfile(test_long=HANGS)
    monkeypatch.setenv("REFLEAK_TEST_LONGEST", "0.5")
    result = suite.runpytest_subprocess("test_long.py", timeout=60)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*not done after*"])
