"""Root's cache is root's own: nothing of another user's is loaded, and nothing is left in a home."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from second_user import UID, compiled, under_sudo, users_folder

LEAKY = "#include <stdlib.h>\nint main(void) { return malloc(7) == malloc(9); }\n"
EXIT_AT_ONCE = bytes([0xB7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0])
MAGIC = b"refleak-bpf-1\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    with users_folder() as made:
        yield made


def leaks(folder: Path, *words: object, **variables: str) -> tuple[list[int], str]:
    """Trace a program that leaks two blocks; return the bytes that were found and what was said."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    run = under_sudo("-o", report, *words, "--exec", "./leaky", cwd=folder, variables=variables)
    assert "Traceback" not in run.stderr and report.exists(), run.stderr
    return sorted(leak["bytes"] for leak in json.loads(report.read_text())["leaks"]), run.stderr


def blinded(programs: Path) -> None:
    """Rewrite a cached file so that every program in it does nothing: the checksum is right."""
    data = programs.read_bytes()
    (size,) = struct.unpack_from("<I", data, len(MAGIC) + 16)
    names = json.loads(data[len(MAGIC) + 20 :][:size])
    header = json.dumps(dict.fromkeys(names, len(EXIT_AT_ONCE))).encode()
    body = header + EXIT_AT_ONCE * len(names)
    checksum = hashlib.blake2b(body, digest_size=16).digest()
    programs.write_bytes(MAGIC + checksum + struct.pack("<I", len(header)) + body)


@pytest.mark.parametrize("variable", ["REFLEAK_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_another_users_programs_are_not_loaded(
    folder: Path, private_folders: Callable[[], Path], variable: str
) -> None:
    compiled(folder / "leaky", LEAKY)
    made = private_folders()
    assert leaks(folder, REFLEAK_CACHE=str(made)) == ([7, 9], "")
    below = {"REFLEAK_CACHE": "", "XDG_CACHE_HOME": "refleak", "HOME": ".cache/refleak"}[variable]
    theirs = folder / "home" / below
    theirs.mkdir(parents=True)
    (programs,) = made.glob("programs-*")
    (theirs / programs.name).write_bytes(programs.read_bytes())
    blinded(theirs / programs.name)
    for place in (folder / "home", *(folder / "home").rglob("*")):
        os.chown(place, UID, UID)
    before = sorted(folder.rglob("*"))
    found, said = leaks(folder, **{variable: str(folder / "home")})
    assert found == [7, 9]
    assert ("cache not used" in said) == (variable == "REFLEAK_CACHE")
    assert sorted(folder.rglob("*")) == before


def test_a_program_that_somebody_could_have_written(folder: Path, private_folders: Callable[[], Path]) -> None:
    compiled(folder / "leaky", LEAKY)
    made = private_folders()
    leaks(folder, REFLEAK_CACHE=str(made))
    (programs,) = made.glob("programs-*")
    blinded(programs)
    os.chown(programs, UID, UID)
    found, said = leaks(folder, REFLEAK_CACHE=str(made))
    assert found == [7, 9]
    assert f"cache not used: {programs} is another user's" in said
    assert leaks(folder, REFLEAK_CACHE=str(made)) == ([7, 9], "")  # it was written anew


def test_nothing_is_made_in_a_home(folder: Path) -> None:
    compiled(folder / "leaky", LEAKY)
    (folder / "home").mkdir()
    os.chown(folder / "home", UID, UID)
    variables = {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home/cache")}
    assert leaks(folder, "--interpreters", "auto", **variables)[0] == [7, 9]
    assert under_sudo("probes", "./leaky", cwd=folder, variables=variables).returncode == 0
    assert under_sudo("doctor", cwd=folder, variables=variables).returncode == 0
    assert list((folder / "home").iterdir()) == []
