"""Classes of C++ that count by methods, by the names and the code of these."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from built_program import build

from tracer.specs.files import parse_spec

ROOT = Path(__file__).parents[3]
SOURCE = """
#include <atomic>
#define APART __attribute__((noinline, used))
namespace doc {
class Page { long size; int count; public:
    APART explicit Page(int size) : size(size), count(1) {}
    APART virtual ~Page() {}
    APART void incRefCnt() { count++; }
    APART void decRefCnt() { if (--count == 0) delete this; } };
class Cover : public Page { char title[40]; public: APART Cover() : Page(3), title{} {} };
}
class Font { char name[20]; mutable int n; public:
    APART Font() : name{}, n(1) {}
    APART Font(const Font &of) : name{of.name[0]}, n(1) {}
    APART void ref() const { n += 1; }
    APART void unref() const { n -= 1; if (n == 0) delete this; } };
class Shared { long at; std::atomic<int> n; public: APART Shared() : at(0), n(1) {}  /* no kernel probes `lock add` */
    APART void retain() { n.fetch_add(1, std::memory_order_relaxed); }
    APART void release() { if (n.fetch_sub(1) == 1) delete this; } };
struct Stream { long at; unsigned long long users; virtual ~Stream() {}
    APART Stream(long at) : at(at) { users = 1; }
    APART unsigned long AddRef() { return ++users; }
    APART unsigned long Release() { unsigned long left = --users; if (!left) delete this; return left; } };
struct Late { int n; APART Late() : n(0) {}  /* whoever takes the first has made none */
    APART void ref() { n++; } APART void unref() { if (!--n) delete this; } };
struct Wrapper { Font *of; APART Wrapper(Font *of) : of(of) {}  /* its methods count in another object */
    APART void ref() { of->ref(); } APART void unref() { of->unref(); } };
struct Meter { int up, down; APART Meter() : up(1), down(1) {}
    APART void retain() { up++; } APART void release() { down--; } };
struct Steps { int n; APART Steps() : n(1) {}
    APART void ref(int by) { n += by; } APART void unref(int by) { n -= by; } };
template <class T> struct Held { T of; int n; APART Held() : of(), n(1) {}
    APART void ref() { n++; } APART void unref() { if (!--n) delete this; } };
template struct Held<int>;

APART static void use(int lose) {
    auto *page = new doc::Page(7); page->incRefCnt(); page->decRefCnt(); if (!lose) page->decRefCnt();
    doc::Page *cover = new doc::Cover; cover->decRefCnt();
    auto *font = new Font, *copy = new Font(*font); font->ref(); font->unref(); font->unref(); copy->unref();
    auto *stream = new Stream(5); stream->AddRef(); stream->Release(); if (!lose) stream->Release();
    auto *late = new Late; late->ref(); late->unref();
    auto *held = new Held<int>; held->ref(); held->unref(); held->unref();
    Font *in = new Font; Wrapper around(in); around.ref(); around.unref(); in->unref();
    auto *shared = new Shared; shared->retain(); shared->release(); shared->release();
    Meter meter; meter.retain(); meter.release(); Steps steps; steps.ref(2); steps.unref(2);
}
int main(int count, char **) { for (int i = 0; i < 3; i++) use(count > 1); return 0; }
"""
BUILDS = [(compiler, level) for compiler in ("g++", "clang++") for level in ("-O0", "-O1", "-O2", "-Os")]


@pytest.fixture(scope="module", params=BUILDS, ids=" ".join)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, level = request.param
    return build(tmp_path_factory.mktemp("methods"), SOURCE, level, "-std=c++17", compiler=compiler, name="methods")


def discovered(program: Path, *words: str | Path) -> str:
    command = [ROOT / "refleak", "discover", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_class_that_counts_is_known_by_its_code(program: Path) -> None:
    text = discovered(program)
    types = {type_.name: type_ for type_ in parse_spec(text, "", "").types}
    assert set(types) - {"Shared"} == {"doc::Page", "Font", "Stream"}
    made = {name: sum("C2" in f.spec.function for f in type_.functions) for name, type_ in types.items()}
    assert made == {"doc::Page": 1, "Font": 2, "Stream": 1} | ({"Shared": 1} if "Shared" in types else {})
    why = "no constructor is seen to set the count to 1: add what makes one"
    assert f'# commented out: {why}\n# [[type]]\n# name = "Late"' in text
    assert not any(name in text for name in ("Wrapper", "Meter", "Steps", "Held"))


def test_what_is_found_counts_right(program: Path, tmp_path: Path) -> None:
    spec = tmp_path / "methods.toml"
    spec.write_text(discovered(program, "--try", program))
    for words, alive in (((), {}), (("lose",), {"doc::Page": 3, "Stream": 3})):
        report = tmp_path / f"{len(words)}.json"
        command = [ROOT / "refleak", "--spec", spec, "--refs-only", "--format", "json", "-o", report, program, *words]
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        found = json.loads(report.read_text())
        rows = {row["type"]: row for row in found["totals"]["references"] if row["type"] != "Shared"}
        assert {name: row["created"] for name, row in rows.items()} == {"doc::Page": 6, "Font": 9, "Stream": 3}
        assert {name: row["outstanding"] for name, row in rows.items() if row["outstanding"]} == alive
        assert found["errors"] == []
