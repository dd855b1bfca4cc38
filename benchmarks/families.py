"""Commands that start many processes: the whole run traced, with a warm cache, over untraced."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from benchmarks.commands import Unmeasured
from benchmarks.methods import Method, Outcome, Refleak, Untraced, Work
from benchmarks.programs import Programs
from benchmarks.rounds import in_turn
from benchmarks.samples import text_of_ratio, text_of_time
from benchmarks.settings import CACHE, Settings
from benchmarks.tables import Results, Table

_WHEEL = "pieces-1.0-py3-none-any.whl"
_METADATA = "Metadata-Version: 2.1\nName: pieces\nVersion: 1.0\n"
_TAGS = "Wheel-Version: 1.0\nGenerator: benchmarks\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def shell_script(settings: Settings) -> Work:
    """A script of short commands, some of them pipes."""
    script = settings.folder / "commands.sh"
    lines = ("/bin/true", "/bin/echo a | /bin/cat", "x=$(/bin/echo b)")
    script.write_text("".join(lines[i % 3] + " >/dev/null\n" for i in range(settings.count(375, 6))))
    return Work(["/bin/sh", script])


def make_project(settings: Settings) -> Work:
    """A small project of C, by two jobs at once."""
    if shutil.which("make", path="/usr/bin:/bin") is None:
        raise Unmeasured("make is not installed")
    folder, count = settings.folder / "project", settings.count(12, 2)
    folder.mkdir(exist_ok=True)
    names = [f"part{i}" for i in range(count)]
    for name in names:
        body = f'int {name}(int a) {{ return a ? rand() % a : printf("x"); }}'
        (folder / f"{name}.c").write_text(f"#include <stdio.h>\n#include <stdlib.h>\n{body}\n")
    objects = " ".join(f"{name}.o" for name in names)
    rules = f"all: {objects}\n\tar rcs lib.a {objects}\n%.o: %.c\n\t$(CC) -O1 -c -o $@ $<\n"
    (folder / "Makefile").write_text(rules)
    return Work(["/usr/bin/make", "-s", "-B", "-j2", "-C", folder])


def pip_install(settings: Settings) -> Work:
    """A wheel of some modules, installed into a folder by pip."""
    wheel = settings.folder / _WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        names = [f"pieces/part{i}.py" for i in range(settings.count(50, 2))]
        for name in names:
            archive.writestr(name, "".join(f"def function{i}(a):\n    return a + {i}\n\n\n" for i in range(40)))
        infos = {"pieces-1.0.dist-info/METADATA": _METADATA, "pieces-1.0.dist-info/WHEEL": _TAGS}
        for name, text in infos.items():
            archive.writestr(name, text)
        archive.writestr("pieces-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in (*names, *infos)))
    target = settings.folder / "installed"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--upgrade",
               "--disable-pip-version-check", "--target", str(target), str(wheel)]  # fmt: skip
    return Work(command)


FAMILIES: Mapping[str, Callable[[Settings], Work]] = {
    "shell script of 500 commands": shell_script, "make -j2": make_project, "pip install": pip_install,
}  # fmt: skip


def families(_programs: Programs, settings: Settings) -> Results:
    """Measure each command untraced and launched by refleak."""
    lines, figures, notes = [], {}, []
    for title, prepare in FAMILIES.items():
        try:
            work = prepare(settings)
        except Unmeasured as reason:
            notes.append(f"{title}: absent, {reason}")
            continue

        def once(method: Method, work: Work = work) -> tuple[Sequence[float], Outcome]:
            outcome = method.run(Work(work.command, {"REFLEAK_CACHE": str(CACHE)}), settings.timeout_seconds)
            return [outcome.finished.seconds], outcome

        with suppress(Unmeasured):
            once(Refleak())  # what the programs are is in the cache then
        rows = in_turn([Untraced(), Refleak()], once, 1, settings, title)
        untraced, traced = rows["untraced"].samples[0], rows["refleak"].samples[0]
        ratio = traced.over(untraced)
        figures[f"family {title}"] = ratio
        times = [text_of_time(samples.median * 1e9) if samples else "-" for samples in (untraced, traced)]
        lines.append([title, *times, text_of_ratio(ratio)])
        notes += [f"{title}, {name}: {note}" for name, row in rows.items() for note in (*row.notes, row.reason) if note]
    header = ["command", "untraced", "refleak, whole command", "ratio"]
    return Results([Table("Commands that start many processes", header, lines, notes)], figures)
