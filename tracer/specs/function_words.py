"""Words in the names of C functions that say what they do to an object."""

from __future__ import annotations

import re

from tracer.late_patterns import late_pattern

GET_PUT = (
    ("__get", "__put"), ("_up_ref", "_free"), ("_ref", "_unref"), ("_reference", "_unreference"),
    ("_reference", "_destroy"), ("_retain", "_release"), ("_addref", "_release"), ("_add_ref", "_release"),
    ("_incref", "_decref"), ("_acquire", "_release"), ("_hold", "_release"), ("_get", "_put"), ("_get", "_unref"),
    ("Ref", "Unref"), ("_inc_ref", "_dec_ref"), ("Retain", "Release"), ("_addref", "_delref"), ("_grab", "_drop"),
)  # fmt: skip
"""Endings of two functions of one type that take a reference and give it back, the surest first."""
MAKE_END = (
    ("__new", "__delete"), ("_new", "_free"), ("_new", "_delete"), ("_new", "_destroy"), ("_create", "_destroy"),
    ("_create", "_free"), ("_alloc", "_free"), ("_open", "_close"), ("_init", "_cleanup"), ("_init", "_exit"),
)  # fmt: skip
DELETES = ("__delete", "__free", "__destroy", "_delete", "_free", "_destroy", "_finalize")
"""Endings of what ends an object whatever its count."""


_BETWEEN_WORDS = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


def spaced(name: str) -> str:
    """Return a name with `_` between all of its words: xmlNewDoc is xml_New_Doc."""
    return _BETWEEN_WORDS.sub("_", name)


def _words(*words: str) -> re.Pattern[str]:
    return late_pattern(rf"(?:^|_)(?:{'|'.join(words)})(?:\d+)?(?:_|$)", re.IGNORECASE)


MAKES = late_pattern(r"(?:^|_)(?:new|create|clone|copy|dup)(?:\d+)?(?:_|$)")
MAKES_AND_RETURNS = _words(
    "new", "create", "clone", "copy", "dup[a-z]*", "open", "allocz?", "allocate", "init", "connect", "parse", "load",
    "receive", "pop", "steal", "d2i", "read", "from", "build", "prepare", "(?:builder|dict)_end",
)  # fmt: skip
"""Of functions that a prototype shows to return such an object."""
MAKES_THROUGH_POINTER = _words(
    "new", "create", "clone", "copy", "dup[a-z]*", "open", "allocz?", "init", "connect", "parse", "load", "receive",
    "add", "default", "prepare", "call", "read", "from",
)  # fmt: skip
"""Of functions that store the object where a parameter points."""
BORROWS = _words(
    "get", "peek", "find", "lookup", "first", "next", "last", "prev", "previous", "parent", "current", "nth", "ref",
    "reference", "set", "borrow",
)  # fmt: skip
"""Of functions that return an object which stays somebody else's."""
ENDS = late_pattern(
    r"_(?:free|delete|destroy|close|cleanup|finali[sz]e|finish|disconnect|unref|release|end|put|deinit)(?:_v\d+)?$"
)
CAMEL_ENDS = late_pattern(r"(?<=[a-z0-9])(?:Free|Destroy|Delete|Close|Release|Unref)(?=[A-Z]|$)")
BORROWS_FIRST = late_pattern(r"_(?:get\d*|peek|find|lookup)_(?:.*_)?(?:new|copy|dup|create)", re.IGNORECASE)
"""Of functions that return what somebody else made: x_get_new_y."""
STARTS_UP = late_pattern(r"_init\d*(?:_|$)", re.IGNORECASE)
PUTS = late_pattern(r"_(?:unref|unreference|decref)(?:_|$)")
"""Of functions that give a reference back and do something else too."""
WEAK = late_pattern(r"_weak$")
"""A weak reference keeps nothing alive."""
ERROR_TYPES = late_pattern(r"err(?:or)?(?:_t)?$", re.IGNORECASE)
"""What stands behind the last parameter of many functions, and is made where they fail."""
PUBLIC_PUTS = late_pattern(r"_free$")
"""Of a counted type's functions in a header: who calls it has a reference, and gives it back."""
