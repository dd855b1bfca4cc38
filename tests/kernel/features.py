"""What some tests need of the kernel: found by trying, and with the version from which on it has to be found."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tracer.kernel.abilities import can_hold
from tracer.kernel.programs import has_uprobe_multi

LACKS = "the kernel lacks"


@dataclass(frozen=True)
class Feature:
    """Something that kernels have from a version on."""

    is_there: Callable[[], bool]
    since: tuple[int, int]


FEATURES: Mapping[str, Feature] = {
    "holds": Feature(can_hold, (6, 0)),
    "uprobe_multi": Feature(has_uprobe_multi, (6, 6)),
}


class Missing(Exception):
    """The kernel is new enough to have a feature, and has it not."""


def why_not(name: str, features: Mapping[str, Feature] = FEATURES, release: str | None = None) -> str | None:
    """Return why a test that needs this is to be skipped, None where the kernel has it.

    Raises Missing where a skip would hide a failure: the kernel is one that should have it.
    """
    feature = features[name]
    if feature.is_there():
        return None
    release = release or platform.release()
    version = tuple(int(number) for number in re.findall(r"\d+", release)[:2])
    if version >= feature.since:
        raise Missing(f"Linux {release} should have {name}, as all do since {'.'.join(map(str, feature.since))}")
    return f"{LACKS} {name}"
