"""The places of the library of --preload (tracer/preload/wrappers.S), where a call's result is known without a return
probe, and those where a block is given up."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.architecture.current import argument
from tracer.model.operations import (
    NO_FLAGS,
    NOWHERE,
    FunctionSpec,
    Location,
    Operation,
    SiteFlag,
    Spec,
)
from tracer.model.preload_names import ALIGNED_MAKERS, DEEP_BOUND, MAKERS, PRELOADED, REALLOCATORS

_WRAPPER = SiteFlag.WRAPPER | SiteFlag.ENTRY_RESULT
_ALIGNMENT = argument(2)


def _place(
    name: str, operation: Operation, type_name: str, flags: SiteFlag = NO_FLAGS, count: Location = NOWHERE
) -> FunctionSpec:
    return FunctionSpec(
        name, operation, type_name=type_name, flags=_WRAPPER | flags, object=argument(0), size=argument(1), count=count
    )


def _places() -> Iterator[FunctionSpec]:
    yield FunctionSpec(PRELOADED, Operation.NONE, type_name=PRELOADED, flags=_WRAPPER)
    yield FunctionSpec(DEEP_BOUND, Operation.UNDO, type_name="dlopen", flags=_WRAPPER)
    yield _place("refleak_begin_free", Operation.FREE, "free")
    for name in MAKERS:
        yield _place(f"refleak_made_{name}", Operation.ALLOC, name, SiteFlag.MADE)
    for name in ALIGNED_MAKERS:
        yield _place(f"refleak_made_{name}", Operation.ALLOC, name, SiteFlag.MADE, _ALIGNMENT)
    for name in REALLOCATORS:
        yield _place(f"refleak_begin_{name}", Operation.REALLOC, name, SiteFlag.FREES_ON_ZERO)
        yield _place(f"refleak_made_{name}", Operation.REALLOC, name, SiteFlag.MADE)
        yield _place(f"refleak_dropped_{name}", Operation.REALLOC, name, SiteFlag.MADE | SiteFlag.DROPPED)


WRAPPERS = Spec("wrappers", tuple(_places()), "The malloc family through the library of --preload", "built in")
