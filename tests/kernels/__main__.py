"""Run a suite of kernel tests on each given kernel: python -m tests.kernels --suite smoke 6.1 6.12 7.2.

Suites: programs (`refleak doctor --programs`), doctor (`refleak doctor`), smoke (tests/kernel/smoke.txt), all
(tests/kernel), costs (tests/kernels/costs.py), verdicts (tests/kernel/test_every_kernel.py, beside what the first
kernel gave). "here" is the kernel that runs. Exit status: 0 all pass, 1 a kernel fails, 3 of a kernel nothing is known:
no package, no machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.kernels.conditions import CONDITIONS, USUAL, Condition
from tests.kernels.costs import COSTS
from tests.kernels.document import write_results
from tests.kernels.machine import CACHE, CHECKOUT, TARGETS, Machine, NoMachine, ThisMachine, machine_here
from tests.kernels.packages import SUITES, Kernel, NoKernel, fetch
from tests.kernels.results import Outcome, read_doctor, read_outcome, table
from tests.kernels.verdicts import TESTS, Verdicts, differences, read_verdicts, side_by_side, summary
from tracer.errors import ProgramRefused

SMOKE = CHECKOUT / "tests" / "kernel" / "smoke.txt"
PYTHON = CHECKOUT / ".venv" / "bin" / "python"
_DOCTOR = {"programs": ["doctor", "--programs"], "doctor": ["doctor"]}
_FAILS, _UNKNOWN = 1, 3
HERE = "here"
"""The version of the kernel that runs."""
_SECONDS = {"programs": 900.0, "doctor": 900.0, "costs": 1800.0, "verdicts": 3600.0, "smoke": 3600.0, "all": 6 * 3600.0}
_LAST_LINES = 15
_LONGEST_REASON = 200


def cache_folder() -> Path:
    """Return where kernels are kept: below $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "refleak-kernels"


def smoke_tests(text: str) -> list[str]:
    """Return the test ids of a list with one in each line, and comments; {python} is the distribution's version."""
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    version = "{}.{}".format(*sys.version_info[:2])
    return [line.replace("{python}", version) for line in lines if line and not line.startswith("#")]


def tests_of(suite: str) -> list[str]:
    if suite == "verdicts":
        return [TESTS]
    return ["tests/kernel"] if suite == "all" else smoke_tests(SMOKE.read_text())


def words_of(suite: str, tests: Sequence[str], folder: Path) -> list[str]:
    """Return what runs in the machine."""
    if suite in _DOCTOR:
        return [str(CHECKOUT / "refleak"), *_DOCTOR[suite]]
    if suite == "costs":
        return [str(PYTHON), "-m", "tests.kernels.costs", str(TARGETS)]
    # An empty cache of pytest's own: the checkout cannot be written there.
    options = ["-v", "--durations=0", "-p", "no:cacheprovider", "-p", "tests.kernels.at_once"]
    options += [f"--junitxml={folder / 'junit.xml'}", f"--basetemp={folder / 'pytest'}"]
    return [str(PYTHON), "-m", "pytest", *options, *(tests or tests_of(suite))]


def run_on(machine: Machine, kernel: Kernel, suite: str, tests: Sequence[str], folder: Path) -> Outcome:
    """Boot a kernel, run the suite in it and return how it went; its files stay in the folder."""
    clear(folder)
    status = machine.run(kernel, folder, words_of(suite, tests, folder), _SECONDS[suite])
    if status is None:
        return Outcome(kernel.version, kernel.release, suite, problem=why_not(folder))
    said = (folder / "output").read_text(errors="replace")
    if suite in _DOCTOR:
        return doctors_outcome(kernel, suite, status, said, machine.condition.refused_for)
    if suite == "costs":
        return costs_outcome(kernel, status, said)
    return read_outcome(kernel.version, kernel.release, suite, folder / "junit.xml")


