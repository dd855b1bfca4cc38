"""A plugin of pytest: say why a test failed when it did, since an emulated run may be cut short before its end."""

from __future__ import annotations

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        print(f"\n{report.longreprtext}\n", flush=True)
