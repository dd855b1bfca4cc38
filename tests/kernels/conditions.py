"""What a machine may have otherwise than usual, besides its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """How the machine differs."""

    append: tuple[str, ...] = ()
    """Words for the kernel's command line."""
    processors: int = 2
    setup: tuple[str, ...] = ()
    """Lines of shell that run first, as root: one that fails ends the run."""
    refused_for: str = ""
    """The check for which doctor has to refuse, where refleak cannot find what it finds elsewhere."""


USUAL = Condition()
_ONLINE = "/sys/devices/system/cpu/cpu{}/online"
_TURNS = f"while sleep 1; do echo 0 >{_ONLINE.format(1)}; sleep 1; echo 1 >{_ONLINE.format(1)}; done"
_CGROUP1 = "/tmp/cgroup1"
CONDITIONS: Mapping[str, Condition] = {
    "processors": Condition(processors=4),
    "hotplug": Condition(
        ("maxcpus=2",), 3, (f"echo 1 >{_ONLINE.format(2)}", f"({_TURNS}) </dev/null >/dev/null 2>&1 & true")
    ),
    "paranoid": Condition(setup=(
        "sysctl -w kernel.perf_event_paranoid=3 kernel.kptr_restrict=2 kernel.yama.ptrace_scope=1",
    )),
    "memlock": Condition(setup=("ulimit -H -l 64",)),
    "cgroup1": Condition(setup=(
        f"mkdir -p {_CGROUP1}", f"mount -t tmpfs none {_CGROUP1}", f"mkdir {_CGROUP1}/pids",
        f"umount /sys/fs/cgroup || true; mount -t cgroup -o pids none {_CGROUP1}/pids", f"mkdir {_CGROUP1}/pids/a",
        f"echo $$ >{_CGROUP1}/pids/a/cgroup.procs", "cat /proc/self/cgroup",
    )),
    "lockdown": Condition(refused_for="lockdown", setup=(
        "mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security",
        "echo confidentiality >/sys/kernel/security/lockdown",
    )),
    "integrity": Condition(setup=(
        "mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security",
        "echo integrity >/sys/kernel/security/lockdown",
    )),
    "no-btf": Condition(refused_for="BTF", setup=("mount -t tmpfs none /sys/kernel/btf",)),
}  # fmt: skip
"""Each run by `python -m tests.kernels --under NAME`; docs/kernels.md says what it gave."""
