"""Guesses by names alone: what the code of a function disproves is commented out."""

from __future__ import annotations

from pathlib import Path

import pytest
from built_program import build

from tracer.cli.main import main
from tracer.elf.image import Image
from tracer.elf.symbol_table import STT_FUNC, read_symbol_table
from tracer.specs.files import read_spec_file
from tracer.specs.returned_numbers import returns_number

SOURCE = """
#include <errno.h>
#include <stdlib.h>
struct item { long id; int state; struct item *next; };
struct item *item_new(long id) { struct item *i = calloc(1, sizeof *i); if (i) i->id = id; return i; }
void item_free(struct item *i) { free(i); }
struct item *item_next(struct item *i) { return i->next; }
void *item_failed(struct item *i) { return i ? i : (void *)-1; }
struct item *item_choice(struct item *a, struct item *b) { return a->id < b->id ? a : b; }
int item_state(struct item *i) { return i->state; }
int item_check(struct item *i) { return i ? 0 : -EINVAL; }
int item_other(struct item *i, int (*other)(struct item *)) { return other(i); }
int file_open(const char *name) { return *name ? name[0] : -ENOENT; }
void file_close(int number) { (void)number; }
int dev_open(struct item **out) { *out = item_new(1); return *out ? 0 : -ENOMEM; }
struct item *dev_new(void) { return item_new(2); }
int dev_create(struct item **out) { return -dev_open(out); }
void dev_destroy(struct item *i) { free(i); }
int lib_init(int (*other)(void)) { return other(); }
void lib_exit(void) { }
struct item *bit_ref(struct item *i) { i->id++; return i; }
void bit_unref(struct item *i) { i->id--; }
"""


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2", "-O3"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = (request.param, "-fPIC", "-shared", "-fno-inline", "-fno-ipa-icf", "-Wl,-soname,libitems.so.1")
    return build(tmp_path_factory.mktemp("numbers"), SOURCE, *flags, name="libitems.so")


def test_numbers_are_told_from_pointers(library: Path) -> None:
    with Image.open(library) as image:
        found = {}
        for symbol in read_symbol_table(image).matching("*_*"):
            at = image.file_offset_of(symbol.address)
            if symbol.kind == STT_FUNC and symbol.size and at is not None:
                found[symbol.name] = returns_number(bytes(image.data[at : at + symbol.size]), symbol.address)
    assert all(found[name] for name in ("item_state", "item_check", "file_open", "dev_open"))
    pointers = ("item_new", "item_next", "item_failed", "item_choice", "bit_ref")
    assert not any(found[name] for name in (*pointers, "item_other")), "a call's result may be anything"


def test_what_the_code_disproves_is_commented_out(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "items.toml"
    assert main(["discover", str(library), "--no-headers", "-o", str(spec)]) == 0
    described = {type_.name: {f.spec.function for f in type_.functions} for type_ in read_spec_file(spec).types}
    assert described == {"item": {"item_new", "item_free"}, "dev": {"dev_new", "dev_destroy"}}
    text = spec.read_text()
    assert "# commented out: file_open returns a number\n# [[type]]" in text
    assert "# commented out: no function that makes one is known: add its create\n# [[type]]\n# name = \"bit\"" in text
    assert "# commented out: names alone do not tell whether an init makes an object" in text
    assert "# no create, since it returns a number: dev_create\n[[type]]\nname = \"dev\"" in text
    said = capsys.readouterr().err
    assert said.startswith("refleak: 2 types proposed, 0 of them counted; by name alone")
    assert said.endswith("3 more are commented out\n")


@pytest.mark.parametrize("code", [
    "", "c3", "ffff", "e8000000", "31c0c3", "29c0c3", "b801000000c3", "4889f8c3", "b8eaffffffebfec3",
])  # fmt: skip
def test_what_cannot_be_told_is_no_number(code: str) -> None:
    assert not returns_number(bytes.fromhex(code), 0x1000)


@pytest.mark.parametrize("code", [
    "b8eaffffffc3", "8b4708c3", "f7d8c3", "0fb6c0c3", "0f94c0c3", "83e0eac3", "4883ec088b07c3", "89d85bc3",
])  # fmt: skip
def test_the_lower_half_alone_is_a_number(code: str) -> None:
    assert returns_number(bytes.fromhex(code), 0x1000)
