"""C++ and Rust names as they were written, and the languages that the names give away."""

from __future__ import annotations

from pathlib import Path

import cxxfilt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.symbols import demangling, demangling_library
from tracer.symbols.demangling import demangled, language_of

WRITTEN = {
    "main": "main",
    "_Z3fooi": "foo(int)",
    "_ZN3app4PoolC2Ev": "app::Pool::Pool()",
    "_ZNSt6vectorIiSaIiEE9push_backEOi": "std::vector<int, std::allocator<int> >::push_back(int&&)",
    "_Z3fooi.cold": "foo(int)",
    "_Z3fooi.constprop.0.isra.0": "foo(int)",
    "worker.part.0": "worker",
    "worker.lto_priv.12": "worker",
    "memcpy.avx2": "memcpy.avx2",
    ".cold": ".cold",
    "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",
    "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.123": "core::fmt::Formatter::pad",
    "_ZN60_$LT$app..Pool$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h0123456789abcdefE":
        "<app::Pool<T> as core::ops::drop::Drop>::drop",
    "_ZN3app28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE": "app::{{closure}}",
    "_ZN3app28_$u7b$$u7b$closure$u7d$$u7d$4next17h0123456789abcdefE": "app::{{closure}}::next",
    "_RNvNtC3app4pool4make": "app::pool::make",
    "_RNvMNtCs1234_3app4poolNtB2_4Pool3new": "<app::pool::Pool>::new",
    "_Znonsense": "_Znonsense",
    "_Rnonsense": "_Rnonsense",
    "_Z": "_Z",
    "name with\nnewline": "name with\nnewline",
}


def test_names_are_as_they_were_written() -> None:
    assert demangled(WRITTEN.keys()) == WRITTEN


def test_without_libstdcxx_a_tool_demangles(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise cxxfilt.LibraryNotFound(name)

    monkeypatch.setattr(demangling_library.cxxfilt, "demangle", missing)
    # llvm-cxxfilt 19 closes two lists of arguments at once, as it is written since C++11; others leave a space.
    assert {name: text.replace(">>", "> >") for name, text in demangled(WRITTEN.keys()).items()} == WRITTEN


def test_without_cxxfilt_a_tool_demangles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangling_library, "cxxfilt", None)
    assert demangled(["_ZN4conn5closeEi"]) == {"_ZN4conn5closeEi": "conn::close(int)"}


@pytest.mark.parametrize("tool", ["llvm-cxxfilt", "c++filt"])
def test_either_tool_knows_rust(tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = demangling.find_tool
    monkeypatch.setattr(demangling, "find_tool", lambda name: find(name) if name == tool else None)
    rust = {name: text for name, text in WRITTEN.items() if name.startswith("_R")}
    assert demangled(rust) == rust


def test_without_any_demangler_names_stay_mangled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangling, "find_tool", lambda name: None)
    assert demangled(["_RNvC3app4main", "_Z3fooi"]) == {"_RNvC3app4main": "_RNvC3app4main", "_Z3fooi": "foo(int)"}


@pytest.mark.parametrize("script", ["exit 1", "cat; echo more", "echo one", "kill -9 $$"])
def test_a_tool_that_misbehaves_is_not_believed(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "llvm-cxxfilt"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(demangling, "find_tool", lambda name: str(tool) if name == "llvm-cxxfilt" else None)
    names = ["_RNvC3app4main", "_RNvC3app4free"]
    assert demangled(names) == {name: name for name in names}


@pytest.mark.parametrize(
    ("name", "file", "language"),
    [
        ("_Z3fooi", "a.c", "C++"),
        ("_RNvC3app4main", None, "Rust"),
        ("_ZN4core3fmt3pad17h0123456789abcdefE", None, "Rust"),
        ("main", "/src/main.c", "C"),
        ("main", "/src/main.cc", "C++"),
        ("main", "/src/main.rs", "Rust"),
        ("main", "/src/main.h", None),
        ("main", "/src.c/main", None),
        ("main", None, None),
        (None, None, None),
    ],
)
def test_language(name: str | None, file: str | None, language: str | None) -> None:
    assert language_of(name, file) == language


@given(st.lists(st.text(alphabet="_RZNCsE$.<>0123456789abhu\n\0é", max_size=40).map("_Z".__add__), max_size=5))
def test_any_name_is_survived(names: list[str]) -> None:
    assert demangled(names).keys() == set(names)
