"""Containers: process numbers are those of refleak's own pid namespace, whatever the kernel's are."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from containers import PID_NAMESPACE, after, container, traced_within, words
from live_refleak import live_refleak
from traced_report import Run
from uprobe_list import EVENTS

MOST = 100
"""The numbers of a young pid namespace are below it."""


def check_short(run: Run) -> None:
    run.check_whole()
    assert run.blocks == (31, 0, 31, 4681)
    assert run.alive("allocation") == [("malloc", "leak_and_leave", 31, 4681)]


def pids(run: Run) -> set[int]:
    return {process["pid"] for process in run.report["processes"]}


@pytest.mark.parametrize(
    "prefix",
    [PID_NAMESPACE, PID_NAMESPACE * 2, (*PID_NAMESPACE, "unshare", "--cgroup", "--uts", "--ipc")],
    ids=["pid", "nested", "cgroup"],
)
def test_a_launched_program(targets: Path, tmp_path: Path, prefix: tuple[str, ...]) -> None:
    run = traced_within(prefix, tmp_path / "report", "--exec", targets / "short")
    check_short(run)
    assert max(pids(run)) < MOST


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_program_in_a_namespace_below(targets: Path, tmp_path: Path, depth: int) -> None:
    inner = ("--exec", *PID_NAMESPACE, targets / "short")
    run = traced_within(PID_NAMESPACE * depth, tmp_path / "report", *inner)
    run.check_whole()
    [leak] = run.below("leak_and_leave", "allocation")
    assert (leak["state"], leak["count"], leak["bytes"]) == ("leaked", 31, 4681)
    assert 1 not in pids(run)


def test_children(targets: Path, tmp_path: Path) -> None:
    run = traced_within(PID_NAMESPACE, tmp_path / "report", "--exec", targets / "fork_no_exec")
    run.check_whole()
    parent, child = run.report["processes"]
    assert (parent["parent"], child["parent"]) == (None, parent["pid"])
    assert max(pids(run)) < MOST
    assert [(leak["pid"], leak["count"]) for leak in run.below("in_child", "allocation")] == [(child["pid"], 7)]
    assert run.blocks == (20, 2, 18, 694)


def test_the_first_process_of_a_namespace_leaves_no_names(targets: Path, tmp_path: Path) -> None:
    """With it ends the process that it leaves them to."""
    traced_within(PID_NAMESPACE, tmp_path / "report", "--exec", targets / "fork_no_exec").check_whole()
    assert ":refleak_1_" not in EVENTS.read_text()


def test_threads(targets: Path, tmp_path: Path) -> None:
    inside = traced_within(PID_NAMESPACE, tmp_path / "inside", "--exec", targets / "threads")
    outside = traced_within((), tmp_path / "outside", "--exec", targets / "threads")
    inside.check_whole()
    assert inside.blocks == outside.blocks != (0, 0, 0, 0)


def test_execs(targets: Path, tmp_path: Path) -> None:
    run = traced_within(PID_NAMESPACE, tmp_path / "report", "--exec", targets / "fork_exec_chain", 3)
    run.check_whole()
    leaks = run.below("leak_in_link", "allocation")
    assert sorted(leak["count"] for leak in leaks if leak["state"] == "leaked") == [2, 3, 5, 7]


def test_libraries_that_are_loaded_later(targets: Path, tmp_path: Path) -> None:
    run = traced_within(
        PID_NAMESPACE, tmp_path / "report", "--exec", targets / "dlopen_sequence", LD_LIBRARY_PATH=str(targets)
    )
    run.check_whole()
    assert sum(leak["count"] for leak in run.below("leak_in_a", "allocation")) == 26
    assert sum(leak["count"] for leak in run.below("leak_in_b", "allocation")) == 17


def test_references(targets: Path, tmp_path: Path) -> None:
    inside = traced_within(PID_NAMESPACE, tmp_path / "inside", "--exec", targets / "refs_threads")
    outside = traced_within((), tmp_path / "outside", "--exec", targets / "refs_threads")
    inside.check_whole()
    assert inside.types == outside.types != {}


@contextmanager
def target_in(prefix: tuple[str, ...], target: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([*prefix, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def numbers(pid: int) -> list[int]:
    """Return a process's numbers in the namespaces that it is in, outermost first."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return [int(word) for word in next(line for line in lines if line.startswith("NSpid:")).split()[1:]]


def attached_to(target: subprocess.Popen[bytes], prefix: tuple[str, ...], pid: int, output: Path) -> Run:
    """Trace a target from when it is ready to when it has ended, by its number `pid` where the prefix leads."""
    assert target.stdin is not None and target.stdout is not None
    with live_refleak(output, "-p", pid, prefix=prefix) as refleak:
        refleak.wait_until_attached()
        target.stdin.write(b"x")
        assert target.stdout.readline() == b"done\n"
        target.stdin.close()
        return refleak.end()


