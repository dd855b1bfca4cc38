"""What `refleak discover` finds in the presets' libraries by headers, against the presets, which are made by hand.

The rules were made with DEVELOPED; SCORED was looked at when they stood. What a preset lacks was looked up in each
library's documents: JUDGED_RIGHT lists what is right of it. Whatever else is found beside a preset counts as wrong.
Run as a program, it prints the score of each.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tracer.dwarf.debug_facts import DebugFacts
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.specs.description import DescribedType
from tracer.specs.discovery import discover
from tracer.specs.files import parse_spec
from tracer.specs.headers import read_prototypes
from tracer.specs.presets import read_preset
from tracer.specs.toml_text import spec_text

DEVELOPED = ("cairo", "dbus", "glib", "json-c", "libav", "systemd")
SCORED = ("curl", "gobject", "kmod", "openssl", "sqlite3", "udev", "wayland")
FOLDERS = [*Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib")]
JUDGED_RIGHT = (
    "cairo_x*_surface_create_*", "cairo_pop_group", "g_ptr_array_new_null_terminated", "g_uri_parse_params",
    "json_object_deep_copy", "json_object_from_fd*", "json_object_from_file", "json_object_new_null",
    "json_tokener_parse*", "av_hwdevice_ctx_alloc", "av_hwframe_ctx_alloc", "sd_bus_open_*",
    "sd_event_add_inotify_fd", "BIO_dup_chain", "BIO_new_*", "CMS_dataInit", "EVP_PKEY_new_*", "PEM_read_*",
    "PKCS12_parse", "PKCS7_dataInit", "TS_CONF_load_*", "X509_load_http", "d2i_*",
)  # fmt: skip
Function = tuple[str, str, str]
"""Name, operation, where the object is."""


def functions_of(types: tuple[DescribedType, ...], known: set[str]) -> dict[Function, str]:
    """Return the type of each function that the library has and that makes or ends something or counts it."""
    found = {}
    for type_ in types:
        for function in type_.functions:
            spec = function.spec
            if spec.function in known and spec.operation.name in ("CREATE", "GET", "PUT", "DELETE"):
                found[spec.function, spec.operation.name, str(spec.object)] = type_.name
    return found


def score(preset: str) -> tuple[int, int, int]:
    """Return how many of the preset's functions were found, how many it has, and how many that are wrong were."""
    description = read_preset(preset)
    files = (path for folder in FOLDERS for pattern in description.libraries for path in sorted(folder.glob(pattern)))
    path = next(files)
    with Image.open(path) as image:
        names = {symbol.name for symbol in read_symbol_table(image).matching("*") if symbol.kind == STT_FUNC}
    declared = read_prototypes(names, path.name.partition(".so")[0].removeprefix("lib"))
    text = spec_text(path.name, "*", discover(names, DebugFacts(functions=dict(declared)), declared))
    wanted = functions_of(description.types, names)
    found = functions_of(parse_spec(text, "found", "found").types, names)
    same_types = {found[function] for function in wanted if function in found}
    beside = [f[0] for f, type_ in found.items() if type_ in same_types and f not in wanted]
    wrong = sum(not any(fnmatchcase(name, pattern) for pattern in JUDGED_RIGHT) for name in beside)
    return sum(function in found for function in wanted), len(wanted), wrong


@pytest.mark.parametrize("half", [DEVELOPED, SCORED], ids=["developed", "scored"])
def test_nine_of_ten_functions_are_found_and_few_wrong_ones(half: tuple[str, ...]) -> None:
    found, wanted, wrong = map(sum, zip(*(score(preset) for preset in half), strict=True))
    assert wanted > 90
    assert found >= 0.9 * wanted, f"{found} of {wanted}"
    assert wrong <= 0.05 * found, f"{wrong} wrong beside {found}"


if __name__ == "__main__":
    for preset in (*DEVELOPED, *SCORED):
        found, wanted, wrong = score(preset)
        print(f"{preset:10} {found:3} of {wanted:3} found, {wrong} wrong", flush=True)
