"""Each preset against the real library: a program that leaks, one that does not, one that puts once too often.

Objects that a library makes for itself before main (GLib's tables of interned strings) live to the end in every
program; so what is asserted of leaks is what main called for.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
Totals = tuple[int, int, int, int]
"""Created, gets, puts, destroyed."""


@dataclass(frozen=True)
class Expected:
    clean: dict[str, Totals]
    """Of the clean program; other types are passed over."""
    leaks: dict[str, int]
    """Of the leaking program, complete."""
    over: str
    """The type that the third program puts once too often."""
    leak_totals: dict[str, Totals] = field(default_factory=dict)


PRESETS = {
    "stdio": Expected({"FILE": (10, 0, 10, 10)}, {"FILE": 3}, "FILE", {"FILE": (10, 0, 7, 7)}),
    "sqlite3": Expected(
        {"sqlite3": (2, 0, 2, 2), "sqlite3_stmt": (7, 0, 7, 7)}, {"sqlite3_stmt": 2, "sqlite3": 1}, "sqlite3",
        {"sqlite3": (2, 0, 1, 1), "sqlite3_stmt": (7, 0, 5, 5)},
    ),
    "gobject": Expected(
        {"Widget": (5, 0, 5, 5), "Floater": (6, 7, 13, 6)}, {"Widget": 2, "Floater": 2}, "Widget",
        {"Widget": (5, 2, 5, 3)},
    ),
    "glib": Expected(
        {"GVariant": (1, 1, 2, 1), "GMainLoop": (1, 1, 2, 1)}, {"GBytes": 4, "GVariant": 1, "GPtrArray": 1}, "GMainLoop"
    ),
    "openssl": Expected(
        {"X509": (3, 1, 4, 3), "SSL_CTX": (1, 2, 3, 1), "SSL": (1, 0, 1, 1)},
        {"EVP_PKEY": 1, "SSL": 1, "SSL_CTX": 1, "X509_STORE": 1}, "X509",
    ),
    "json-c": Expected(
        {"json_object": (14, 4, 18, 14), "json_tokener": (1, 0, 1, 1)}, {"json_object": 2}, "json_object",
        {"json_object": (14, 6, 18, 12)},
    ),
    "curl": Expected({"CURL": (6, 0, 6, 6), "CURLM": (1, 0, 1, 1)}, {"CURL": 2}, "CURL", {"CURL": (6, 0, 4, 4)}),
    "cairo": Expected(
        {"cairo_t": (3, 0, 3, 3), "cairo_pattern_t": (3, 3, 6, 3)},
        {"cairo_t": 1, "cairo_surface_t": 1, "cairo_pattern_t": 1}, "cairo_surface_t",
    ),
    "fd": Expected({"fd": (14, 0, 13, 14)}, {"fd": 3}, "fd", {"fd": (14, 0, 10, 11)}),
    "dbus": Expected({"DBusMessage": (6, 0, 6, 6)}, {"DBusMessage": 2}, "DBusMessage", {"DBusMessage": (6, 2, 6, 4)}),
    "kmod": Expected(
        {"kmod_ctx": (1, 2, 3, 1), "kmod_module": (1, 1, 2, 1)}, {"kmod_module": 1, "kmod_ctx": 1}, "kmod_ctx"
    ),
    "udev": Expected({"udev_device": (1, 1, 2, 1), "udev": (1, 1, 2, 1)}, {"udev_device": 1}, "udev"),
    "systemd": Expected(
        {"sd_bus": (1, 1, 2, 1), "sd_event": (1, 2, 3, 1), "sd_event_source": (1, 1, 2, 1)},
        {"sd_event_source": 1, "sd_event": 1}, "sd_bus",
    ),
    "wayland": Expected(
        {"wl_display": (1, 0, 1, 1), "wl_event_queue": (3, 0, 3, 3)}, {"wl_event_queue": 1}, "wl_display"
    ),
    "libav": Expected({"AVBufferRef": (6, 0, 6, 6), "AVFrame": (1, 0, 1, 1)}, {"AVBufferRef": 1}, "AVFrame"),
}  # fmt: skip


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("presets")
    subprocess.run(["make", "-s", "-C", str(HERE), f"OUT={folder}"], check=True, stderr=subprocess.DEVNULL)
    return folder


@pytest.fixture(scope="module", params=PRESETS)
def preset(request: pytest.FixtureRequest) -> str:
    """Of a module: all tests of one library follow each other, so that each run takes over the last one's events."""
    return str(request.param)


@cache
def traced(program: Path, mode: str) -> dict[str, Any]:
    if not program.exists():
        pytest.skip(f"the development files of {program.name} are not installed")
    report = program.with_name(f"{program.name}-{mode}.json")
    command = [
        str(ROOT / "refleak"), "--reachability", "off", "--preset", program.name, "--format", "json", "-o", str(report),
        "--exec", str(program), mode,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert report.exists(), done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert found["lost"] == []
    assert found["probes"]["unresolved"] == []
    return found


def totals(report: dict[str, Any]) -> dict[str, Totals]:
    return {
        row["type"]: (row["created"], row["gets"], row["puts"], row["destroyed"])
        for row in report["totals"]["references"]
    }


def leaks(report: dict[str, Any]) -> dict[str, int]:
    """Return the leaked objects of each type that were made below main."""
    found: Counter[str] = Counter()
    for leak in report["leaks"]:
        if leak["kind"] == "reference" and any(frame["function"] == "main" for frame in leak["stack"]):
            found[leak["type"]] += leak["count"]
    return dict(found)


def errors(report: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(error["kind"], error["type"], error["count"]) for error in report["errors"] if error["type"] != "malloc"]


def test_a_clean_program_is_balanced(preset: str, built: Path) -> None:
    report = traced(built / preset, "clean")
    assert PRESETS[preset].clean.items() <= totals(report).items()
    assert (leaks(report), errors(report)) == ({}, [])


def test_what_was_never_put_leaks(preset: str, built: Path) -> None:
    report = traced(built / preset, "leak")
    assert leaks(report) == PRESETS[preset].leaks
    assert PRESETS[preset].leak_totals.items() <= totals(report).items()
    assert errors(report) == []


def test_one_put_too_many_is_an_error(preset: str, built: Path) -> None:
    """Some libraries notice and abort; the error is seen before that."""
    assert errors(traced(built / preset, "over")) == [("over-put", PRESETS[preset].over, 1)]
