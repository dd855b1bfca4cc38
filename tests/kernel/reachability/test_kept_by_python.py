"""What Python keeps by pointers into the middle of blocks, and what is lost all the same."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import Refleak

PYTHON = "/usr/bin/python3"
MAKES = """
import ctypes, gc, os
numbers = [str(n) for n in range(100, 200)]
kept = [tuple(numbers) for n in range(7)]  # 840 bytes each, of malloc: tuples that the collector need not look at
gc.collect()
lost = tuple(numbers[:77])
gc.collect()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(lost))
text = "x" * 5000
address = ctypes.pythonapi.PyUnicode_AsUTF8
address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object]
place = ctypes.c_void_p(address(text))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
del lost, text
os._exit(0)
"""
TUPLE, HEAD = 24, 16


@pytest.fixture(scope="module", params=["pymalloc", "malloc"])
def classes(request: pytest.FixtureRequest, refleak: Refleak) -> Counter[tuple[str, int]]:
    """Return how many blocks there are of each class and size."""
    run = refleak(
        "--reachability", "auto", "--no-default-suppressions", "--interpreters", "off",
        target=(PYTHON, "-I", "-c", MAKES), environment=(("PYTHONMALLOC", request.param),),
    )  # fmt: skip
    run.check_whole()
    found: Counter[tuple[str, int]] = Counter()
    for leak in run.leaks:
        if leak["kind"] == "allocation" and leak["size_min"] == leak["size_max"]:
            found[leak["reachability"], leak["size_min"]] += leak["count"]
    return found


def test_a_tuple_behind_the_collectors_words_is_held(classes: Counter[tuple[str, int]]) -> None:
    size = HEAD + TUPLE + 8 * 100
    assert classes["reachable", size] == 7
    assert classes["possible", size] == 0


def test_a_tuple_that_nobody_has_is_lost(classes: Counter[tuple[str, int]]) -> None:
    assert classes["lost", HEAD + TUPLE + 8 * 77] == 1


def test_a_text_whose_characters_are_kept_in_c_is_held(classes: Counter[tuple[str, int]]) -> None:
    held = {word: count for (word, size), count in classes.items() if 5001 + 40 <= size <= 5001 + 48}
    assert held == {"reachable": 1}
