"""GIO 2.74 with tests of its own, as examples/gio/build.sh makes them."""

from __future__ import annotations

from collections.abc import Mapping

import gio_slots
from glib_tests import GlibTests, functions, types_of
from program import ROOT

_HERE = ROOT / "examples/gio"
_TYPES = types_of(_HERE)
_NAMES = {one["name"] for one in _TYPES}
_CALLS_PUT = {"g_source_unref": "GSource"}
_CALLS_GET = {"g_variant_ref_sink": "GVariant"}


class Gio(GlibTests):
    """Tests of GIO in one program."""

    folder = _HERE
    binary = _HERE / "build/gio-tests"
    slots = gio_slots
    puts = functions(_TYPES, "put") | _CALLS_PUT
    gets = functions(_TYPES, "get") | _CALLS_GET
    doors = (*_CALLS_PUT, *_CALLS_GET)
    unused = "g_inet_address_mask_new_from_string"
    options = ("--spec", str(_HERE / "types.toml"))
    held = gio_slots.HELD

    def family(self, type_name: str) -> str:
        """Return GObject for its classes: what fills a slot is told by its place."""
        return type_name if type_name in _NAMES else "GObject"

    def changes(self, address: int, functions: Mapping[str, int]) -> bool:
        """Change calls of GIO itself, which is linked between two marks."""
        return functions["gio_begins"] <= address < functions["gio_ends"]
