"""Prototypes from headers: what gcc prints of them, and a library that has headers but no DWARF."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.cli.main import main
from tracer.dwarf.debug_facts import FunctionFacts, Pointee
from tracer.specs import headers
from tracer.specs.headers import parse_declaration

HEADER = """
#ifndef BOX_H
#define BOX_H
typedef struct box box_t;
struct lid;
typedef struct bag *BagPtr;
typedef struct Basket_Struct *Basket;
int box_open(const char *path, box_t **box);
box_t *box_ref(box_t *box);
void box_unref(box_t *box);
void box_close_unref(box_t *box);
box_t *box_get_current(void);
const box_t *box_new_default(void);
int box_new_lid(box_t *box, struct lid **lid);
void lid_free(struct lid **lid);
BagPtr newBag(int size);
void freeTheBag(BagPtr bag, int how);
void bagFree(BagPtr bag);
Basket BasketMake(const char *of);
Basket BasketCreate(int size);
int BasketSize(Basket basket);
void BasketFree(Basket basket);
void *any_ref(void *any);
void any_unref(void *any);
#endif
"""
SOURCE = """
#include "box.h"
int box_open(const char *p, box_t **b) { return 0; } box_t *box_ref(box_t *b) { return b; } void box_unref(box_t *b) {}
void box_close_unref(box_t *b) {} box_t *box_get_current(void) { return 0; }
const box_t *box_new_default(void) { return 0; } int box_new_lid(box_t *b, struct lid **l) { return 0; }
void lid_free(struct lid **l) {} BagPtr newBag(int s) { return 0; } void freeTheBag(BagPtr b, int h) {}
Basket BasketMake(const char *o) { return 0; } Basket BasketCreate(int s) { return 0; }
int BasketSize(Basket b) { return 0; } void BasketFree(Basket b) {}
void bagFree(BagPtr b) {} void *any_ref(void *a) { return a; } void any_unref(void *a) {}
"""
SPEC = """description = "What refleak discovered in libbox.so"
libraries = ["libbox.so*"]

# box_t, by the headers
[[type]]
name = "box"
create = "box_open(object=*arg1, fails=negative)"
get = "box_ref"
put = ["box_unref", "box_close_unref"]

# by the names alone: check that they mean what they say
[[type]]
name = "any"
get = "any_ref"
put = "any_unref"

# Basket, by the headers
[[type]]
name = "Basket"
create = "BasketCreate"
put = "BasketFree"

# Bag, by the headers
[[type]]
name = "bag"
create = "newBag"
put = "bagFree"

# lid, by the headers
[[type]]
name = "lid"
create = "box_new_lid(object=*arg1, fails=negative)"
put = "lid_free(object=*arg0)"
"""


def described(line: str) -> FunctionFacts | None:
    return parse_declaration(f"/* x.h:1:NC */ extern {line}")


def test_a_line_of_declarations() -> None:
    box = Pointee("box", 1)
    assert described("struct box *f (struct box *, int, const box **);") == FunctionFacts(
        "f", (box, Pointee(), Pointee("box", 2, True)), box
    )
    assert described("void g (void);") == FunctionFacts("g", (), Pointee())
    assert described("int h (void (*)(struct box *, int), char *, void *, gpointer);") == FunctionFacts(
        "h", (Pointee(), Pointee(), Pointee("", 1), Pointee("", 1)), Pointee()
    )
    assert described("xmlDocPtr i (xmlDocPtr *);") == FunctionFacts("i", (Pointee("xmlDoc", 2),), Pointee("xmlDoc", 1))
    assert described("int array[3];") is None


@given(st.text(alphabet="abf(),*;[] /struct", max_size=60))
def test_any_line_is_a_function_or_none(line: str) -> None:
    described(line)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    include = tmp_path / "include"
    include.mkdir()
    (include / "box.h").write_text(HEADER)
    monkeypatch.setattr(headers, "FOLDERS", (include,))
    built = tmp_path / "libbox.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-s", "-w", "-I", include, "-Wl,-soname,libbox.so", "-x", "c", "-o", built, "-"],
        input=SOURCE, text=True, check=True, timeout=60,
    )  # fmt: skip
    return built


def test_a_library_by_its_headers(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", str(library)]) == 0
    out, err = capsys.readouterr()
    assert out == SPEC
    assert err == "refleak: 5 types proposed, 2 of them counted; 4 confirmed by headers\n"


def test_a_library_without_its_headers(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", "--no-headers", str(library)]) == 0
    assert "no headers of its library were found" in capsys.readouterr().err


def test_a_header_that_does_not_compile_is_passed_over(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = library.parent / "include" / "box.h"
    header.write_text("#error no\n" + HEADER)
    assert main(["discover", str(library)]) == 0
    assert "by name alone" in capsys.readouterr().err
