"""How long tests wait for what ends by itself."""

from __future__ import annotations

import os

PATIENCE = int(os.environ.get("REFLEAK_TEST_PATIENCE", "1"))
"""How many times as long as usual: on an emulated processor."""
TIMEOUT_SECONDS = 120 * PATIENCE
