"""The libraries that a program will start with: worked out from files, and compared with what loaders say."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tracer.binaries.open_binaries import Binaries
from tracer.binaries.start_libraries import MOST_STEPS, StartLibraries
from tracer.binaries.start_up import start_up_binaries
from tracer.elf import library_paths
from tracer.procfs.roots import OWN_ROOT, Root

LISTED = re.compile(r"^\s*(?:\S+ => )?(\S*/\S+)(?: \(0x[0-9a-f]+\)| =>.*)$", re.MULTILINE)
MOST_PROGRAMS = 300
NO_VARIABLES: Mapping[str, str] = {}


@pytest.fixture
def binaries() -> Iterator[Binaries]:
    opened = Binaries()
    yield opened
    opened.close()


def ours(binaries: Binaries, program: Path, variables: Mapping[str, str] = NO_VARIABLES) -> set[str]:
    found = start_up_binaries(binaries, str(program), "program", OWN_ROOT, variables)
    return {os.path.normpath(binary.path) for binary in found[1:]}


def loaders(loader: str, program: Path, variables: Mapping[str, str] = NO_VARIABLES) -> set[str]:
    """Ask the loader itself: only for programs that this test made, or that the system's owner installed."""
    listed = subprocess.run(
        [loader, "--list", program], capture_output=True, text=True, env={"LC_ALL": "C", **variables}, timeout=20,
    )  # fmt: skip
    return {os.path.normpath(path) for path in LISTED.findall(listed.stdout) if "linux-vdso" not in path}


