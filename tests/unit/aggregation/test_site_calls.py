"""Calls of described functions, by site."""

from __future__ import annotations

import numpy as np

from tracer.aggregation.history import History
from tracer.model.events import EVENT, EventFlag
from tracer.model.operations import Operation


def test_calls_are_counted_by_site_and_those_of_unknown_objects_apart() -> None:
    history = History()
    for sites in ((3, 3, 70), (3,), ()):
        events = np.zeros(len(sites), EVENT)
        events["site"], events["operation"], events["serial"] = sites, Operation.PUT, 1
        events["flags"][:1] = EventFlag.UNKNOWN
        history.add(events)
    assert history.calls.of(3, Operation.PUT) == (3, 2)
    assert history.calls.of(70, Operation.PUT) == (1, 0)
    assert history.calls.of(3, Operation.GET) == history.calls.of(1000, Operation.PUT) == (0, 0)
