"""Hold counts: how often threads of the target were held, by the reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracer.model import records


class HoldCounts:
    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._by_kind = np.zeros(len(records.ControlKind), np.int64)

    def noted(self, happened: Sequence[bytes]) -> Sequence[bytes]:
        """Count records of the control ring; return them."""
        if self._enabled and happened:
            told = np.frombuffer(b"".join(happened), records.CONTROL)
            np.add.at(self._by_kind, told["kind"][told["ticket"] != 0], 1)
        return happened

    def by_reason(self) -> dict[str, int]:
        return {records.ControlKind(kind).name.lower(): int(n) for kind, n in enumerate(self._by_kind) if n}
