"""Types whose memory is the caller's: x_init sets it up and x_clear clears it, by their names and their code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from built_program import build

from tracer.specs.files import parse_spec

ROOT = Path(__file__).parents[3]
SOURCE = """
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline, noipa))
struct bag { char *first; long size; char *second; };
struct end { double x, y; };
APART int bag_init(struct bag *b, long size) { if (!b) return -1; memset(b, 0, sizeof *b); b->size = size;
    b->second = malloc(size); return 0; }
APART void bag_init_set(struct bag *b, const struct bag *of) { b->size = of->size; b->second = malloc(of->size); }
APART int bag_clear(struct bag *b) { free(b->second); memset(b, 0, sizeof *b); return 0; }
APART void sack_init(struct bag *b) { b->size = 7; b->second = malloc(7); }
APART void sack_clear(struct bag *b) { free(b->second); b->second = 0; }
APART int out_init(struct bag **out) { *out = calloc(1, sizeof **out); return *out ? 0 : -1; }
APART void out_deinit(struct bag *b) { free(b); }
APART void set_init(struct bag *b) { b->size = 1; b->second = malloc(1); }
APART void set_clear(struct bag *b) { b->size = 0; }
APART void set_fini(struct bag *b) { free(b->second); }
APART void point_init(struct end *e) { e->x = 1; e->y = 2; }
APART void point_clear(struct end *e) { e->x = e->y = 0; }
APART void sum_init(struct bag *b) { b->size = 3; b->second = 0; }
APART void sum_final(struct bag *b) { free(b->second); }
APART char *sum_end(struct bag *b) { sum_final(b); return strdup("x"); }
APART struct bag *two_new(void) { return calloc(1, sizeof(struct bag)); }
APART void two_init(struct bag *b) { b->size = 5; b->second = malloc(5); }
APART void two_free(struct bag *b) { if (b) free(b->second); free(b); }
int main(void) {
    struct bag one, other, sack;
    for (int i = 0; i < 3; i++) { bag_init(&one, 5); bag_init_set(&other, &one); bag_clear(&one); bag_clear(&other); }
    sack_init(&sack); sack_clear(&sack); sack_clear(&sack);
    return 0;
}
"""


@pytest.fixture(scope="module", params=["-O1", "-O2"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("in_place"), SOURCE, request.param, name="bags")


def discovered(program: Path, *words: str | Path) -> str:
    command = [ROOT / "refleak", "discover", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout



def test_what_the_caller_has_is_proposed_and_commented_out(program: Path) -> None:
    text = discovered(program)
    start = "# by the names and the code: what the caller has is set up and cleared\n# commented out: a second "
    blocks = text.split("\n\n")
    found = {line for block in blocks if block.startswith(start) for line in block.splitlines() if " = " in line}
    assert found == {
        '# name = "bag"', '# create = ["bag_init(object=arg0)", "bag_init_set(object=arg0)"]', '# put = "bag_clear"',
        '# name = "sack"', '# create = "sack_init(object=arg0)"', '# put = "sack_clear"',
        '# name = "set"', '# create = "set_init(object=arg0)"', '# put = "set_fini"',
    }  # fmt: skip
    assert {type_.name for type_ in parse_spec(text, "", "").types} == {"two"}


def test_a_run_takes_in_what_is_cleared_once(program: Path) -> None:
    """A second clear of the sack would be called an over-put."""
    text = discovered(program, "--try", program)
    bag = next(type_ for type_ in parse_spec(text, "", "").types if type_.name == "bag")
    assert [(f.spec.function, str(f.spec.object)) for f in bag.functions if f.spec.function == "bag_init"]
    assert '  "bag_init(object=arg0)",  # 3 calls' in text and '  "bag_clear",  # 6 calls' in text
    assert {type_.name for type_ in parse_spec(text, "", "").types} == {"bag", "two"}
    assert '#   "sack_clear",  # 2 calls, 1 of objects that had ended' in text
    assert '#   "set_init(object=arg0)",  # not tried' in text
