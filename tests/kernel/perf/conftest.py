"""One traced perf for all of the folder's tests: the spec and the recording are made once."""

from __future__ import annotations

import pytest
from traced_perf import TracedPerf


@pytest.fixture(scope="session")
def perf(tmp_path_factory: pytest.TempPathFactory) -> TracedPerf:
    return TracedPerf(tmp_path_factory.mktemp("perf"))
