"""tests/kernels: which packages make a kernel, what a JUnit file says, and the table that comes of it."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.kernels.__main__ import (  # noqa: E402
    SMOKE,
    clear,
    costs_outcome,
    doctors_outcome,
    exit_status,
    smoke_tests,
    why_not,
    words_of,
)
from tests.kernels.costs import COSTS, pairs, read_times  # noqa: E402
from tests.kernels.document import read_results, with_tables, write_results  # noqa: E402
from tests.kernels.machine import Machine, ThisMachine, guest_script, may_have_kvm  # noqa: E402
from tests.kernels.packages import Kernel, NoKernel, choose, for_suite  # noqa: E402
from tests.kernels.results import Outcome, read_outcome, table  # noqa: E402
from tests.kernels.verdicts import differences, read_verdicts, side_by_side, summary  # noqa: E402

NAMES = """
    linux-image-6.1.0-9-amd64 linux-image-6.1.0-56-amd64 linux-image-6.1.0-57-cloud-amd64 linux-image-6.1.0-58-rt-amd64
    linux-image-6.1.0-59-amd64-dbg linux-image-6.1.0-60-amd64-unsigned linux-image-amd64 linux-image-6.12.9+bpo-amd64
    linux-image-6.12.107+deb13-amd64 linux-image-6.12.107+deb13-rt-amd64 linux-headers-6.12.200+deb13-amd64
    linux-binary-7.2.9+deb14-amd64 linux-modules-7.2.9+deb14-amd64 linux-binary-7.2.13+deb14-amd64
    linux-modules-7.2.13+deb14-amd64 linux-binary-7.2.14+deb14-amd64 linux-binary-7.2.13+deb14-cloud-amd64
"""


@pytest.mark.parametrize(
    ("version", "packages"),
    [
        ("6.1", ("linux-image-6.1.0-56-amd64",)),
        ("6.1-rt", ("linux-image-6.1.0-58-rt-amd64",)),
        ("6.12", ("linux-image-6.12.107+deb13-amd64",)),
        ("6.12-rt", ("linux-image-6.12.107+deb13-rt-amd64",)),
        ("7.2", ("linux-binary-7.2.13+deb14-amd64", "linux-modules-7.2.13+deb14-amd64")),
    ],
)
def test_the_newest_kernel_of_a_flavour_is_chosen(version: str, packages: tuple[str, ...]) -> None:
    assert choose(NAMES.split(), version) == packages
    assert choose(reversed(NAMES.split()), version) == packages


@pytest.mark.parametrize("version", ["6.2", "7.2.14", "amd64"])
def test_no_such_kernel(version: str) -> None:
    with pytest.raises(NoKernel, match=f"no package has Linux {version}"):
        choose(NAMES.split(), version)


STANZAS = """Types: deb
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://archive.example/security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://vendor.example
Suites: nodistro
Components: main
"""


def test_stanzas_get_another_suite_and_other_vendors_are_left_out() -> None:
    trixie = for_suite(STANZAS, "bookworm", "trixie")
    assert [line for line in trixie.splitlines() if line.startswith("Suites")] == [
        "Suites: trixie trixie-updates", "Suites: trixie-security",
    ]  # fmt: skip
    assert "vendor" not in trixie
    assert for_suite(STANZAS, "bookworm", "sid") == (
        "Types: deb\nURIs: http://archive.example/debian\nSuites: sid\nComponents: main\n"
    )
    assert for_suite(STANZAS, "jammy", "sid") == ""


@pytest.mark.parametrize(
    ("image", "release"),
    [("boot/vmlinuz-6.1.0-56-amd64", "6.1.0-56-amd64"), ("usr/lib/modules/7.2.13-amd64/vmlinuz", "7.2.13-amd64")],
)
def test_a_release_is_read_off_the_image_s_path(image: str, release: str) -> None:
    assert Kernel("x", Path("/kernels") / image).release == release


JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.kernel.test_stacks" name="test_whole" time="1.25"/>
<testcase classname="tests.kernel.test_stacks" name="test_cut[2]" time="2.5"><failure>why</failure></testcase>
<testcase classname="tests.kernel.test_maps" name="test_map" time="0.25"><skipped message="no"/></testcase>
<testcase classname="tests.kernel.test_maps" name="test_end" time="1"><failure/></testcase>
<testcase classname="tests.kernel.test_maps" name="test_end" time="0"><error message="teardown"/></testcase>
</testsuite></testsuites>"""