def clear(folder: Path) -> None:
    """Make an empty folder of it but for refleak's cache, which is keyed by all that it was made of.

    To compile the BPF programs takes a minute on an emulated processor.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name != CACHE:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def doctors_outcome(kernel: Kernel, suite: str, status: int, said: str, refused_for: str = "") -> Outcome:
    """Return what the status of `refleak doctor` says of a kernel; of its programs, only a refusal says something.
    `refused_for`: the check for which it is right to refuse, and wrong not to."""
    outcome = Outcome(kernel.version, kernel.release, suite, **read_doctor(said))
    if refused_for:
        refuses = status != 0 and f"refleak cannot trace here: {refused_for}:" in " ".join(said.split())
        return replace(outcome, passed=1) if refuses else replace(outcome, failed=("doctor",))
    if status == 0:
        return replace(outcome, passed=1)
    if suite == "doctor" or status == ProgramRefused.exit_code:
        return replace(outcome, failed=("doctor",))
    return replace(outcome, problem=f"refleak doctor ended with status {status}")


def costs_outcome(kernel: Kernel, status: int, said: str) -> Outcome:
    """Return the costs that were measured; where none were, nothing is known."""
    outcome = Outcome(kernel.version, kernel.release, "costs")
    measured = next((line for line in said.splitlines() if line.startswith(COSTS)), "")
    if status or not measured:
        return replace(outcome, problem=f"nothing was measured, status {status}")
    return replace(outcome, passed=1, costs=json.loads(measured.removeprefix(COSTS)))


def why_not(folder: Path) -> str:
    """Return why there is no status: the suite did not come to its end, or the machine not to the suite."""
    if (folder / "release").exists():
        return "the machine did not come to an end in time"
    said = (folder / "console").read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip() and line.isprintable()), "it says nothing")
    return f"the machine did not start: {last[:_LONGEST_REASON]}"


def build_targets() -> None:
    """Build the targets here: the checkout cannot be written in the machine, where a compiler would be slow too."""
    subprocess.run(["make", "-s", "-C", str(TARGETS.parent), f"OUT={TARGETS}"], check=True, timeout=600)
    subprocess.run(["make", "-s", "-C", str(CHECKOUT), "examples/demo/leaky"], check=True, timeout=600)


def compile_modules() -> None:
    """Write bytecode for all modules: what has none would be compiled at each start of refleak in the machine."""
    folders = [str(CHECKOUT / name) for name in ("tracer", "tests")]
    subprocess.run([str(PYTHON), "-m", "compileall", "-q", *folders], check=True, timeout=600, stdout=sys.stderr)


def _last_lines(folder: Path) -> str:
    try:
        lines = (folder / "output").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "".join(f"    {line}\n" for line in lines[-_LAST_LINES:] if line.isprintable())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kernels", description=__doc__)
    parser.add_argument("versions", nargs="+", metavar="VERSION", help=f"of {', '.join(SUITES)}, or {HERE}")
    parser.add_argument("--suite", choices=tuple(_SECONDS), default="smoke")
    parser.add_argument("--test", action="append", default=[], metavar="ID", help="these tests, not the suite's")
    parser.add_argument("--under", choices=tuple(CONDITIONS), help="with a machine that differs in this")
    parser.add_argument("--write", type=Path, help="put the table into this document")
    arguments = parser.parse_args()
    if arguments.write and arguments.test:
        parser.error("--write needs a whole suite")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and take the machine along
    cache = cache_folder()
    compile_modules()
    if arguments.suite not in _DOCTOR:
        build_targets()
    condition = CONDITIONS.get(arguments.under, USUAL)
    outcomes, found = run_all(arguments.versions, arguments.suite, arguments.test, cache, condition)
    outcomes = [replace(outcome, under=arguments.under or "") for outcome in outcomes]
    print(table(outcomes))
    print(side_by_side({outcome.release: outcome.verdicts for outcome in outcomes if outcome.verdicts}))
    others = [
        f"{version}: {line}" for version in found if version != arguments.versions[0]
        for line in differences(found.get(arguments.versions[0], {}), found[version])
    ]  # fmt: skip
    print("".join(f"{line}\n" for line in others), end="")
    if arguments.write:
        write_results(arguments.write, outcomes)
    return exit_status(outcomes) or (_FAILS if others else 0)


def run_all(
    versions: Sequence[str], suite: str, tests: Sequence[str], cache: Path, condition: Condition = USUAL
) -> tuple[list[Outcome], dict[str, Verdicts]]:
    """Run the suite on each kernel, one after the other; return how it went, and what was found by version."""
    outcomes: list[Outcome] = []
    found: dict[str, Verdicts] = {}
    machine = None
    for version in versions:
        folder = cache / f"run-{version}"
        try:
            if version == HERE:
                here: Machine = ThisMachine(Path(), kvm=False)
                kernel = Kernel(HERE, Path(f"vmlinuz-{platform.release()}"))
            else:
                kernel = fetch(version, cache)
                machine = machine or machine_here(cache, kernel)
                here = replace(machine, condition=condition)
        except (NoKernel, NoMachine) as error:
            outcomes.append(Outcome(version, "", suite, problem=str(error)))
            continue
        outcome = run_on(here, kernel, suite, tests, folder)
        if verdicts := read_verdicts(folder / "junit.xml"):
            found[version] = verdicts
        where = f"{here.kind}, load {os.getloadavg()[2]:.0f}"
        outcomes.append(replace(outcome, where=where, verdicts=summary(verdicts)))
        print(f"Linux {kernel.release}, {where}:", flush=True)
        print(_last_lines(folder), flush=True)
    return outcomes, found


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """Return 0 where all are good, 1 where a kernel failed, 3 where one could not be judged."""
    if all(outcome.is_good for outcome in outcomes):
        return 0
    return _FAILS if any(not outcome.is_good and not outcome.problem for outcome in outcomes) else _UNKNOWN


if __name__ == "__main__":
    sys.exit(main())
