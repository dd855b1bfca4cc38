"""The table of programs that must do the same with refleak and without it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Behaviour:
    """One program: its command line, and the exit status that it has by itself, 128 + N for signal N.

    `differs` tells why refleak fails at it: a test that is expected to fail.
    """

    name: str
    command: tuple[str, ...]
    status: int = 0
    differs: str = ""


def _own(program: str, names: str, status: int = 5) -> tuple[Behaviour, ...]:
    return tuple(Behaviour(name, (program, name), status) for name in names.split())


def _shell(name: str, script: str, status: int = 0) -> Behaviour:
    return Behaviour(name, ("/bin/sh", "-c", script), status)


SIGNALS = (
    *_own("behaves_signals", "alarm_storm profile_timer alternate_stack recover own_traps undefined_instruction"),
    *_own("behaves_signals", "coroutines queued stopped_child broken_pipe"),
    *_own("behaves_signals", "aborts", 128 + 6),
    *_own("behaves_signals", "divides", 128 + 8),
    *_own("behaves_signals", "terminated", 128 + 15),
    *_own("behaves_signals", "trapped", 128 + 5),
)
TASKS = (
    *_own("behaves_tasks", "cancels short_threads forks_in_thread vforks spawns clone_vm bare_clone3"),
    *_own("behaves_tasks", "seccomp_filter not_dumpable other_user limits deep_recursion inherited usable_sizes"),
    *_own("behaves_tasks", "own_status open_files own_limits exit_order"),
    *_own("behaves_tasks", "seccomp_strict", 41),
    *_own("behaves_tasks", "small_stack", 0),
)
PROGRAMS = (
    Behaviour("environment", ("/usr/bin/perl", "-e", "print map { qq($_=$ENV{$_}\n) } sort keys %ENV")),
    Behaviour("order of the environment", ("/usr/bin/env",), differs="the shell that starts refleak sorts it anew"),
    Behaviour("command line", ("/bin/cat", "/proc/self/cmdline")),
    Behaviour("missing file", ("/bin/ls", "/nonexistent/file"), 2),
    _shell("pipeline", "seq 1000 | sed 's/7/x/' | grep -c x | tee count"),
    _shell("sort", "seq 5000 | sort -R --random-source=/dev/zero | sort -n | cksum"),
    _shell("awk", "seq 3000 | awk '{ n[$1 % 7] += $1 } END { for (i = 0; i < 7; i++) print n[i] }'"),
    _shell("archive", "seq 999 > a; tar --mtime=@0 -cf a.tar a; gzip -n a.tar; cksum < a.tar.gz; rm a"),
    _shell("xz", "seq 9999 | xz -T1 > numbers.xz; xz -dc numbers.xz | cksum"),
    _shell("status of a shell", "trap 'echo left' EXIT; trap 'echo got' USR1; kill -USR1 $$; exit 9", 9),
    _shell("compiler", "echo 'int main(void) { return 11; }' > a.c; gcc -o a a.c; ./a", 11),
    _shell("make", "printf 'all: a b\\na b:\\n\\t@echo made > $@\\n' > Makefile; make -s -j4; cat a b"),
    _shell("git", "git init -q . && echo x > f && git add f && git ls-files -s; rm -rf .git"),
    Behaviour("perl", ("/usr/bin/perl", "-e", "print join ',', map { $_ ** 2 } 1 .. 50; warn qq(said\\n); exit 4"), 4),
    Behaviour("python", ("/usr/bin/python3", "-c", "import json; print(json.dumps(list(range(99)))); 1 / 0"), 1),
    Behaviour("lua", ("/usr/bin/lua5.4", "-e", "print(pcall(error, 'caught')) io.stderr:write('said') os.exit(6)"), 6),
    Behaviour("luajit", ("/usr/bin/luajit", "-e", "local s = 0 for i = 1, 1e6 do s = s + i % 7 end print(s)")),
    Behaviour("node", ("/usr/bin/node", "-e", "console.log([3, 1, 2].sort()); process.exitCode = 8"), 8),
    Behaviour("sqlite3", ("/usr/bin/sqlite3", "t.db", "create table t(a); insert into t values (7); select a from t")),
    Behaviour("gdb", ("/usr/bin/gdb", "-nx", "-batch", "-ex", "print 6 * 7")),
    Behaviour("valgrind", ("/usr/bin/valgrind", "-q", "/bin/cat", "/dev/null")),
)  # fmt: skip
BEHAVIOURS = SIGNALS + TASKS + PROGRAMS
