"""`refleak top` in a real terminal of 80 by 24, driven through tmux."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_refleak import REFLEAK, environment, wait_for


class Pane:
    """A shell in a terminal."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        shell = "env PS1='$ ' bash --norc --noprofile"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", shell)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-u", "-L", self._socket, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment()).stdout

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def wait_for(self, pattern: str) -> str:
        wait_for(lambda: re.search(pattern, self.text(), re.M), f"{pattern} in {self.text()!r}")
        return self.text()


@pytest.fixture
def pane(tmp_path: Path) -> Iterator[Pane]:
    if not shutil.which("tmux"):
        pytest.skip("needs tmux")
    pane = Pane(f"refleak-{tmp_path.name}")
    try:
        yield pane
    finally:
        pane.tmux("kill-server")


def start(pane: Pane, targets: Path, tmp_path: Path, name: str = "periods") -> Path:
    """Watch a target, whose steps are a byte of a pipe each; return the pipe."""
    pipe = tmp_path / "steps"
    command = f"{REFLEAK} top --interval 0.2 --exec {targets / name} < {pipe}; echo status=$?"
    pane.keys(f"export TMPDIR={shlex.quote(str(tmp_path))} LC_ALL=C.UTF-8; mkfifo {pipe}; exec 9<>{pipe}", "Enter")
    pane.keys(command, "Enter")
    pane.wait_for(r"^refleak top  ")
    return pipe


def step(pane: Pane, pipe: Path) -> None:
    with open(pipe, "wb", buffering=0) as stream:
        stream.write(b"x")


def test_what_it_shows_and_leaves(pane: Pane, targets: Path, tmp_path: Path) -> None:
    pipe = start(pane, targets, tmp_path)
    screen = pane.wait_for(r" 205 B +5 .* make_first")
    assert len(screen.rstrip("\n").split("\n")) == 24
    assert screen.splitlines()[-1].startswith("q quit")
    pane.keys("m")
    pane.wait_for(r"marked at")
    step(pane, pipe)
    pane.wait_for(r" 413 B +7 .* 413 B .* make_second")  # all of them newer than the mark
    pane.wait_for(r" 205 B +5 .* 0 B .* make_first")
    pane.keys("t")
    pane.wait_for(r"^ +1 +2 +0 +1 +1  thing")
    pane.keys("t")
    pane.keys("Down")
    pane.keys("Enter")
    pane.wait_for(r"^id [0-9a-f]{12}: 5 blocks, 205 bytes by malloc")
    pane.wait_for(r"^  main  .*periods.c:\d+")
    pane.keys("l")
    pane.wait_for(r"looked into at .*, held .*")
    pane.wait_for(r"^  5 (still reachable|lost)")
    pane.tmux("resize-window", "-x", "60", "-y", "12")
    wait_for(lambda: len(pane.text().rstrip("\n").split("\n")) == 12, "the smaller screen")
    pane.wait_for(r"^q quit")
    pane.tmux("resize-window", "-x", "80", "-y", "24")
    pane.keys("Escape")
    step(pane, pipe)
    pane.wait_for(r" 82 B +2 .* make_first")
    pane.keys("q")
    screen = pane.wait_for(r"^status=0$")
    assert "outstanding" in screen, screen
    assert "refleak top  " not in screen  # the screen of before is back
    pane.keys("stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo -e isig | tr '\\n' ' '", "Enter")
    pane.wait_for(r"^isig icanon echo")
    (output,) = tmp_path.glob("refleak-periods-*.out")
    assert output.read_text() == "ready\n" * 3
    step(pane, pipe)


def test_a_target_that_ends_ends_it(pane: Pane, targets: Path, tmp_path: Path) -> None:
    pipe = start(pane, targets, tmp_path)
    for _ in range(3):
        step(pane, pipe)
    screen = pane.wait_for(r"^status=0$")
    assert "refleak: LEAK" in screen


def test_who_retains_what_grew_between_two_looks(pane: Pane, targets: Path, tmp_path: Path) -> None:
    """A list that a member of a global holds grows; a lost block may be held from the stack still."""
    pipe = start(pane, targets, tmp_path, "retains")
    pane.wait_for(r"in 36 blocks")
    pane.keys("h")
    pane.wait_for(r"^ +not looked into yet$")
    pane.keys("l")
    first = pane.wait_for(r"^ +1\.6 KiB +cache\.table\.head \[retains\]$")
    assert re.search(r"^ +1\.4 KiB +first\[\] \[retains\]$", first, re.M), first
    assert re.search(r"^ +1\.6 KiB +13 x a block from make_node retains\.c:\d+$", first, re.M), first
    assert re.search(r"^ +312 B +13 x a block from make_name retains\.c:\d+$", first, re.M), first
    step(pane, pipe)
    pane.wait_for(r"in 65 blocks")
    pane.keys("l")
    second = pane.wait_for(r"of the 1\.8 KiB that grew since the look at")
    assert re.search(r"^  9\d % of the 1\.8 KiB that grew since the look at .* are retained by$", second, re.M), second
    assert re.search(r"^ +3\.[123] KiB +\+1\.6 KiB  cache\.table\.head \[retains\]$", second, re.M), second
    assert re.search(r"^ +1\.4 KiB +\+0 B  first\[\] \[retains\]$", second, re.M), second
    assert re.search(r"^  lost: \d+ bytes in \d blocks \(\+\d+ B\)$", second, re.M), second
    pane.keys("Escape")
    pane.keys("Enter")
    pane.wait_for(r"^  26 still reachable \(\+13\)$")
    pane.wait_for(r"^  without cache\.table\.head \[retains\] it would be lost$")
    pane.tmux("resize-window", "-x", "200", "-y", "24")
    pane.keys("Escape")
    pane.wait_for(r"^ +bytes\* .* made in +held by$")
    pane.wait_for(r" make_kept \(retains.c:\d+\) +first\[\] \[retains\]$")
    pane.tmux("resize-window", "-x", "40", "-y", "24")
    pane.keys("h")
    pane.wait_for(r"^ +retained\*  by$")
    pane.keys("s")
    pane.wait_for(r"^ +\+1\.6 KiB  cache\.table\.head \[retains\]$")
    pane.keys("q")
    pane.wait_for(r"^status=0$")
    for _ in range(2):
        step(pane, pipe)
