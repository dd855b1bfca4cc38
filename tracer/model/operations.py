"""Operations of traced functions, and where their values are found."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from tracer.late_dataclasses import dataclass


class Operation(IntEnum):
    """`enum operation` of bpf/abi.h, and the control operations that only the tracer uses."""

    NONE = 0
    CREATE = 1
    GET = 2
    PUT = 3
    DELETE = 4
    ALLOC = 5
    REALLOC = 6
    FREE = 7
    MAP = 8
    UNMAP = 9
    REMAP = 10
    ERROR = 11
    UNDO = 12
    NAME = 13
    """The function returns a handle of a type, whose name is given to it."""
    INTERPRETER = 14
    """The function enters an interpreter, whose state is its object."""
    CODE_END = 15
    """The function ends its object, code of an interpreter."""
    HOLDER_FREED = 16
    """A block that held a counted object was freed; of events only."""


COUNTING = frozenset({Operation.CREATE, Operation.GET, Operation.PUT, Operation.DELETE})
"""Operations on counted objects."""
INTERPRETED = frozenset({Operation.INTERPRETER, Operation.CODE_END})
"""Operations of interpreters themselves: they are no events."""


class LocationKind(IntEnum):
    NOWHERE = 0
    REGISTER = 1
    STACK = 2
    RETURN = 3
    CONSTANT = 4
    OBJECT = 5
    """The object, then adjust and dereference, then `offset`; for counters of specs."""
    CODE = 6
    """The address of the probed instruction plus `offset`."""


@dataclass(frozen=True)
class Location:
    """Where a value is found when a probe fires; `struct location` of bpf/abi.h.

    The value is `base + adjust`, or with `dereference` the pointer stored at `base + adjust`.
    """

    kind: LocationKind = LocationKind.NOWHERE
    register: int = 0
    offset: int = 0
    dereference: int = 0
    """0: no; 1: the pointer at the address; 2: the int there."""
    width: int = 8
    adjust: int = 0

    def __bool__(self) -> bool:
        return self.kind != LocationKind.NOWHERE


NOWHERE = Location()


def constant(value: int) -> Location:
    return Location(LocationKind.CONSTANT, offset=value)


RETURN_VALUE = Location(LocationKind.RETURN)


class SiteFlag(IntFlag):
    """`enum site_flag` of bpf/abi.h."""

    PRODUCT = 1
    FREES_ON_ZERO = 2
    OUT_POINTER = 4
    COUNTER = 8
    ENTRY_RESULT = 16
    DELETES_OBJECT = 32
    NAMED = 64
    REPLACES = 128
    SHARES = 256
    HANDLE = 512
    FOLLOWS = 1024
    INLINED = 2048
    CLASS = 4096
    WRAPPER = 8192
    MADE = 16384
    DROPPED = 32768


NO_FLAGS = SiteFlag(0)


class MemoryTrait(IntFlag):
    """What a spec says of the memory of an allocator's blocks."""

    ROOT = 1
    """What a block points at is held, and so is the block, whatever points at it."""
    HIDES = 2
    """Pointers may stand there in a form that nobody can see."""


NO_TRAITS = MemoryTrait(0)


class Failure(IntEnum):
    """`enum failure` of bpf/abi.h: which return value says that a call did nothing."""

    NEVER = 0
    NULL = 1
    NEGATIVE = 2
    NONZERO = 3


@dataclass(frozen=True)
class FunctionSpec:
    """What one function means: part of a spec. All locations are those at its first instruction."""

    function: str
    operation: Operation
    type_name: str | None = None
    """The literal type (references) or the allocator's name (allocations); None when NAMED."""
    group: int = 0
    """Family of types that share one name space of addresses. 0 for what is built in; the calls of others nest."""
    flags: SiteFlag = NO_FLAGS
    object: Location = NOWHERE
    counter: Location = NOWHERE
    count: Location = NOWHERE
    size: Location = NOWHERE
    name: Location = NOWHERE
    holder: Location = NOWHERE
    failure: Failure = Failure.NEVER
    memory: MemoryTrait = NO_TRAITS
    libraries: tuple[str, ...] = ()
    """Patterns (fnmatch) of the basenames it applies to; empty for every binary."""


@dataclass(frozen=True)
class Spec:
    """A named set of functions: the four stubs, the malloc family, a preset, a user's own."""

    name: str
    functions: tuple[FunctionSpec, ...]
    description: str = ""
    source: str = ""


@dataclass(frozen=True)
class Site:
    """One resolved place of an operation: `function` as found in a binary."""

    function: FunctionSpec
    path: str
    """Path of the binary in the tracer's own view, fit to be opened."""
    file_offset: int
    """Of the function's first instruction."""
    link_address: int
    size: int = 0
    """Of the function, bytes; 0 where the symbol table does not say."""
    inlined: bool = False
    """It is a copy in another function; the addresses are those of its first instruction."""


@dataclass(frozen=True)
class Placement:
    """A site moved to the instruction that is cheapest to probe and sees the same values."""

    site: Site
    file_offset: int
    return_distance: int = 0
    """Bytes from the stack pointer at the probe to the return address; of an inlined instance: from its beginning to
    the probe."""
    object: Location = NOWHERE
    counter: Location = NOWHERE
    count: Location = NOWHERE
    size: Location = NOWHERE
    name: Location = NOWHERE
    holder: Location = NOWHERE
    instruction: str = ""
    cost: str = ""
    """Cost class of the instruction: `call` (5-byte nop), `trap`, `step`, or empty where unknown."""
    reason: str = ""
    """Why no cheaper instruction would do; empty where one was found."""
    return_file_offset: int | None = None
    """Where the return probe sits, if that is another instruction than the entry probe's."""

    @property
    def return_offset(self) -> int:
        """Return where the return probe sits."""
        return self.file_offset if self.return_file_offset is None else self.return_file_offset


def place_at_entry(site: Site) -> Placement:
    """Return the placement at the function's first instruction, good on every architecture."""
    spec = site.function
    return Placement(
        site, site.file_offset, 0, spec.object, spec.counter, spec.count, spec.size, spec.name, spec.holder
    )