def test_a_result_is_read(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(JUNIT)
    outcome = read_outcome("6.1", "6.1.0-56-amd64", "smoke", tmp_path / "junit.xml")
    assert (outcome.passed, outcome.skipped, outcome.seconds) == (1, 0, 5.0)
    assert outcome.failed == ("test_stacks::test_cut[2]", "test_maps::test_end", "test_maps::test_map")
    assert not outcome.is_good


def test_a_skip_is_what_the_kernel_lacks(tmp_path: Path) -> None:
    lines = [line for line in JUNIT.splitlines() if "<failure" not in line and "<error" not in line]
    (tmp_path / "junit.xml").write_text("\n".join(lines).replace('message="no"', 'message="the kernel lacks nop5"'))
    outcome = read_outcome("6.1", "6.1.0-56-amd64", "smoke", tmp_path / "junit.xml")
    assert (outcome.passed, outcome.skipped, outcome.lacks, outcome.is_good) == (1, 1, ("nop5",), True)
    assert table([outcome]).endswith("| all pass, without nop5 |\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "the machine wrote no result"),
        (JUNIT[:200], "the machine's result is cut short"),
        ("<testsuites><testsuite/></testsuites>", "no test was run"),
    ],
)
def test_a_result_that_is_none_is_never_good(tmp_path: Path, text: str | None, problem: str) -> None:
    if text is not None:
        (tmp_path / "junit.xml").write_text(text)
    outcome = read_outcome("6.1", "6.1.0-56-amd64", "smoke", tmp_path / "junit.xml")
    assert (outcome.problem, outcome.is_good) == (problem, False)


OUTCOMES = [
    Outcome("6.1", "6.1.0-56-amd64", "smoke", 40, 0, (), 301.6, where="emulated, load 2"),
    Outcome("6.12", "6.12.107+deb13-amd64", "all", 36, 0, ("a::b", "a::c", "a::d", "a::e"), 250.0),
    Outcome("7.2", "", "smoke", problem="no package has Linux 7.2"),
]


def test_the_table_has_a_row_for_each_kernel() -> None:
    assert table(OUTCOMES) == (
        "| kernel | suite | passed | failed | skipped | seconds | where | |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| 6.1.0-56-amd64 | smoke | 40 | 0 | 0 | 302 | emulated, load 2 | all pass |\n"
        "| 6.12.107+deb13-amd64 | all | 36 | 4 | 0 | 250 |  | a::b, a::c, a::d, ... |\n"
        "| 7.2 | smoke | 0 | 0 | 0 | 0 |  | no package has Linux 7.2 |\n"
    )
    assert [outcome.is_good for outcome in OUTCOMES] == [True, False, False]


MARKS = "\n".join(
    f"<!-- {word}: {name}, by make test-kernels -->"
    for name in ("suites", "verdicts", "costs") for word in ("begin", "end")
)  # fmt: skip


def test_results_are_kept_beside_the_document(tmp_path: Path) -> None:
    document = tmp_path / "kernels.md"
    document.write_text(f"before\n{MARKS}\nafter\n")
    write_results(document, OUTCOMES[1:])
    write_results(document, OUTCOMES[:1])
    assert read_results(tmp_path / "kernels.json") == OUTCOMES[:2]  # of the third nothing is known
    written = document.read_text()
    assert written.startswith("before\n") and written.endswith("after\n")
    assert table(OUTCOMES[:2]) in written
    write_results(document, OUTCOMES[:1])
    assert document.read_text() == written


def test_this_machine_comes_first_and_then_older_kernels(tmp_path: Path) -> None:
    document = tmp_path / "kernels.md"
    document.write_text(MARKS)
    write_results(document, [Outcome(version, version, "smoke", 1) for version in ("7.2", "6.12", "here", "6.1")])
    assert [result.version for result in read_results(tmp_path / "kernels.json")] == ["here", "6.1", "6.12", "7.2"]


def test_the_document_is_what_its_results_say() -> None:
    written = (ROOT / "docs/kernels.md").read_text()
    results = read_results(ROOT / "docs/kernels.json")
    assert results
    assert with_tables(written, results) == written


RECORDED = """<testsuites><testsuite><testcase classname="tests.kernel.test_every_kernel" name="test_a_pipe" time="1">
<properties><property name="verdict" value="LEAK: 1 block"/>
<property name="entries" value="[[&quot;ab&quot;, 7], [&quot;cd&quot;, 11]]"/></properties></testcase>
<testcase name="test_failed"><properties><property name="verdict" value="clean"/><property name="entries" value="[]"/>
</properties><failure/></testcase></testsuite></testsuites>"""


