"""Python's objects, as the memory of a process shows them: by their types, whose type is `type`, which is its own.

Who keeps one often points into it: behind the two words of the garbage collector, which stand before the objects that
it knows, or, in C, at the characters of a string (PyUnicode_AsUTF8 gives them out; they live as long as the string).
Source: Include/object.h, Include/cpython/object.h (PyTypeObject), Include/cpython/unicodeobject.h and
Include/internal/pycore_gc.h of CPython 3.6 to 3.13.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tracer.model.distinct_values import distinct, is_any_of, is_in_ordered
from tracer.model.snapshot import Records
from tracer.reachability.memory import Addresses

_TYPE, _BASE = np.uint64(8), np.uint64(256)
"""Of an object its type, of a type its base."""
_COLLECTOR = 16
_CHARACTERS = (32, 40, 48)
"""Of bytes, and of strings that have nothing but ASCII: from 3.12 on, and before."""
_AT_ONCE = 1 << 18


def python_objects(words: Records) -> Addresses:
    """Return where objects begin, ascending; none where there is no CPython. `words`: those that may be pointers."""
    meta = _type_of_types(words)
    if len(meta) == 0:
        return meta
    types = _holding(words, meta, _TYPE)
    return _holding(words, types, _TYPE)


def _type_of_types(words: Records) -> Addresses:
    """Return where `type` is: its type is itself, and its base is `object`, whose type it is too."""
    own = distinct(words["value"][words["at"] - words["value"] == _TYPE])
    if len(own) == 0:
        return own
    derived = words[is_in_ordered(words["at"] - _BASE, own)]
    bases = derived[derived["value"] != derived["at"] - _BASE]
    typed = words[is_in_ordered(words["at"], np.sort(bases["value"] + _TYPE))]
    of_base = dict(zip((typed["at"] - _TYPE).tolist(), typed["value"].tolist(), strict=True))
    found = [at for at, base in zip((bases["at"] - _BASE).tolist(), bases["value"].tolist(), strict=True)
             if of_base.get(base) == at]  # fmt: skip
    return np.array(sorted(found), np.uint64)


def _holding(words: Records, values: Addresses, offset: np.uint64) -> Addresses:
    """Return what has one of these values, which ascend, at an offset; ascending."""
    found = [np.zeros(0, np.uint64)]
    for at in range(0, len(words), _AT_ONCE):
        part = words[at : at + _AT_ONCE]
        found.append(part["at"][is_in_ordered(part["value"], values)] - offset)
    return np.sort(np.concatenate(found))


def kept_by_python(objects: Addresses, value: Addresses, start: Addresses) -> npt.NDArray[np.bool_]:
    """Tell which pointers into blocks, which begin at `start`, are such that Python keeps. `objects`: ascending."""
    if len(objects) == 0:
        return np.zeros(len(value), np.bool_)
    offset = value - start
    collected = (offset == _COLLECTOR) & is_in_ordered(value, objects)
    kept: npt.NDArray[np.bool_] = collected | (is_any_of(offset, _CHARACTERS) & is_in_ordered(start, objects))
    return kept
