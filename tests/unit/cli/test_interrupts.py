"""Interrupts at moments that no test meets by chance: each is sent by what is called at that moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from built_program import build

from tracer.cli import main as main_module

ROOT = Path(__file__).parents[3]
WITHIN = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
	int (*real)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
	struct sigaction before;
	if (number == SIGINT && new && new->sa_handler == SIG_DFL) {
		real(number, NULL, &before);
		if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
			raise(SIGINT);
	}
	return real(number, new, old);
}
"""
"""An interrupt while Python goes from a handler to the default: it has looked for interrupts, and the kernel has not
been told. Python then finds one without a handler, and says "Exception ignored ... due to race condition"."""
BEGIN = """
import os, signal
from tracer.cli.interrupts import interruptible, last_words
signal.signal(signal.SIGINT, signal.SIG_DFL)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("within"), WITHIN, "-shared", "-fPIC")


BEFORE = """\
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
__attribute__((constructor)) static void before(void)
{
	if (!strncmp(program_invocation_short_name, "python", 6))
		raise(SIGINT);
}
"""


def ended(*words: str, preload: Path | None = None) -> tuple[int, str]:
    """Return the status of a run, and what was said; whatever started the tests may ignore interrupts."""
    environment = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
    done = subprocess.run(
        ["env", "--default-signal=INT", *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def code(body: str) -> tuple[str, ...]:
    """Return a command that runs `body`, from where no interrupt has a handler."""
    return "sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", BEGIN + body


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("with interruptible(): os.kill(os.getpid(), signal.SIGINT)", ""),
        ("with interruptible(): print('done', flush=True)", "done\n"),
        ("with last_words('too early'): os.kill(os.getpid(), signal.SIGINT)", "too early\n"),
        ("with last_words('too early'): print('done', flush=True)", "done\n"),
    ],
)
def test_an_interrupt_while_the_handler_changes_ends_the_process_and_says_nothing(
    library: Path, body: str, said: str
) -> None:
    assert ended(*code(body), preload=library) == (-signal.SIGINT, said)


def test_an_interrupt_while_the_module_begins_says_nothing(library: Path) -> None:
    assert ended(sys.executable, "-m", "tracer", "--version", preload=library) == (-signal.SIGINT, "")


def test_an_interrupt_before_python_runs_a_line_of_refleak_s_ends_it(tmp_path: Path) -> None:
    """It was ignored, and what was asked for was done."""
    before = build(tmp_path, BEFORE, "-shared", "-fPIC")
    assert ended(str(ROOT / "refleak"), "--version", preload=before) == (-signal.SIGINT, "")


@pytest.mark.parametrize("how", ["--ignore-signal=INT", "--block-signal=INT"])
def test_who_ignores_or_blocks_interrupts_is_not_ended_by_one(tmp_path: Path, how: str) -> None:
    before = build(tmp_path, BEFORE, "-shared", "-fPIC")
    status, said = ended("env", how, str(ROOT / "refleak"), "--version", preload=before)
    assert (status, said.startswith("refleak ")) == (0, True)


def of_a_class(_: object) -> int:
    """Python 3.11 makes an interrupt in the midst of a class another error."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise RuntimeError("Error calling __set_name__ on 'Field' instance") from interrupt
    return 0


def of_what_was_half_done(_: object) -> int:
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        raise RuntimeError("dictionary changed size during iteration")


def of_its_own(_: object) -> int:
    raise RuntimeError("of its own")


@pytest.fixture
def _interrupts_are_heard() -> Iterator[None]:
    """What runs the tests may ignore them, as a shell has what it starts with & do."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interrupts_are_heard")
@pytest.mark.parametrize(("run", "status"), [(of_a_class, 130), (of_what_was_half_done, 130), (of_its_own, 70)])
def test_what_an_interrupt_becomes_is_an_interrupt(
    run: Callable[[object], int], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main_module, "_parsed", lambda name, words: (SimpleNamespace(run=run), None))
    assert main_module.main(["report"]) == status
    assert ("failed by itself" in capsys.readouterr().err) == (status == 70)
