"""Code that is made at run time: names, lines and whole stacks, at addresses that are used again."""

from __future__ import annotations

from pathlib import Path

from conftest import LiveTarget, Refleak
from live_refleak import live_refleak
from traced_report import Json, Run, functions

CODE = "code.c"


def lines(source: Path, *texts: str) -> list[int]:
    """Return the numbers of the lines that hold these texts."""
    found = source.read_text().splitlines()
    return [next(i for i, line in enumerate(found, 1) if text in line) for text in texts]


def check_leak(leak: Json, letter: str, caller: str) -> None:
    call_of_malloc, call_of_leak = lines(
        Path(__file__).parents[1] / "targets" / "jitted" / CODE, "block = allocate(size)", "block = NAMED"
    )
    names = functions(leak["stack"])
    assert names[:3] == [f"leak_{letter}", f"enter_{letter}", caller] and names[-1] == "_start"
    assert [(Path(f["file"]).name, f["line"], f["kind"], f["module"]) for f in leak["stack"][:2]] == [
        (CODE, call_of_malloc, "jit", "[jit]"), (CODE, call_of_leak, "jit", "[jit]"),
    ]  # fmt: skip
    assert {frame["kind"] for frame in leak["stack"][2:]} == {"native"}
    assert leak["stack_status"] == "complete"


def by_name(run: Run, name: str) -> list[tuple[int, int]]:
    return [(leak["count"], leak["bytes"]) for leak in run.below(name)]


def test_images_that_follow_each_other_at_one_address(refleak: Refleak, targets: Path) -> None:
    a, b = targets / "jitted-a.o", targets / "jitted-b.o"
    run = refleak(target=("gdbjit", a, b, a))
    run.check_whole()
    assert (by_name(run, "leak_a"), by_name(run, "leak_b")) == ([(28, 8698)], [(13, 4043)])
    for leak in run.below("run"):
        check_leak(leak, "b" if leak["count"] == 13 else "a", "run")


def test_an_image_registered_before_the_attach(live_target: LiveTarget, targets: Path, tmp_path: Path) -> None:
    with (
        live_target("gdbjit", "late", targets / "jitted-b.o") as target,
        live_refleak(tmp_path / "report", "-p", target.pid) as refleak,
    ):
        assert target.stdin is not None
        refleak.wait_until_attached()
        target.stdin.write(b"x")
        target.wait()
        run = refleak.end()
    run.check_whole()
    [leak] = run.below("run")
    check_leak(leak, "b", "run")
    assert (leak["count"], leak["bytes"]) == (11, 3377)


def test_many_registrations(refleak: Refleak, targets: Path) -> None:
    run = refleak(target=("gdbjit", "many", 300, targets / "jitted-a.o"))
    run.check_whole()
    [leak] = run.below("run")
    check_leak(leak, "a", "run")
    assert (leak["count"], leak["bytes"]) == (11, 3377)
