"""Specs discovered in a program that gcc built here, with DWARF of each version and without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.cli.main import main
from tracer.dwarf.debug_facts import DebugFacts, FunctionFacts, Member, Pointee, read_debug_facts
from tracer.elf.image import Image
from tracer.specs.discovery import discover
from tracer.specs.files import read_spec_file

SOURCE = """
#include <stdatomic.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noipa))
typedef struct refcount_struct { atomic_int refs; } refcount_t;
struct dso { long id; char name[12]; refcount_t refcnt; };
struct hat { int x; };                       /* no counter */
typedef struct { void *data; unsigned ref_count; } Box;
struct dso *dso__new(long id);
NOINLINE struct dso *dso__new(long id) { struct dso *d = calloc(1, sizeof *d); d->id = id; return d; }
NOINLINE struct dso *dso__get(struct dso *d) { d->refcnt.refs++; return d; }
NOINLINE void dso__delete(struct dso *d) { free(d); }
NOINLINE void dso__put(struct dso *d) { if (!--d->refcnt.refs) dso__delete(d); }
NOINLINE struct dso *load_new_dso(int x) { return dso__new(x); }
NOINLINE struct dso *find_dso(int x) { return dso__new(x); }
NOINLINE Box *box_new(void) { return calloc(1, sizeof(Box)); }
NOINLINE Box *box_ref(Box *b) { b->ref_count++; return b; }
static inline __attribute__((always_inline)) Box *box_grab(Box *b) { b->ref_count++; return b; }
NOINLINE void box_unref(Box *b) { b->ref_count--; }
NOINLINE struct hat *hat_get(struct hat *h) { return h; }
NOINLINE void hat_put(struct hat *h) { h->x = 1; }
NOINLINE int car_get(int n) { return n; }
NOINLINE void car_put(int n) { (void)n; }
NOINLINE struct hat *door_open(const char *n) { (void)n; return 0; }
NOINLINE void door_close(struct hat *h) { (void)h; }
int main(void) {
    Box *b = box_new();
    box_unref(box_grab(b)); box_unref(box_grab(box_ref(b))); box_unref(b);
    dso__put(dso__get(load_new_dso(1))); hat_put(hat_get(door_open("a"))); car_put(car_get(1)); door_close(0);
    return find_dso(2) == 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("discovery")


def built(folder: Path, *flags: str) -> Path:
    path = folder / ("program" + "".join(flags))
    if not path.exists():
        subprocess.run(["gcc", "-O1", *flags, "-x", "c", "-o", path, "-"], input=SOURCE, text=True, check=True)
    return path


@pytest.mark.parametrize(
    "flags", [("-gdwarf-5",), ("-gdwarf-4",), ("-gdwarf-3",), ("-gdwarf-5", "-gz"), ("-gdwarf64", "-g")]
)
def test_facts(flags: tuple[str, ...], folder: Path) -> None:
    with Image.open(built(folder, *flags)) as image:
        facts = read_debug_facts(image)
    dso, box = Pointee("dso", 1), Pointee("Box", 1)
    assert facts.functions["dso__get"] == FunctionFacts("dso__get", (dso,), dso)
    assert facts.functions["dso__put"] == FunctionFacts("dso__put", (dso,), Pointee())
    assert facts.functions["box_ref"] == FunctionFacts("box_ref", (box,), box)
    assert facts.functions["car_get"] == FunctionFacts("car_get", (Pointee(),), Pointee())
    assert facts.structs["dso"][-1] == Member("refcnt", 20, "refcount_t")
    assert facts.structs["Box"] == (Member("data", 0, ""), Member("ref_count", 8, "unsigned int"))
    assert facts.inlined["box_grab"] == 2
    assert facts.inlined["box_ref"] == 0


def test_what_is_written_can_be_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, spec = built(folder, "-g"), folder / "found.toml"
    assert main(["discover", str(program), "-o", str(spec)]) == 0
    assert capsys.readouterr().err == "refleak: 3 types proposed, 2 of them counted; 3 confirmed by DWARF\n"
    description = read_spec_file(spec)
    assert description.libraries == ("program-g",)
    assert {
        (t.name, f.spec.operation.name.lower(), f.spec.function, f.spec.counter.adjust)
        for t in description.types for f in t.functions
    } == {
        ("box", "create", "box_new", 8), ("box", "get", "box_ref", 8), ("box", "put", "box_unref", 8),
        ("dso", "create", "dso__new", 20), ("dso", "create", "load_new_dso", 20), ("dso", "get", "dso__get", 20),
        ("dso", "put", "dso__put", 20), ("dso", "delete", "dso__delete", 20),
        ("door", "create", "door_open", 0), ("door", "put", "door_close", 0),
    }  # fmt: skip
    assert main(["discover", "--counted", str(program)]) == 0
    assert "door" not in capsys.readouterr().out


def test_by_names_alone(folder: Path) -> None:
    names = {
        "x_ref", "x_unref", "x_new", "y_get", "y_put", "z__get", "z__put", "w_up_ref", "w_free", "w_new", "v_open",
    }
    found = {p.name: (p.creates, p.gets, p.puts) for p in discover(names, DebugFacts())}
    assert found == {
        "x": (("x_new",), ("x_ref",), ("x_unref",)),
        "z": ((), ("z__get",), ("z__put",)),
        "w": (("w_new",), ("w_up_ref",), ("w_free",)),
    }


def test_nothing_to_discover(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "empty"
    subprocess.run(["gcc", "-x", "c", "-o", path, "-"], input="int main(void) { return 0; }", text=True, check=True)
    assert main(["discover", str(path)]) == 67
    assert "has no functions that pair" in capsys.readouterr().err


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damage_is_a_miss(folder: Path, data: st.DataObject) -> None:
    raw = bytearray(built(folder, "-gdwarf-5").read_bytes())
    with Image(bytes(raw)) as image:
        sections = [s for n in (".debug_info", ".debug_abbrev", ".debug_str") if (s := image.section(n))]
    for _ in range(data.draw(st.integers(1, 20))):
        section = data.draw(st.sampled_from(sections))
        raw[section.file_offset + data.draw(st.integers(0, section.size - 1))] = data.draw(st.integers(0, 255))
    with Image(bytes(raw)) as image:
        facts = read_debug_facts(image)
    discover(facts.functions.keys(), facts)
