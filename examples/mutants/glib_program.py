"""GLib 2.74 with tests of its own, as examples/glib/build.sh makes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import glib_slots
from glib_tests import GlibTests, functions, types_of
from program import ROOT

_HERE = ROOT / "examples/glib"
_TYPES = types_of(_HERE)
_CALLS_PUT = {"g_source_unref": "GSource", "g_tree_destroy": "GTree"}
_CALLS_GET = {"g_variant_ref_sink": "GVariant"}

_OF_LIBRARY = re.compile(r"g_\w+")
"""No part that is never run, which stands elsewhere, and no stub for another library's function."""


class Glib(GlibTests):
    """Tests of GLib in one program."""

    folder = _HERE
    binary = _HERE / "build/glib-tests"
    slots = glib_slots
    puts = functions(_TYPES, "put") | _CALLS_PUT
    gets = functions(_TYPES, "get") | _CALLS_GET
    doors = (*_CALLS_PUT, *_CALLS_GET)
    unused = "g_hostname_to_ascii"
    options = ("--spec", str(_HERE / "types.toml"))
    held = glib_slots.HELD

    def changes(self, address: int, functions: Mapping[str, int]) -> bool:
        """Change calls of the library: it is linked behind the tests, whose functions have no such names."""
        return address >= min(start for name, start in functions.items() if _OF_LIBRARY.fullmatch(name))
