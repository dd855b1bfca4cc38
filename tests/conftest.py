"""Rules for all tests: what kernel tests need, skips that count as failures, and an end to what does not end."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

import psutil
import pytest

pytest_plugins = ["pytester"]

KERNEL_TESTS = Path(__file__).parent / "kernel"
NO_SKIPS = "REFLEAK_NO_SKIPS"
KERNEL_LACKS = "the kernel lacks"
"""What a skip says that is none to forbid: tests/kernel/features.py has tried, and knows that it may lack it."""

PATIENCE = int(os.environ.get("REFLEAK_TEST_PATIENCE", "1"))
LONGEST_SECONDS = PATIENCE * float(os.environ.get("REFLEAK_TEST_LONGEST", "600"))
"""A test takes no longer, nor do the fixtures that it is the first to ask for: then it has failed."""
_AGAIN_SECONDS = 5.0


def kernel_tests_lack() -> str | None:
    """Return why tests that attach probes cannot run here; None where they can."""
    if os.geteuid() != 0:
        return "needs root"
    spec = importlib.util.find_spec("bcc")
    # PyPI's bcc is an unrelated library: the tracing one brings libbcc.py.
    places = (spec.submodule_search_locations if spec else None) or []
    if not any((Path(place) / "libbcc.py").exists() for place in places):
        return "needs BCC (Debian: python3-bpfcc)"
    return None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kernel: attaches probes, so it needs root and BCC; all of tests/kernel")
    config.addinivalue_line("markers", "needs(name, ...): what not all kernels have, of tests/kernel/features.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if KERNEL_TESTS in item.path.parents:
            item.add_marker(pytest.mark.kernel)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("kernel") and (reason := kernel_tests_lack()):
        pytest.skip(reason)


def _end_what_hangs(_number: int, _frame: FrameType | None) -> None:
    """End what the test waits for, too: a context manager may wait for it once more."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()
    pytest.fail(f"not done after {LONGEST_SECONDS:g} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _end_what_hangs)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS, _AGAIN_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def private_folders() -> Iterator[Callable[[], Path]]:
    """Give a function that makes folders for a cache: root takes none below /tmp, to which everybody may write."""
    base = Path(tempfile.mkdtemp(prefix="refleak-tests-", dir="/var/cache" if os.geteuid() == 0 else None))
    yield lambda: Path(tempfile.mkdtemp(dir=base))
    shutil.rmtree(base)


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get(NO_SKIPS) and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        if str(reason).startswith(f"Skipped: {KERNEL_LACKS}"):
            return
        report.outcome = "failed"
        report.longrepr = f"{reason}\n(a failure because {NO_SKIPS} is set)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    _forbid_skip(report)
    return report