def system_programs(binaries: Binaries) -> Iterator[tuple[Path, str]]:
    """Yield programs of the distribution with their loaders, one for each file, evenly chosen."""
    files = sorted({path.resolve() for path in Path("/usr/bin").iterdir() if path.is_file()})
    trusted = [path for path in files if path.stat().st_uid == 0 and not path.stat().st_mode & 0o022]
    step = max(1, len(trusted) // MOST_PROGRAMS)
    for path in (*trusted[::step], *trusted[1::step]):
        program = binaries.open([str(path)], str(path))
        if program is not None and program.image.interpreter is not None:
            yield path, program.image.interpreter


def test_the_same_as_loaders_say_of_the_systems_programs(binaries: Binaries) -> None:
    others, compared = {}, 0
    for path, loader in system_programs(binaries):
        told = loaders(loader, path)
        if told:  # nothing is said where a library is missing
            compared += 1
            own = Binaries()  # else a library has the name by which another program found it
            if (found := ours(own, path)) != told:
                others[path] = (told - found, found - told)
            own.close()
        if compared == MOST_PROGRAMS:
            break
    assert others == {}
    assert compared >= 30


def compiled(out: Path, text: str, *flags: object) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    source = out.with_suffix(".c")
    source.write_text(text)
    compiler = "musl-gcc" if "musl" in flags else "gcc"
    words = [str(flag) for flag in flags if flag != "musl"]
    subprocess.run([compiler, "-o", out, source, *words], check=True, timeout=60)
    return out


def library(out: Path, *flags: object) -> Path:
    name = re.sub(r"\W", "_", out.name)
    return compiled(out, f"int {name};\n", "-shared", "-fPIC", f"-Wl,-soname,{out.name}", "-Wl,--no-as-needed", *flags)


MAIN = "int main(void) { return 0; }\n"
NEEDED = ("-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined")
LOADER = "/lib64/ld-linux-x86-64.so.2"


@pytest.mark.parametrize("tags", ["--disable-new-dtags", "--enable-new-dtags"])
def test_a_path_in_the_program_or_inherited(binaries: Binaries, tmp_path: Path, tags: str) -> None:
    """An old path (DT_RPATH) is handed on to libraries, a new one (DT_RUNPATH) is not."""
    below = library(tmp_path / "lib/libbelow.so")
    above = library(tmp_path / "lib/libabove.so", below)
    program = compiled(tmp_path / "bin/m", MAIN, *NEEDED, above, f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/../lib")
    found = ours(binaries, program)
    assert str(above) in found
    assert (str(below) in found) == (tags == "--disable-new-dtags")
    if tags == "--disable-new-dtags":
        assert found == loaders(LOADER, program)


def test_origin_is_the_folder_of_the_file_behind_a_link(binaries: Binaries, tmp_path: Path) -> None:
    needed = library(tmp_path / "real/libneeded.so")
    program = compiled(tmp_path / "real/m", MAIN, *NEEDED, needed, "-Wl,-rpath,${ORIGIN}")
    (tmp_path / "link").symlink_to(program)
    assert str(needed) in ours(binaries, tmp_path / "link")


def test_the_environment_goes_before_the_runpath_and_after_the_rpath(binaries: Binaries, tmp_path: Path) -> None:
    places = {name: library(tmp_path / name / "libneeded.so") for name in ("path", "variable")}
    variables = {"LD_LIBRARY_PATH": f"/nowhere;{tmp_path / 'variable'}"}
    for tags, place in (("--enable-new-dtags", "variable"), ("--disable-new-dtags", "path")):
        program = compiled(
            tmp_path / f"m{place}", MAIN, *NEEDED, places["path"], f"-Wl,{tags}", f"-Wl,-rpath,{tmp_path / 'path'}"
        )
        found = ours(binaries, program, variables)
        assert found & set(map(str, places.values())) == {str(places[place])}
        assert found == loaders(LOADER, program, variables)
        assert str(places["path"]) in ours(binaries, program)


def test_what_is_preloaded(binaries: Binaries, tmp_path: Path) -> None:
    first, second = library(tmp_path / "libfirst.so"), library(tmp_path / "x/libsecond.so")
    program = compiled(tmp_path / "m", MAIN)
    variables = {"LD_PRELOAD": f"{first}:libsecond.so", "LD_LIBRARY_PATH": str(second.parent)}
    assert {str(first), str(second)} <= ours(binaries, program, variables)
    assert ours(binaries, program, variables) == loaders(LOADER, program, variables)


def test_a_library_of_another_kind_is_passed_over(binaries: Binaries, tmp_path: Path) -> None:
    wanted = library(tmp_path / "right/libneeded.so")
    program = compiled(tmp_path / "m", MAIN, *NEEDED, wanted, f"-Wl,-rpath,{tmp_path / 'wrong'}:{wanted.parent}")
    (tmp_path / "wrong").mkdir()
    data = bytearray(wanted.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # another machine
    (tmp_path / "wrong/libneeded.so").write_bytes(data)
    assert str(wanted) in ours(binaries, program)
    (tmp_path / "wrong/libneeded.so").unlink()
    os.mkfifo(tmp_path / "wrong/libneeded.so")
    assert str(wanted) in ours(binaries, program)


def test_folders_for_this_processor_go_first(
    binaries: Binaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = library(tmp_path / "libneeded.so")
    levels = library_paths.processor_levels()
    program = compiled(tmp_path / "m", MAIN, *NEEDED, plain, f"-Wl,-rpath,{tmp_path}")
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        place = tmp_path / "glibc-hwcaps" / level / plain.name
        place.parent.mkdir(parents=True)
        shutil.copy(plain, place)
    assert ours(binaries, program) == loaders(LOADER, program)
    expected = str(tmp_path / "glibc-hwcaps" / levels[0] / plain.name) if levels else str(plain)
    assert expected in ours(binaries, program)
    for text, names in (("flags : fpu sse2\n", ()), (f"flags : {' '.join(library_paths._LEVEL_2)}\n", ("x86-64-v2",))):
        file = tmp_path / "cpuinfo"
        file.write_text(text)
        monkeypatch.setattr(library_paths, "CPU_FILE", str(file))
        assert library_paths.processor_levels.__wrapped__() == names


def test_a_program_of_musl(binaries: Binaries, tmp_path: Path) -> None:
    below = library(tmp_path / "lib/libbelow.so", "musl", "-nostdlib")
    above = library(tmp_path / "lib/libabove.so", "musl", "-nostdlib", below)
    program = compiled(tmp_path / "bin/m", MAIN, "musl", *NEEDED, above, "-Wl,-rpath,$ORIGIN/../lib")
    found = ours(binaries, program)
    assert {str(above), str(below)} <= found  # musl hands every path on
    assert {os.path.realpath(path) for path in found} == {
        os.path.realpath(path) for path in loaders("/lib/ld-musl-x86_64.so.1", program)
    }


@pytest.mark.parametrize(
    ("loader", "place"),
    [("/lib/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path"), ("/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path"),
     ("/opt/musl/lib/ld-musl-x86_64.so.1", "/opt/musl/etc/ld-musl-x86_64.path"), (LOADER, None)],
)  # fmt: skip
def test_where_musl_keeps_its_folders(loader: str, place: str | None) -> None:
    assert library_paths.musl_list(loader) == place


def test_all_of_it_is_found_under_another_root(binaries: Binaries, tmp_path: Path) -> None:
    """A link that is absolute there leads to a file there, not to the one outside."""
    root = tmp_path / "root"
    library(root / "opt/libneeded.so")
    (root / "usr/lib").mkdir(parents=True)
    (root / "usr/lib/libneeded.so").symlink_to("/opt/libneeded.so")
    (root / "lib64").mkdir()
    shutil.copy(LOADER, root / "lib64/ld-linux-x86-64.so.2")
    program = compiled(root / "m", MAIN, *NEEDED, root / "opt/libneeded.so")
    there = Root(str(root), str(root), "/", is_own=False)
    found = start_up_binaries(binaries, "/m", "/m", there)
    assert [binary.path for binary in found] == ["/m", LOADER, "/usr/lib/libneeded.so"]
    assert Path(found[2].open_path).samefile(root / "opt/libneeded.so")
    assert program.exists()


def test_a_program_that_needs_itself_and_a_thousand_folders(binaries: Binaries, tmp_path: Path) -> None:
    """It ends, whatever it is told: the number of its steps is limited."""
    needed = [library(tmp_path / f"lib{number}.so") for number in range(7)]
    for number in range(7):
        library(tmp_path / f"lib{number}.so", needed[(number + 1) % 7], f"-Wl,-rpath,{tmp_path}")
    folders = ":".join(f"{tmp_path}/./{'./' * number}" for number in range(1000))
    program = compiled(tmp_path / "m", MAIN, *NEEDED, needed[0], f"-Wl,-rpath,{tmp_path}")
    opened = binaries.open([str(program)], str(program))
    assert opened is not None
    walk = StartLibraries(binaries, OWN_ROOT, {"LD_LIBRARY_PATH": folders, "LD_PRELOAD": " ".join("abcdefghijklmnop")})
    walk.of(opened, str(program))
    assert MOST_STEPS <= walk.steps < 2 * MOST_STEPS


def test_tokens() -> None:
    assert list(library_paths.expanded("$ORIGIN/x", "/o")) == ["/o/x"]
    assert list(library_paths.expanded("${ORIGIN}/x", None)) == []
    assert list(library_paths.expanded("$ORIGINAL", None)) == ["$ORIGINAL"]
    assert list(library_paths.expanded("/$LIB/x", None)) == ["/lib/x86_64-linux-gnu/x", "/lib64/x", "/lib/x"]
    assert len(list(library_paths.expanded("/$LIB/$PLATFORM", None))) == 9
    assert list(library_paths.folders_of("/a/::b", None)) == ["/a", ".", "b"]
    assert list(library_paths.folders_of("", None)) == []
    assert library_paths.preloaded(" a:b  c ") == ["a", "b", "c"]
    assert library_paths.preloaded_by_file("a # b\n# c\nd\n") == ["a", "d"]
