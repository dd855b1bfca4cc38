"""Measure on mutants of a program how often refleak names the get that was never put, or the put that is one too many.

    python3 examples/mutants PROGRAM check DIR     run every workload as it is; prove the slots; list the calls that ran
    python3 examples/mutants PROGRAM run DIR       run each of these calls changed, with two workloads each
    python3 examples/mutants PROGRAM score DIR     the tables of docs/pairing.md

PROGRAM is perf, dbus, glib or gio. Needs root, and the program as its build.sh makes it. `--kind` says what a mutant
is: a put is left out (the default), is made twice, or is made before the last use; a get is made twice, or is left out.
`run --sometimes` changes a call one of four times; with `--memory` blocks are traced as well, and memory is read at the
end, as without any option of refleak. What is there already is not run again, so a run that was stopped goes on, and
`score` after a change of the analysis traces nothing. `score --wrong` lists what is wrong of the first half, `check
--wrong` the lives whose slots do not come out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from dbus_program import Dbus  # noqa: E402
from gio_program import Gio  # noqa: E402
from glib_program import Glib  # noqa: E402
from measurement import How, check, run, scored  # noqa: E402
from perf_program import Perf  # noqa: E402
from program import Program  # noqa: E402
from score import print_table, score  # noqa: E402
from score_extra_puts import print_extra_puts, score_extra_puts  # noqa: E402
from score_moved_puts import print_moved_puts, score_moved_puts  # noqa: E402
from sites import KINDS, LEFT_OUT, OVER_PUTS, PUT_MOVED  # noqa: E402

PROGRAMS: dict[str, type[Program]] = {"perf": Perf, "dbus": Dbus, "glib": Glib, "gio": Gio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("what", choices=("check", "run", "score"))
    parser.add_argument("dir", type=Path)
    parser.add_argument("--kind", choices=KINDS, default=LEFT_OUT, help="what a mutant is")
    parser.add_argument("--sometimes", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--workloads", type=int, default=2, help="with how many each call is changed")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants, chosen by the hash of their places")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only the mutants of this half")
    arguments = parser.parse_args()
    program = PROGRAMS[arguments.program]()
    out = arguments.dir.resolve()
    out.mkdir(exist_ok=True)
    how = How(arguments.kind, arguments.sometimes, arguments.memory, arguments.half, arguments.sample)
    if arguments.what == "check":
        check(program, out, arguments.wrong)
    elif arguments.what == "run":
        run(program, out, how, arguments.workloads)
    elif how.kind == PUT_MOVED:
        print_moved_puts(program, scored(score_moved_puts, program, out, how), arguments.wrong)
    elif how.kind in OVER_PUTS:
        print_extra_puts(program, scored(score_extra_puts, program, out, how), arguments.wrong)
    else:
        print_table(program, scored(score, program, out, how), arguments.wrong)


if __name__ == "__main__":
    main()