def test_verdicts_of_kernels_are_laid_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(RECORDED)
    first = read_verdicts(tmp_path / "junit.xml")
    assert first == {"a pipe": ("LEAK: 1 block", ['["ab", 7]', '["cd", 11]'])}
    (tmp_path / "junit.xml").write_text(RECORDED.replace("11", "12"))
    second = read_verdicts(tmp_path / "junit.xml")
    assert list(differences(first, first)) == []
    assert list(differences(first, second)) == ['a pipe: has also ["cd", 12]', 'a pipe: lacks ["cd", 11]']
    assert list(differences(first, {})) == ["a pipe: there is no verdict"]
    [one, other] = (entries for _, entries in (*summary(first).values(), *summary(second).values()))
    assert one.startswith("2 entries (") and one != other
    kernels = {"6.18": summary(first), "6.1": summary(first), "6.12": summary(second), "7.2": {}}
    assert side_by_side(kernels) == (
        "| | on 6.18 | | 6.1 | 6.12 | 7.2 |\n|---|---|---|---|---|---|\n"
        f"| a pipe | LEAK: 1 block | {one} | the same | LEAK: 1 block, {other} | none |\n"
    )


def test_costs_stand_beside_what_the_kernel_lacks() -> None:
    measured = Outcome("6.1", "6.1.0-56", "costs", 1, where="emulated, load 3", costs={"pair": (1250, 100.0)})
    doctor = Outcome("6.1", "6.1.0-56", "doctor", 1, lacks=("nop5", "uprobe_multi"))
    assert "| kernel | lacks | pair | measured |" in with_tables(MARKS, [measured])
    row = "| 6.1.0-56 | {} | 1.25 µs, 12 x | emulated, load 3 |\n"
    assert row.format("not asked") in with_tables(MARKS, [measured])
    assert row.format("nop5, uprobe_multi") in with_tables(MARKS, [doctor, measured])


def test_without_kvm_the_machine_is_emulated() -> None:
    kernel = Kernel("6.1", Path("/k/boot/vmlinuz-6.1"))
    machines = [Machine(Path("/vng"), kvm=kvm) for kvm in (True, False)]
    fast, slow = (machine.command(kernel, Path("/rw"), Path("/rw/run.sh")) for machine in machines)
    assert "--disable-kvm" in slow and "--disable-kvm" not in fast
    assert slow[-3:] == ["--", "bash", "/rw/run.sh"]
    assert ThisMachine(Path(), kvm=False).command(kernel, Path("/rw"), Path("/rw/run.sh")) == ["bash", "/rw/run.sh"]


@pytest.mark.parametrize(("says", "runs"), [("Kernel panic - not syncing", 2), ("", 1)])
def test_emulated_processors_that_end_in_a_panic_run_in_turns_then(tmp_path: Path, says: str, runs: int) -> None:
    """A `vng` that says so side by side, and gives a status in turns."""
    vng, folder = tmp_path / "vng", tmp_path / "run"
    vng.write_text(
        f'#!/bin/sh\necho "$*" >>{tmp_path}/words\n'
        f'case "$*" in *thread=single*) echo 0 >{folder}/status;; *) echo "{says}";; esac\n'
    )
    vng.chmod(0o755)
    kernel = Kernel("6.1", tmp_path / "vmlinuz")
    status = Machine(vng, kvm=False).run(kernel, folder, ["true"], 20)
    words = (tmp_path / "words").read_text().splitlines()
    assert (status, len(words)) == (0 if says else None, runs)
    assert ["thread=single" in line for line in words] == [False, True][:runs]


def test_a_device_that_is_not_kvm(tmp_path: Path) -> None:
    (tmp_path / "kvm").write_text("")
    assert not may_have_kvm(tmp_path / "kvm")
    assert not may_have_kvm(tmp_path / "absent")


def test_the_machine_writes_below_its_folder_only() -> None:
    script = guest_script(Path("/rw"), ["python", "a b"])
    assert "export HOME=/rw/home\n" in script
    assert "python 'a b' >/rw/output 2>&1\necho $? >/rw/status\n" in script


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [(OUTCOMES[:1], 0), (OUTCOMES[:2], 1), (OUTCOMES[2:], 3), (OUTCOMES, 1), ([OUTCOMES[0], OUTCOMES[2]], 3)],
)
def test_a_kernel_that_was_not_had_is_told_apart_from_one_that_fails(outcomes: list[Outcome], status: int) -> None:
    assert exit_status(outcomes) == status


def test_suites_without_tests_ask_doctor() -> None:
    assert words_of("doctor", [], Path("/rw")) == [str(ROOT / "refleak"), "doctor"]
    assert words_of("programs", [], Path("/rw")) == [str(ROOT / "refleak"), "doctor", "--programs"]


@pytest.mark.parametrize(
    ("suite", "status", "end"),
    [("programs", 0, 0), ("programs", 73, 1), ("programs", 137, 3), ("doctor", 0, 0), ("doctor", 78, 1)],
)
def test_only_a_refusal_says_something_of_the_programs(suite: str, status: int, end: int) -> None:
    kernel = Kernel("6.1", Path("/k/boot/vmlinuz-6.1.0-56-amd64"))
    assert exit_status([doctors_outcome(kernel, suite, status, "")]) == end


