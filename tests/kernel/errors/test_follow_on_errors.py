"""An error that another one brings with it is not counted again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import CHECKOUT, Refleak
from traced_report import functions


def test_a_get_of_a_dead_object_and_the_put_that_balances_it_are_one_error(refleak: Refleak, tmp_path: Path) -> None:
    program = tmp_path / "revived"
    source = Path(__file__).parent / "revived.c"
    flags = ["-O1", "-g", "-fno-optimize-sibling-calls", "-I", CHECKOUT / "examples"]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True, timeout=60)
    run = refleak(target=(program,))
    run.check_whole()
    assert run.errors == {("use-after-zero", "thing"): 7, ("over-put", "thing"): 1}
    where = {error["kind"]: functions(error["stack"])[0] for error in run.report["errors"]}
    assert where == {"use-after-zero": "get_dead", "over-put": "put_once_more"}
