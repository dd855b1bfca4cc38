"""Kernels as packages of the distribution: fetched with apt into a folder of our own, unpacked, never installed.

Apt gets a configuration of its own beside the machine's: the machine's stanzas with another suite in them, and lists
and archives in our folder. What the machine has installed, and its own sources, stay as they are.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path

SUITES = {"6.1": "bookworm", "6.1-rt": "bookworm", "6.12": "trixie", "6.12-rt": "trixie", "7.2": "sid"}
"""Of Debian, by the version of the kernel that it has; with -rt the one with real-time preemption."""
_SOURCES = Path("/etc/apt/sources.list.d")
_OS_RELEASE = Path("/etc/os-release")
_FLAVOURS = re.compile(r"-(rt|cloud|dbg|unsigned)(-|$)")
_TIMEOUT_SECONDS = 1200


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel."""

    version: str
    """As it was asked for: 6.1."""
    image: Path

    @property
    def release(self) -> str:
        """What `uname -r` says in it."""
        if self.image.name == "vmlinuz":
            return self.image.parent.name
        return self.image.name.removeprefix("vmlinuz-")


class NoKernel(Exception):
    """There is no such kernel to be had."""


def for_suite(stanzas: str, codename: str, suite: str) -> str:
    """Return deb822 stanzas of the distribution's own archives, `codename` replaced by `suite` in each.

    What is not of `codename` (other vendors' archives) is left out; of sid there are no updates.
    """
    kept = []
    for stanza in re.split(r"\n\s*\n", stanzas):
        suites = re.search(r"^Suites:(.*)$", stanza, re.MULTILINE)
        if suites is None or not any(re.fullmatch(rf"{codename}(-.*)?", name) for name in suites[1].split()):
            continue
        names = [suite + name.removeprefix(codename) for name in suites[1].split() if name.startswith(codename)]
        names = [name for name in names if suite != "sid" or name == suite]
        if names:
            kept.append(stanza.replace(suites[0], f"Suites: {' '.join(names)}").strip())
    return "\n\n".join(kept) + "\n" if kept else ""


def choose(names: Iterable[str], version: str) -> tuple[str, ...]:
    """Return the packages that make the newest amd64 kernel of a version: one, or its image and its modules.

    A kernel is a plain one, or one of the flavour that the version ends in: 6.12-rt.

    `names`: of all packages. Raises NoKernel.
    """
    number, _, flavour = version.partition("-")
    end = f"-{flavour}-amd64" if flavour else "-amd64"
    release = re.compile(rf"linux-(image|binary|modules)-({re.escape(number)}[.-]\S*){end}")
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = release.fullmatch(name)
        if match and not _FLAVOURS.search(match[2]):
            found.setdefault(match[2], {})[match[1]] = name
    whole = {key: kinds for key, kinds in found.items() if "image" in kinds or kinds.keys() >= {"binary", "modules"}}
    if not whole:
        raise NoKernel(f"no package has Linux {version}")
    kinds = whole[max(whole, key=cmp_to_key(_compare))]
    if "binary" in kinds and "modules" in kinds:
        return kinds["binary"], kinds["modules"]
    return (kinds["image"],)


def _compare(first: str, second: str) -> int:
    """Compare releases by the numbers in them."""
    numbers = [[int(word) for word in re.findall(r"\d+", release)] for release in (first, second)]
    return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])


def fetch(version: str, cache: Path) -> Kernel:
    """Return a kernel, from the cache where it was fetched before; raises NoKernel."""
    root = cache / f"linux-{version}"
    if not (root / "fetched").exists():
        _fetch(version, root)
    images = [*root.glob("unpacked/boot/vmlinuz-*"), *root.glob("unpacked/usr/lib/modules/*/vmlinuz")]
    if not images:
        raise NoKernel(f"the packages of Linux {version} have no vmlinuz")
    return Kernel(version, images[0])


def _fetch(version: str, root: Path) -> None:
    if version not in SUITES:
        raise NoKernel(f"no suite is known that has Linux {version}; known: {', '.join(SUITES)}")
    apt = _configure(root, SUITES[version])
    _run(["apt-get", *apt, "update"], root, may_fail=True)  # a suite without updates
    packages = choose(_run(["apt-cache", *apt, "pkgnames", "linux-"], root).split(), version)
    _run(["apt-get", *apt, "download", *packages], root)
    for archive in sorted(root.glob("*.deb")):
        _run(["dpkg", "-x", str(archive), str(root / "unpacked")], root)
        archive.unlink()
    (root / "fetched").write_text("".join(f"{package}\n" for package in packages))


def _configure(root: Path, suite: str) -> Sequence[str]:
    """Write apt's configuration for a suite; return its options."""
    for folder in ("parts", "lists/partial", "cache/archives/partial"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    codename = re.search(r"^VERSION_CODENAME=(\S+)", _OS_RELEASE.read_text(), re.MULTILINE)
    if codename is None:
        raise NoKernel("this is no release of Debian")
    machine = "\n\n".join(path.read_text() for path in sorted(_SOURCES.glob("*.sources")))
    machine = re.sub(r"^#.*\n", "", machine, flags=re.MULTILINE)
    ours = for_suite(machine, codename[1], suite)
    if not ours:
        raise NoKernel(f"no source in {_SOURCES} is of {codename[1]}")
    (root / "parts" / "kernels.sources").write_text(ours)
    options = {
        "Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": root / "parts",
        "Dir::State::Lists": root / "lists", "Dir::Cache": root / "cache", "APT::Sandbox::User": "root",
    }  # fmt: skip
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _run(command: Sequence[str], folder: Path, *, may_fail: bool = False) -> str:
    try:
        result = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernel(f"{command[0]} did not end well: {error}") from error
    if result.returncode and not may_fail:
        raise NoKernel(f"{' '.join(command[:1])} failed: {result.stderr.strip()[-500:]}")
    return result.stdout
