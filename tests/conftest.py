"""Rules for all tests: what kernel tests need, and skips that count as failures."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

KERNEL_TESTS = Path(__file__).parent / "kernel"
NO_SKIPS = "REFLEAK_NO_SKIPS"
KERNEL_LACKS = "the kernel lacks"
"""What a skip says that is none to forbid: tests/kernel/features.py has tried, and knows that it may lack it."""


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
