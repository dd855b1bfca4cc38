"""Paths of a process as another one can open them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tracer.procfs.roots import OWN_ROOT, Root, path_of_process, root_of


@pytest.fixture
def root(tmp_path: Path) -> Root:
    folder = tmp_path / "root"
    (folder / "usr/lib").mkdir(parents=True)
    (folder / "home").mkdir()
    (folder / "lib").symlink_to("usr/lib")
    (folder / "usr/lib/a").symlink_to("/home/b")
    (folder / "home/b").symlink_to("../../../usr/c")
    (folder / "home/circle").symlink_to("circle")
    return Root(str(folder), str(folder / "home"), "/home", is_own=False)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/usr/c", "usr/c"),
        ("//usr/./lib/../c", "usr/c"),
        ("/lib/d", "usr/lib/d"),
        ("/lib/../d", "usr/d"),
        ("/lib/a", "usr/c"),
        ("/../../usr/c", "usr/c"),
        ("b", "usr/c"),
        ("./e", "home/e"),
        ("../usr/c", "usr/c"),
        ("/home/circle", "home/circle"),
    ],
)
def test_links_are_followed_inside_the_root(root: Root, path: str, place: str) -> None:
    assert root.place_of(path) == f"{root.directory}/{place}"


def test_a_working_directory_outside_the_root() -> None:
    assert Root("/root", "/proc/1/cwd", None, is_own=False).place_of("x/../y") == "/proc/1/cwd/x/../y"


def test_under_the_own_root_links_stay_as_they_are() -> None:
    own = root_of(os.getpid())
    assert own.is_own
    assert (own.place_of("/bin/sh"), own.place_of("x")) == (f"/proc/{os.getpid()}/root/bin/sh",
                                                           f"/proc/{os.getpid()}/cwd/x")  # fmt: skip
    assert (OWN_ROOT.place_of("/bin/sh"), OWN_ROOT.place_of("../x")) == ("/bin/sh", "../x")


def test_the_root_of_a_process_that_is_gone() -> None:
    assert not root_of(0).is_own


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/proc/self/exe", "/proc/7/exe"), ("/proc/thread-self/fd/3", "/proc/7/fd/3"), ("/dev/fd/3", "/proc/7/fd/3"),
        ("/proc/selfish", "/proc/selfish"), ("/usr/bin/true", "/usr/bin/true"), ("self", "self"),
    ],
)  # fmt: skip
def test_names_that_mean_another_file_to_each_process(path: str, meant: str) -> None:
    assert path_of_process(7, path) == meant
