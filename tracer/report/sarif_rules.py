"""SARIF rules: each kind of finding in the words of that format."""

from __future__ import annotations

from tracer.late_dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    id: str
    name: str
    short: str
    full: str


RULES = (
    Rule("reference", "ReferenceLeak", "A counted object outlives its use.",
         "Somebody got a reference to the object and never put it. The stack is where the object was created; the"
         " message lists the gets that nobody put, where they could be told."),
    Rule("allocation", "MemoryLeak", "Memory was allocated and never freed.",
         "The blocks were alive when the program ended. The stack is where they were allocated."),
    Rule("mapping", "MappingLeak", "Memory was mapped and never unmapped.",
         "The mappings were there when the program ended. The stack is where they were made."),
    Rule("over-put", "OverPut", "An object was put more often than it was got.",
         "The put happened after the count had reached zero: the object may have been freed under another user."),
    Rule("use-after-zero", "UseAfterZero", "An object was got after its count had reached zero.",
         "Whoever put the last reference may free the object at any time."),
    Rule("delete-while-referenced", "DeleteWhileReferenced", "An object was deleted while references to it existed.",
         "The holders of the other references use freed memory."),
    Rule("reinitialised", "Reinitialised", "An object was initialised again while it was counted.",
         "No error by itself: its memory may have been reused without a traced put or delete."),
    Rule("double-free", "DoubleFree", "A block was freed twice.",
         "The second free damages the allocator, or frees a block that somebody else has got meanwhile."),
    Rule("mismatched-free", "MismatchedFree", "A block was freed by another family of functions than made it.",
         "malloc goes with free, new with delete, new[] with delete[]."),
    Rule("freed-while-counted", "FreedWhileCounted", "An object's memory was freed while references to it were open.",
         "Its count was above that of its creator: whoever holds the others uses freed memory."),
    Rule("freed-past-counter", "FreedPastCounter", "An object was freed past its counter.",
         "No error by itself: the creator's reference was dropped without a put, and no other one was open."),
    Rule("invalid-free", "InvalidFree", "Something was freed that is no live block.",
         "The address is not that of a block, or not its start."),
)  # fmt: skip
