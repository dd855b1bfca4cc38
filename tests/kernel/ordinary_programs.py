"""Ordinary programs of the distribution, and what refleak and memcheck call lost of each.

`python tests/kernel/ordinary_programs.py [NAME ...]` runs all, in two locales, and prints the table of
docs/ordinary-programs.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

REFLEAK = Path(__file__).parents[2] / "refleak"
LOCALES = ("C", "C.UTF-8")
PROGRAMS: Mapping[str, str] = {
    "cat": "cat /dev/null", "ls": "ls -l /", "date": "date", "sort": "sort /etc/passwd",
    "iconv": "iconv -f UTF-8 -t UTF-16 /etc/passwd", "env": "env", "id": "id", "cp": "cp /etc/passwd copied",
    "wc": "wc /etc/passwd", "head": "head -n 3 /etc/passwd", "tail": "tail -n 3 /etc/passwd",
    "sed": "sed s/root/toor/ /etc/passwd", "grep": "grep -i ROOT /etc/passwd",
    "mawk": "mawk -F: {print$1} /etc/passwd", "find": "find /etc/apt", "xargs": "xargs -a words echo",
    "tar": "tar cf all.tar words", "gzip": "gzip -kf words", "xz": "xz -kf words", "bzip2": "bzip2 -kf words",
    "zstd": "zstd -qkf words", "cut": "cut -d: -f1 /etc/passwd", "tr": "tr a b", "uniq": "uniq words",
    "diff": "diff words /etc/passwd", "cmp": "cmp words words", "file": "file words", "sh": "sh -c :",
    "bash": "bash -c x=1;echo\t$x", "zsh": "zsh -fc true", "fish": "fish -Nc true", "git": "git --version",
    "git-log": "git -C repository log -p", "git-status": "git -C repository status", "curl": "curl -s file:///etc/passwd",
    "wget": "wget --version", "perl": "perl -e @a=(1..100);print(scalar(@a))", "python3": "python3 -c print(1)",
    "ruby": "ruby --disable-gems -e puts(1)", "php": "php -n -r echo(1);", "gcc": "gcc -c empty.c -o empty.o",
    "make": "make -f /dev/null -q --version", "vim": "vim -u NONE -es +q", "sqlite3": "sqlite3 :memory: select(1)",
    "node": "node -e 1", "lua": "lua5.4 -e print(1)", "luajit": "luajit -e print(1)",
    "tclsh": "tclsh empty.c", "jq": "jq -n 1", "bc": "bc -q /dev/null", "ssh": "ssh -V",
    "gpg": "gpg --homedir . --version", "openssl": "openssl rand -hex 8", "ps": "ps", "free": "free",
    "ip": "ip link", "ss": "ss -l", "mount": "mount", "df": "df /", "du": "du words", "stat": "stat words",
    "readelf": "readelf -h /bin/true", "objdump": "objdump -h /bin/true", "nm": "nm -D /bin/true",
    "as": "as -o a.o /dev/null", "gdb": "gdb -nx -batch", "less": "less -F words", "m4": "m4 /dev/null",
    "bison": "bison --version", "flex": "flex --version", "pkg-config": "pkg-config --list-all",
    "man": "man -w true", "groff": "groff /dev/null", "getent": "getent passwd root", "apt-cache": "apt-cache policy",
    "dpkg": "dpkg-query -W bash", "ed": "ed -s words", "xxd": "xxd words", "base64": "base64 words",
    "guile": "guile -c 1",
    "psql": "psql --version", "dbus-daemon": "dbus-daemon --version", "systemctl": "systemctl --version",
    "journalctl": "journalctl --version", "lsblk": "lsblk --version",
    "dash": "dash -c :", "nl": "nl words", "paste": "paste words words", "join": "join words words",
    "comm": "comm words words", "fold": "fold -w 3 words", "od": "od words", "shuf": "shuf words",
    "split": "split -l 9 words", "csplit": "csplit words 5", "tac": "tac words", "tee": "tee copy",
    "factor": "factor 123456789012345678901234567890", "sha256sum": "sha256sum words",
    "numfmt": "numfmt --to=iec 123456", "pr": "pr words", "ptx": "ptx words", "expr": "expr 3 + 4", "who": "who",
    "uptime": "uptime", "w": "w", "top": "top -b -n1", "vmstat": "vmstat", "lscpu": "lscpu", "findmnt": "findmnt",
    "blkid": "blkid", "lsof": "lsof -p 1", "strings": "strings /bin/true", "strip": "strip -o stripped /bin/true",
    "size": "size /bin/true", "ld": "ld -shared -o e.so /dev/null", "ar": "ar rc a.a words",
    "c++filt": "c++filt _ZN1a1bEv", "addr2line": "addr2line -e /bin/true 0", "cpp": "cpp empty.c",
    "g++": "g++ -c empty.c -o e.o", "clang": "clang -c empty.c -o e.o", "cmake": "cmake --version",
    "ninja": "ninja --version", "convert": "convert -size 8x8 xc:red a.png", "tmux": "tmux -V", "fc-list": "fc-list",
    "zip": "zip -q a.zip words", "unzip": "unzip -v", "lz4": "lz4 -q words words.lz4",
    "redis-server": "redis-server --version", "nginx": "nginx -V", "llvm-nm": "llvm-nm -D /bin/true",
    "losetup": "losetup", "tc": "tc qdisc", "glib-compile-schemas": "glib-compile-schemas --dry-run .",
    "gio": "gio info words", "gdbus": "gdbus help", "gresource": "gresource list /bin/true",
    "gsettings": "gsettings list-schemas", "qemu": "qemu-system-x86_64 --version", "lsattr": "lsattr words",
    "mke2fs": "mke2fs -q -F e2.img 1m", "infocmp": "infocmp xterm", "tput": "tput -T xterm cols",
    "ctags": "ctags -f tags empty.c", "cscope": "cscope -b -k empty.c", "xgettext": "xgettext -o p.po empty.c",
    "locale": "locale -a", "zdump": "zdump UTC", "prlimit": "prlimit", "script": "script -qc true typescript",
    "column": "column -t /etc/passwd", "hexdump": "hexdump words", "rev": "rev words", "look": "look one words",
    "git-diff": "git diff --no-index words document.json",
}  # fmt: skip
"""Words are parted by blanks; a tab stands for a blank inside a word."""
_FRAMES = 3
_SHOWN = 5
_ADDED = re.compile(r"@.*|\.(isra|constprop|part|cold)\b.*")
_WRAPPED = ("setenv", "putenv")
"""Functions of libc that jump to what they do, and that valgrind calls by its own of the same name."""
_STARTS = ("__libc_start", "(below main)", "call_init", "_dl_init")
_LOST = {"Leak_DefinitelyLost", "Leak_IndirectlyLost", "Leak_PossiblyLost"}

Place = tuple[str, ...]
"""The first callers of the allocator, by name, or by binary where there is none."""


@dataclass(frozen=True)
class Lost:
    """What is called lost of one place: blocks, or mappings, which memcheck knows nothing of."""

    place: Place
    kind: str
    bytes: int


@dataclass(frozen=True)
class Told:
    """What both say of one program."""

    lost: tuple[Lost, ...]
    """By refleak."""
    memcheck: Mapping[Place, Mapping[str, int]]
    """Bytes by the kinds that memcheck names, by place."""
    complete: bool

    def false(self) -> Iterator[Lost]:
        """Yield what memcheck says is still reachable, if only in part, and mappings."""
        for lost in self.lost:
            said = self.memcheck.get(lost.place)
            if lost.kind == "mapping" or (said is not None and lost.bytes > sum(said[kind] for kind in _LOST)):
                yield lost

    def open(self) -> Iterator[Lost]:
        """Yield what memcheck does not speak of."""
        return (lost for lost in self.lost if lost.kind == "allocation" and lost.place not in self.memcheck)


def words_of(name: str) -> list[str]:
    return [word.replace("\t", " ") for word in PROGRAMS[name].split(" ")]


def is_here(name: str) -> bool:
    return shutil.which(words_of(name)[0]) is not None


def prepare(folder: Path) -> None:
    """Make the files that the commands name."""
    (folder / "words").write_text("one\ntwo\nthree\n" * 100)
    (folder / "document.json").write_text('{"name": "a", "list": [1, 2, {"b": null}]}\n')
    (folder / "empty.c").write_text("")
    repository = folder / "repository"
    repository.mkdir()
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True, timeout=60)


def lost_by_refleak(name: str, folder: Path, locale: str) -> tuple[tuple[Lost, ...], bool]:
    """Return what is lost, of the first process alone, and whether nothing was missed."""
    output = folder / "report.json"
    output.unlink(missing_ok=True)
    command = [str(REFLEAK), "--no-follow-forks", "-q", "-o", str(output), "--", *words_of(name)]
    run_in(folder, command, {"LC_ALL": locale})
    report = json.loads(output.read_text())
    sums = Counter[tuple[Place, str]]()
    for leak in report["leaks"]:
        if leak["state"] == "leaked" and leak["reachability"] not in ("reachable", "stack"):
            sums[place_of_entry(leak), leak["kind"]] += leak["bytes"] or 0
    return tuple(Lost(*key, amount) for key, amount in sums.items()), report["complete"]


def place_of_entry(leak: Mapping[str, Any]) -> Place:
    frames = leak["stack"][leak["maker"] is not None :]
    names = [frame["function"] or Path(frame["path"] or "?").resolve().name for frame in frames if not frame["inlined"]]
    return place_of_names(names)


def kinds_by_memcheck(name: str, folder: Path, locale: str) -> dict[Place, Counter[str]]:
    output = folder / "memcheck.xml"
    program = shutil.which(words_of(name)[0]) or ""
    options = ["-q", "--leak-check=full", "--show-leak-kinds=all", "--xml=yes", f"--xml-file={output}",
               "--num-callers=12", "--child-silent-after-fork=yes", "--keep-debuginfo=yes"]  # fmt: skip
    run_in(folder, ["valgrind", *options, program, *words_of(name)[1:]], {"LC_ALL": locale})
    kinds: dict[Place, Counter[str]] = {}
    for error in ElementTree.parse(output).iter("error"):
        stack = error.find("stack")
        if stack is not None:
            names = [frame.findtext("fn") or Path(frame.findtext("obj") or "?").resolve().name for frame in stack]
            size = int(error.findtext("xwhat/leakedbytes") or 0)
            kinds.setdefault(place_of_names(names[1:]), Counter())[error.findtext("kind") or ""] += size
    return kinds


def place_of_names(names: Sequence[str]) -> Place:
    """Leave out operator new, functions that valgrind wraps, a symbol's version, what a compiler adds to a name, and
    what is below main."""
    plain = [_ADDED.sub("", name) for name in names if not name.startswith("operator new") and name not in _WRAPPED]
    ends = [at for at, name in enumerate(plain) if name.startswith(_STARTS)]
    return tuple(plain[: min([_FRAMES, *ends])])


def run_in(folder: Path, command: Sequence[str], variables: Mapping[str, str]) -> None:
    environment = {**os.environ, "HOME": str(folder), "PAGER": "cat", **variables}
    subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=False
    )


def told(name: str, locale: str) -> Told:
    """Run a program with both."""
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        prepare(folder)
        lost, complete = lost_by_refleak(name, folder, locale)
        return Told(lost, kinds_by_memcheck(name, folder, locale) if lost else {}, complete)


def main(names: Sequence[str]) -> int:
    """Print a row for each program and locale, and each entry on which the two differ; return 1 if one is false."""
    wrong = 0
    print("| program | locale | lost | memcheck agrees | still reachable | not spoken of |\n|---|---|---|---|---|---|")
    for name in names or filter(is_here, PROGRAMS):
        for locale in LOCALES:
            said = told(name, locale)
            differing = {"still reachable": list(said.false()), "not spoken of": list(said.open())}
            false, unknown = map(len, differing.values())
            complete = "" if said.complete else " (not complete)"
            row = (name, locale, f"{len(said.lost)}{complete}", len(said.lost) - false - unknown, false, unknown)
            print("|", " | ".join(map(str, row)), "|", flush=True)
            for word, entries in differing.items():
                for lost in entries[:_SHOWN]:
                    place = " < ".join(lost.place)
                    print(f"    {word}: {lost.bytes} bytes, {lost.kind}: {place}", file=sys.stderr)
            wrong += bool(false)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