@pytest.mark.parametrize(
    ("status", "said", "end"),
    [
        (78, "refleak cannot trace here: lockdown: start the\n    kernel with lockdown=integrity", 0),
        (78, "refleak cannot trace here: BTF: none", 1), (0, "refleak can trace here", 1), (1, "", 1),
    ],
)
def test_where_doctor_has_to_refuse_it_passes_by_that(status: int, said: str, end: int) -> None:
    kernel = Kernel("6.1", Path("/k/boot/vmlinuz-6.1.0-56-amd64"))
    assert exit_status([doctors_outcome(kernel, "doctor", status, said, "lockdown")]) == end


DOCTOR = """
links         missing   uprobe_multi: all probes of a binary in one link; else
                        one perf event for each
                        -> Linux 6.6 has it
holds         ok        children and new libraries wait
nops          missing   a probed long nop becomes a call, without a trap (see costs)
programs      ok        23 BPF programs, which the verifier took in 153,693
                        steps
debuginfod    missing   fetches debug files of distributions
"""


def test_doctor_tells_what_the_kernel_lacks() -> None:
    outcome = doctors_outcome(Kernel("6.1", Path("/k/boot/vmlinuz-6.1.0-56-amd64")), "doctor", 0, DOCTOR)
    assert outcome.lacks == ("nop5", "uprobe_multi")
    row = "| 6.1.0-56-amd64 | doctor | 1 | 0 | 0 | 0 |  |"
    assert table([outcome]).endswith(
        f"{row} all pass, 23 programs in 153,693 verified steps, without nop5, uprobe_multi |\n"
    )


def test_costs_are_times_of_one_program_traced_and_not() -> None:
    alone = read_times("pair 10\nfork 2000\n")
    assert pairs(read_times("pair 125\nfork 6200\n"), alone) == {"pair": (125, 10), "fork": (6200, 2000)}
    for other in ("pair 3\n", ""):
        with pytest.raises(ValueError, match="untraced"):
            pairs(read_times(other), alone)


@pytest.mark.parametrize(
    ("status", "said", "end"), [(0, f'{COSTS}{{"pair": [12, 1]}}\n', 0), (1, "no\n", 3), (0, "", 3)]
)
def test_where_nothing_was_measured_nothing_is_known(status: int, said: str, end: int) -> None:
    outcome = costs_outcome(Kernel("6.1", Path("/k/boot/vmlinuz-6.1")), status, said)
    assert exit_status([outcome]) == end
    assert outcome.costs == ({"pair": [12, 1]} if end == 0 else {})


def test_why_a_machine_gave_no_status(tmp_path: Path) -> None:
    (tmp_path / "console").write_text("first\nno busybox\n\n\x1b[0m\n")
    assert why_not(tmp_path) == "the machine did not start: no busybox"
    (tmp_path / "release").write_text("6.1")
    assert why_not(tmp_path) == "the machine did not come to an end in time"


def test_the_cache_outlives_a_run(tmp_path: Path) -> None:
    for name in ("refleak-cache/programs", "tmp/file", "output"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("refleak-cache")
    clear(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "refleak-cache", "refleak-cache/programs",
    ]  # fmt: skip
    assert "export REFLEAK_CACHE=/rw/refleak-cache\n" in guest_script(Path("/rw"), ["true"])


def test_a_suite_is_one_run_of_pytest() -> None:
    words = words_of("smoke", [], Path("/rw"))
    assert "--junitxml=/rw/junit.xml" in words
    assert words[-1].startswith("tests/kernel/")
    assert words_of("all", [], Path("/rw"))[-1] == "tests/kernel"
    assert words_of("smoke", ["a::b"], Path("/rw"))[-2:] == [f"--basetemp={Path('/rw/pytest')}", "a::b"]


def test_the_smoke_suite_names_the_python_that_is_here() -> None:
    ids = smoke_tests("# a\na.py::b[{python}]  # c\n\n")
    assert ids == [f"a.py::b[{sys.version_info.major}.{sys.version_info.minor}]"]
    assert not re.search(r"\[3\.\d", SMOKE.read_text())


def test_every_test_of_the_smoke_suite_is_there() -> None:
    ids = smoke_tests(SMOKE.read_text())
    assert 35 <= len(ids) <= 60
    assert len(set(ids)) == len(ids)
    for name in ids:
        path, _, function = name.partition("[")[0].partition("::")
        tree = ast.parse((ROOT / path).read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not function or function in functions, name
