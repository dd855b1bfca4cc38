"""Boots a kernel in a virtual machine with this machine's root file system, read-only but for one folder."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import venv
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kernels.conditions import USUAL, Condition
from tests.kernels.packages import Kernel

CHECKOUT = Path(__file__).parents[2]
CACHE = "refleak-cache"
"""In the folder of a machine."""
_KVM = Path("/dev/kvm")
_SIDE_BY_SIDE, _IN_TURNS = (f"--qemu-opts=-accel tcg,thread={how}" for how in ("multi", "single"))
"""Emulated processors. Side by side, one may still run code that another has patched: kernels, which patch themselves
for perf's events, have ended in a panic in the midst of `__schedule`. In turns, of 0.1 s, whoever waits for another one
waits for its turn: probes of a child that is held take longer than a hold may last."""
_PANIC = b"Kernel panic"
_KVM_GET_API_VERSION, _KVM_API = 0xAE00, 12
_KVM_TRIAL_SECONDS = 60
TARGETS = CHECKOUT / "tests" / "kernel" / "targets" / "build"
# The emulated processor has AVX2 in a version that sorts of numpy do not survive, and takes a factor of the time.
_VARIABLES = {"REFLEAK_TARGETS": str(TARGETS), "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 X86_V3",
              "REFLEAK_NO_SKIPS": "1", "REFLEAK_TEST_PATIENCE": "5", "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip


# A real disk's file system reads on when it is asked to (tracer/architecture/early_library.py); 9p does not.
_CAPSTONE = ".venv/lib/python*/site-packages/capstone/lib/libcapstone.so* /usr/lib/*/libcapstone.so.*"
_READ_AHEAD = f"cat {_CAPSTONE} >/dev/null 2>&1"


class NoMachine(Exception):
    """There is nothing here that boots a kernel."""


@dataclass(frozen=True)
class Machine:
    """How to boot here."""

    vng: Path
    kvm: bool
    memory: str = "3G"
    condition: Condition = USUAL

    @property
    def kind(self) -> str:
        return "KVM" if self.kvm else "emulated"

    def command(self, kernel: Kernel, folder: Path, script: Path, *, in_turns: bool = False) -> list[str]:
        """Return the command that boots a kernel and runs a script; `folder` can be written there."""
        # Emulated, the processors' counters seem to differ, and every look at the clock is one at an emulated device;
        # what keeps real processors from guessing costs time there, and keeps nothing from nothing.
        how = _IN_TURNS if in_turns else _SIDE_BY_SIDE
        slow = ["--disable-kvm", "--append", "tsc=reliable", "--append", "mitigations=off", how]
        acceleration = [] if self.kvm else slow
        words = [word for each in self.condition.append for word in ("--append", each)]
        return [
            str(self.vng), "--run", str(kernel.image), *acceleration, *words, "--memory", self.memory,
            "--cpus", str(self.condition.processors), "--force-9p", "--verbose", "--rwdir", str(folder),
            "--", "bash", str(script),
        ]  # fmt: skip

    def run(self, kernel: Kernel, folder: Path, words: Sequence[str], seconds: float) -> int | None:
        """Run a command of the checkout in a booted kernel; return its status, None where it did not come to one.

        What it says is in `output` in the folder, what the machine says in `console`. Where emulated processors end in
        a panic, they run in turns then.
        """
        status = self._run(kernel, folder, words, seconds, in_turns=False)
        if status is None and not self.kvm and _PANIC in (folder / "console").read_bytes():
            status = self._run(kernel, folder, words, seconds, in_turns=True)
        return status

    def _run(
        self, kernel: Kernel, folder: Path, words: Sequence[str], seconds: float, *, in_turns: bool
    ) -> int | None:  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        status, run = folder / "status", folder / "run.sh"
        status.unlink(missing_ok=True)
        run.write_text(guest_script(folder, words, self.condition.setup))
        environment = os.environ | {"PATH": f"{self.vng.parent}:{os.environ.get('PATH', os.defpath)}"}
        with (folder / "console").open("wb") as console:
            process = subprocess.Popen(
                self.command(kernel, folder, run, in_turns=in_turns), stdin=subprocess.DEVNULL, stdout=console,
                stderr=console, env=environment, cwd=CHECKOUT, start_new_session=True,
            )  # fmt: skip
            try:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)
            finally:
                _end(process)
        return int(status.read_text()) if status.exists() and status.read_text().strip() else None


class ThisMachine(Machine):
    """The kernel that runs here, beside which others are put: the same script, without a machine around it."""

    @property
    def kind(self) -> str:
        return "this machine"

    def command(self, kernel: Kernel, folder: Path, script: Path, *, in_turns: bool = False) -> list[str]:
        return ["bash", str(script)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the machine with all that it consists of: a session of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def guest_script(folder: Path, words: Sequence[str], setup: Sequence[str] = ()) -> str:
    """Return what runs in the machine; without its last line, the status, where a line of `setup` fails."""
    home = folder / "home"
    exports = {
        **_VARIABLES, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(folder / "tmp"),
        "REFLEAK_CACHE": str(folder / CACHE),
    }  # fmt: skip
    lines = [
        "#!/bin/bash",
        "test -e /sys/kernel/tracing/README || mount -t tracefs none /sys/kernel/tracing",
        "mountpoint -q /sys/fs/bpf || mount -t bpf none /sys/fs/bpf",
        *(f"export {name}={shlex.quote(value)}" for name, value in exports.items()),
        'mkdir -p "$HOME" "$TMPDIR"',
        f"cd {shlex.quote(str(CHECKOUT))}",
        f"uname -r >{shlex.quote(str(folder / 'release'))}",
        _READ_AHEAD,
        *(f"{{ {line}; }} || exit 1" for line in setup),
        f"{shlex.join(words)} >{shlex.quote(str(folder / 'output'))} 2>&1",
        f"echo $? >{shlex.quote(str(folder / 'status'))}",
        "sync",
    ]
    return "\n".join(lines) + "\n"


def install_vng(cache: Path) -> Path:
    """Return virtme-ng's `vng`, installed into an environment of its own where it is not there yet.

    Raises NoMachine.
    """
    folder = cache / "virtme-ng"
    if not (folder / "bin" / "vng").exists():
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run([*pip, "virtme-ng"], check=True, timeout=600, stdout=sys.stderr)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoMachine(f"virtme-ng cannot be installed: {error}") from error
        _keep_what_was_read(folder)
    return folder / "bin" / "vng"


def _keep_what_was_read(folder: Path) -> None:
    """Have the machine keep the pages of files that it read here: without, each process reads its libraries again.

    virtme-ng has no option for it. Emulated, that is half of the time in which numpy is imported.
    """
    for path in folder.glob("lib/python*/site-packages/virtme/mkinitramfs.py"):
        path.write_text(path.read_text().replace("msize=524288 /dev/root", "msize=524288,cache=loose /dev/root"))


def may_have_kvm(device: Path = _KVM) -> bool:
    """Return whether the kernel here offers KVM; a machine may fail on it all the same."""
    try:
        with device.open("rb+", buffering=0) as file:
            return fcntl.ioctl(file, _KVM_GET_API_VERSION) == _KVM_API
    except OSError:
        return False


def machine_here(cache: Path, trial: Kernel) -> Machine:
    """Return how to boot: with KVM only where a machine came up with it."""
    fast = Machine(install_vng(cache), kvm=True)
    if may_have_kvm() and fast.run(trial, cache / "trial", ["true"], _KVM_TRIAL_SECONDS) == 0:
        return fast
    return Machine(fast.vng, kvm=False)
