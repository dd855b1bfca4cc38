"""Readers of profiles that are not ours: `go tool pprof` and gperftools' script."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="needs go (Debian: golang-go)")
needs_google_pprof = pytest.mark.skipif(
    shutil.which("google-pprof") is None, reason="needs google-pprof (Debian: google-perftools)"
)
_ENVIRONMENT = {**os.environ, "LC_ALL": "C", "GOFLAGS": "", "PPROF_BINARY_PATH": "/nonexistent"}


@dataclass(frozen=True)
class RawProfile:
    """What `pprof -raw` prints, by section."""

    types: tuple[str, ...]
    samples: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """Values and locations, leaf first."""
    locations: dict[int, tuple[str, ...]]
    """"ADDRESS M=N" and, for each inlined function and the outermost, "NAME FILE:LINE"."""
    mappings: tuple[str, ...]

    def sums(self) -> tuple[int, ...]:
        return tuple(sum(values) for values in zip(*(values for values, _ in self.samples), strict=True))


def go_pprof(path: Path) -> RawProfile:
    said = subprocess.run(
        ["go", "tool", "pprof", "-raw", "-symbolize=none", str(path)],
        env=_ENVIRONMENT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    _, rest = said.stdout.split("Samples:\n")
    samples, rest = rest.split("Locations\n")
    locations, mappings = rest.split("Mappings\n")
    head, *lines = samples.splitlines()
    found = [re.fullmatch(r"\s*((?:-?\d+ *)+): ([\d ]*)", line) for line in lines]
    locations = re.sub(r"(:\d+):0\b", r"\1", locations)  # since Go 1.22 a column stands behind the line
    return RawProfile(
        types=tuple(head.replace("[dflt]", "").split()),
        samples=tuple((_numbers(m[1]), _numbers(m[2])) for m in found if m),
        locations=_locations(locations),
        mappings=tuple(mappings.splitlines()),
    )


def go_pprof_names(path: Path) -> list[str]:
    """Return the functions of `pprof -top` as users run it, which makes names anew where it thinks that it should."""
    command = ["go", "tool", "pprof", "-top", "-nodefraction=0", str(path)]
    said = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, text=True, timeout=120, check=True).stdout
    _, rows = said.split("cum%\n")
    return [row.split(maxsplit=5)[5].removesuffix(" (inline)") for row in rows.splitlines()]


def go_pprof_tags(path: Path) -> dict[str, set[str]]:
    """Return the values of each label."""
    said = subprocess.run(
        ["go", "tool", "pprof", "-tags", "-symbolize=none", str(path)],
        env=_ENVIRONMENT, capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    tags: dict[str, set[str]] = {}
    key = ""
    for line in said.splitlines():
        if head := re.match(r"\s*(\w+): Total", line):
            key = head[1]
        elif value := re.match(r"[^(]*\(.*?%\): (.*)", line):
            tags.setdefault(key, set()).add(value[1].strip())
    return tags


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split())


def _locations(text: str) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        start = re.match(r"\s*(\d+): (0x[0-9a-f]+ M=\d+) ?(.*)", line)
        if start:
            lines = found[int(start[1])] = [start[2], start[3]]
        else:
            lines.append(line.strip())
    ends = re.compile(r" s=0(\(\))?$")  # the line where the function starts, and its name as linked
    return {n: tuple(ends.sub("", part).strip() for part in parts if part) for n, parts in found.items()}


def google_pprof(program: Path, profile: Path, *options: str) -> str:
    said = subprocess.run(
        ["google-pprof", "--text", *options, str(program), str(profile)],
        env=_ENVIRONMENT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return said.stdout
