"""compare_with_memcheck.py [NAME ...]: hold refleak's classes against memcheck's on programs that people use.

It prints the table of docs/reachability.md, and to stderr the places of blocks of which the two say different things.
NAME: one of those here, which are all run where none is named, or of ordinary_programs.py. It exits with 1 where
memcheck calls something reachable that refleak calls lost. perf is what examples/perf/build.sh makes. Needs root.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ordinary_programs import Place, place_of_entry, place_of_names, prepare, run_in, words_of

CHECKOUT = Path(__file__).resolve().parents[2]
CLASSES = ("lost", "indirect", "possible", "reachable")
"""memcheck's, by refleak's words; what refleak calls `stack` it calls reachable."""
OF_MEMCHECK = dict(zip(("Leak_DefinitelyLost", "Leak_IndirectlyLost", "Leak_PossiblyLost", "Leak_StillReachable"),
                       CLASSES, strict=True))  # fmt: skip
PROGRAMS: Mapping[str, Sequence[str]] = {
    "git": ("git", "-C", "repository", "log", "--oneline", "-5"),
    "sqlite3": ("sqlite3", ":memory:", "create table t(a); insert into t values(1), (2); select sum(a) from t"),
    "jq": ("jq", ".", "document.json"),
    "python3": ("/usr/bin/python3", "-c", "import json, re"),
    "perf": (str(CHECKOUT / "examples/perf/build/perf"), "probe", "vfs_read"),
}
OF_VALGRIND = {
    "LD_PRELOAD": "", "LD_LIBRARY_PATH": "/usr/lib/debug", "GLIBCPP_FORCE_NEW": "1", "GLIBCXX_FORCE_NEW": "1"
}  # fmt: skip
"""Variables that valgrind sets: setenv(3) copies the list of all, and refleak's run gets as many."""
ENVIRONMENT = {
    "LC_ALL": "C", "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PERF_CONFIG": "/dev/null", **OF_VALGRIND
}  # fmt: skip
_DIRECT = re.compile(r"\(([\d,]+) direct")


@dataclass(frozen=True)
class Kept:
    """Blocks and bytes by class and place; `stack`: the blocks among the reachable ones that only the last stack holds,
    None of memcheck."""

    blocks: Counter[tuple[str, Place]]
    bytes: Counter[tuple[str, Place]]
    stack: int | None = None

    def sums(self) -> dict[str, tuple[int, int]]:
        sums = dict.fromkeys(CLASSES, (0, 0))
        for (word, place), count in self.blocks.items():
            sums[word] = sums[word][0] + count, sums[word][1] + self.bytes[word, place]
        return sums

    def at(self, place: Place) -> dict[str, tuple[int, int]]:
        """Return blocks and bytes of a place by class."""
        return {
            word: (self.blocks[word, place], self.bytes[word, place]) for word in CLASSES if self.blocks[word, place]
        }


def by_refleak(command: Sequence[str], folder: Path) -> Kept:
    """Return what it says of the first process."""
    output = folder / "report.json"
    options = ["-q", "--no-follow-forks", "--no-mappings", "--no-default-suppressions",
               "--interpreters", "off", "-o", str(output)]  # fmt: skip
    run_in(folder, [str(CHECKOUT / "refleak"), *options, "--", *command], ENVIRONMENT)
    report = json.loads(output.read_text())
    assert report["complete"], report["lost"]
    blocks, sizes = Counter[tuple[str, Place]](), Counter[tuple[str, Place]]()
    stack = 0
    for leak in report["leaks"]:
        if leak["kind"] == "allocation" and leak["state"] == "leaked":
            word = leak["reachability"]
            stack += leak["count"] if word == "stack" else 0
            key = "reachable" if word == "stack" else word, place_of_entry(leak)
            blocks[key] += leak["count"]
            sizes[key] += leak["bytes"]
    return Kept(blocks, sizes, stack)


def by_memcheck(command: Sequence[str], folder: Path) -> Kept:
    output = folder / "memcheck.xml"
    options = ["--leak-check=full", "--show-leak-kinds=all", "--run-libc-freeres=no", "--run-cxx-freeres=no",
               "--xml=yes", f"--xml-file={output}", "--num-callers=25", "--keep-debuginfo=yes",
               "--read-inline-info=no", "--child-silent-after-fork=yes"]  # fmt: skip
    run_in(folder, ["valgrind", "-q", *options, *command], ENVIRONMENT)
    blocks, sizes = Counter[tuple[str, Place]](), Counter[tuple[str, Place]]()
    for error in ElementTree.parse(output).iter("error"):
        word, stack = OF_MEMCHECK.get(error.findtext("kind") or ""), error.find("stack")
        if word is None or stack is None:
            continue
        names = [frame.findtext("fn") or Path(frame.findtext("obj") or "?").resolve().name for frame in stack]
        key = word, place_of_names(names[1:])
        direct = _DIRECT.search(error.findtext("xwhat/text") or "")  # of an owner it sums up what is below
        size = direct[1].replace(",", "") if direct else error.findtext("xwhat/leakedbytes")
        blocks[key] += int(error.findtext("xwhat/leakedblocks") or 0)
        sizes[key] += int(size or 0)
    return Kept(blocks, sizes)


def differences(ours: Kept, theirs: Kept) -> list[tuple[Place, str]]:
    places = sorted({place for kept in (ours, theirs) for _, place in kept.blocks})
    return [
        (place, f"refleak {_told(ours.at(place))}, memcheck {_told(theirs.at(place))}")
        for place in places
        if ours.at(place) != theirs.at(place)
    ]


def false(ours: Kept, theirs: Kept) -> list[Place]:
    """Return the places where refleak calls more blocks lost than memcheck does in all its classes of lost ones, while
    it calls some of them reachable."""
    found = []
    for place in sorted({place for word, place in ours.blocks if word in ("lost", "indirect")}):
        here, there = ours.at(place), theirs.at(place)
        lost = [sum(kept.get(word, (0, 0))[0] for word in CLASSES[:3]) for kept in (here, there)]
        if lost[0] > lost[1] and "reachable" in there:
            found.append(place)
    return found


def _told(classes: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{blocks} {word} ({size} bytes)" for word, (blocks, size) in classes.items()) or "nothing"


def _row(name: str, said_by: str, kept: Kept) -> str:
    cells = [f"{blocks:,}: {size:,}" if blocks else "0" for blocks, size in kept.sums().values()]
    stack = "" if kept.stack is None else f"{kept.stack:,}"
    return f"| {' | '.join((name, said_by, *cells, stack))} |"


def compared(name: str) -> tuple[Kept, Kept]:
    """Return what refleak and memcheck say of a program: one of PROGRAMS, or of ordinary_programs.py."""
    program, *arguments = PROGRAMS.get(name) or words_of(name)
    command = [shutil.which(program) or program, *arguments]
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        return by_refleak(command, Path(folder)), by_memcheck(command, Path(folder))


def main(names: Sequence[str]) -> int:
    wrong = 0
    print(f"| program | by | {' | '.join(CLASSES)} | stack |\n|---|---|---|---|---|---|---|")
    for name in names or PROGRAMS:
        ours, theirs = compared(name)
        print(_row(name, "refleak", ours), _row("", "memcheck", theirs), sep="\n", flush=True)
        for place, said in differences(ours, theirs):
            print(f"    {' < '.join(place)}: {said}", file=sys.stderr)
        wrong += bool(false(ours, theirs))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