def check_attached(run: Run, pid: int) -> None:
    run.check_whole()
    assert run.alive("allocation") == [("malloc", "leak_after_attach", 19, 3173)]
    assert pids(run) == {pid}


def test_attach_within(targets: Path, tmp_path: Path) -> None:
    with container() as box, target_in(box.enter, targets / "attach") as target:
        pid = numbers(child_of(target.pid))[-1]
        check_attached(attached_to(target, box.enter, pid, tmp_path / "report"), pid)


def test_attach_from_outside(targets: Path, tmp_path: Path) -> None:
    with container() as box, target_in(box.enter, targets / "attach") as target:
        pid = child_of(target.pid)
        assert numbers(pid)[0] == pid > numbers(pid)[-1]
        check_attached(attached_to(target, (), pid, tmp_path / "report"), pid)


def test_attach_to_a_container_within(targets: Path, tmp_path: Path) -> None:
    with container() as box, target_in((*box.enter, *PID_NAMESPACE), targets / "attach") as target:
        _, pid, innermost = numbers(child_of(child_of(target.pid)))
        assert innermost == 1
        check_attached(attached_to(target, box.enter, pid, tmp_path / "report"), pid)


def test_who_is_outside_cannot_be_seen(targets: Path, tmp_path: Path) -> None:
    with target_in((), targets / "attach") as target:
        assert target.pid > MOST
        run = traced_within(PID_NAMESPACE, tmp_path / "report", "-p", target.pid)
        assert target.poll() is None
    assert run.status == 66
    assert f"there is no process {target.pid}" in run.stderr


def test_the_same_numbers_in_another_container(targets: Path, tmp_path: Path) -> None:
    command = ("--exec", targets / "attach")
    with (
        container() as ours,
        container() as others,
        live_refleak(tmp_path / "report", *command, prefix=ours.enter) as refleak,
    ):
        assert refleak.line() == b"ready\n"
        used = "for i in $(seq 100); do /bin/true & echo $!; done; wait"
        shown = subprocess.run([*others.enter, "sh", "-c", used], check=True, capture_output=True).stdout
        refleak.tell(b"x")
        assert refleak.line() == b"done\n"
        run = refleak.end()
    run.check_whole()
    assert ("malloc", "leak_after_attach", 19, 3173) in run.alive("allocation")
    assert pids(run) < set(map(int, shown.split()))


def test_proc_of_another_namespace(targets: Path, tmp_path: Path) -> None:
    run = traced_within(("unshare", "--pid", "--fork"), tmp_path / "report", "--exec", targets / "short")
    assert run.status == 77
    assert run.stderr.startswith("refleak: /proc is not mounted, or is that of another pid namespace")
    assert "unshare --mount-proc" in run.stderr


@pytest.mark.parametrize("namespaces", [(), PID_NAMESPACE[1:]])
def test_a_user_namespace(targets: Path, tmp_path: Path, namespaces: tuple[str, ...]) -> None:
    prefix = ("unshare", "--user", "--map-root-user", *namespaces)
    run = traced_within(prefix, tmp_path / "report", "--exec", targets / "short")
    assert run.status == 77
    assert run.stderr.startswith("refleak: tracing is not permitted in a user namespace")


def test_another_root(targets: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    prefix = (*after(words("mount", "--rbind", "/", root)), "chroot", str(root))
    check_short(traced_within(prefix, tmp_path / "report", "--exec", targets / "short"))


def test_a_root_that_cannot_be_written(targets: Path, tmp_path: Path) -> None:
    prefix = after(words("mount", "--bind", tmp_path, tmp_path), "mount -o remount,bind,ro /", "! touch /refleak-test")
    run = traced_within(prefix, tmp_path / "report", "--exec", targets / "short", XDG_CACHE_HOME="/nowhere")
    check_short(run)


def test_without_tracefs(targets: Path, tmp_path: Path) -> None:
    hide = "mount -t tmpfs none"
    prefix = after(f"{hide} /sys/kernel/tracing", f"{hide} /sys/kernel/debug", "! test -e /sys/kernel/tracing/README")
    check_short(traced_within(prefix, tmp_path / "report", "--exec", targets / "short"))


def test_an_overlay(targets: Path, tmp_path: Path) -> None:
    layers, root = tmp_path / "layers", tmp_path / "root"
    layers.mkdir()
    root.mkdir()
    prefix = (
        *after(
            words("mount", "-t", "tmpfs", "none", layers),
            words("mkdir", layers / "upper", layers / "work"),
            words("mount", "-t", "overlay", "overlay",
                  "-o", f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", root),
            *(words("mount", "--rbind", place, f"{root}{place}") for place in ("/proc", "/sys", "/dev")),
            words("mount", "--bind", tmp_path, f"{root}{tmp_path}"),
        ), "chroot", str(root),
    )  # fmt: skip
    check_short(traced_within(prefix, tmp_path / "report", "--exec", targets / "short"))
