"""The distribution's programs in the table: those of the test suite, and more that need more packages and time."""

from __future__ import annotations

from behaviours import Behaviour, shell

PROGRAMS = (
    Behaviour("environment", ("/usr/bin/perl", "-e", "print map { qq($_=$ENV{$_}\n) } sort keys %ENV")),
    Behaviour("order of the environment", ("/usr/bin/env",), differs_launched="the shell before refleak sorts it"),
    Behaviour("command line", ("/bin/cat", "/proc/self/cmdline")),
    Behaviour("missing file", ("/bin/ls", "/nonexistent/file"), 2),
    shell("pipeline", "seq 1000 | sed 's/7/x/' | grep -c x | tee count"),
    shell("sort", "seq 5000 | sort -R --random-source=/dev/zero | sort -n | cksum"),
    shell("awk", "seq 3000 | awk '{ n[$1 % 7] += $1 } END { for (i = 0; i < 7; i++) print n[i] }'"),
    shell("archive", "seq 999 > a; tar --mtime=@0 -cf a.tar a; gzip -n a.tar; cksum < a.tar.gz; rm a"),
    shell("xz", "seq 9999 | xz -T1 > numbers.xz; xz -dc numbers.xz | cksum"),
    shell("status of a shell", "trap 'echo left' EXIT; trap 'echo got' USR1; kill -USR1 $$; exit 9", 9),
    shell("compiler", "echo 'int main(void) { return 11; }' > a.c; gcc -o a a.c; ./a", 11),
    shell("make", "printf 'all: a b\\na b:\\n\\t@echo made > $@\\n' > Makefile; make -s -j4; cat a b"),
    shell("git", "git init -q . && echo x > f && git add f && git ls-files -s; rm -rf .git"),
    Behaviour("perl", ("/usr/bin/perl", "-e", "print join ',', map { $_ ** 2 } 1 .. 50; warn qq(said\\n); exit 4"), 4),
    Behaviour("python", ("/usr/bin/python3", "-c", "import json; print(json.dumps(list(range(99)))); 1 / 0"), 1),
    Behaviour("lua", ("/usr/bin/lua5.4", "-e", "print(pcall(error, 'caught')) io.stderr:write('said') os.exit(6)"), 6),
    Behaviour("luajit", ("/usr/bin/luajit", "-e", "local s = 0 for i = 1, 1e6 do s = s + i % 7 end print(s)")),
    Behaviour("node", ("/usr/bin/node", "-e", "console.log([3, 1, 2].sort()); process.exitCode = 8"), 8),
    Behaviour("sqlite3", ("/usr/bin/sqlite3", "t.db", "create table t(a); insert into t values (7); select a from t")),
    Behaviour("gdb", ("/usr/bin/gdb", "-nx", "-batch", "-ex", "print 6 * 7")),
    shell("valgrind", "valgrind -q /bin/cat /dev/null; echo $?"),
)  # fmt: skip
PACKAGES = (
    "ruby php-cli redis-server nginx-light strace tcc busybox default-jdk-headless curl libpython3.11-testsuite sbcl "
    "erlang-base mono-runtime mono-mcs gforth swi-prolog-nox r-base-core guile-3.0 ocaml-nox chicken-bin postgresql-15"
)
"""What MORE_PROGRAMS needs beside the packages of the test suite, on Debian 12."""

_MODULE = """
import contextlib, io, sys, unittest
suite = unittest.defaultTestLoader.loadTestsFromName("test." + sys.argv[1])
with contextlib.redirect_stdout(io.StringIO()):
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
print(result.testsRun, len(result.failures), len(result.errors), len(result.skipped))
"""
_MODULES = (
    "json re struct math list dict set heapq bisect textwrap zlib thread fork1 gc generators coroutines exceptions "
    "mmap select contextlib memoryview array bytes ctypes posix csv itertools functools queue tempfile shlex"
)
_NGINX = """daemon off; master_process on; worker_processes 2; pid nginx.pid; error_log error.log crit; events {}
http { access_log off; server { listen unix:web.sock; location / { return 200 served; } } }"""
_REDIS = """
redis-server --port 0 --unixsocket $PWD/redis.sock --save '' --daemonize no >/dev/null & server=$!
until redis-cli -s redis.sock ping >/dev/null 2>&1; do :; done
redis-benchmark -s redis.sock -n 400 -q -t set,get,lpush >/dev/null; echo $?
redis-cli -s redis.sock set key value; redis-cli -s redis.sock get key
redis-cli -s redis.sock shutdown nosave; wait $server; echo $?
"""
_JAVA = """
import java.util.*; import java.util.concurrent.*;
public class T { public static void main(String[] a) throws Exception {
  ExecutorService pool = Executors.newFixedThreadPool(4); List<Future<Long>> all = new ArrayList<>();
  for (int i = 0; i < 20; i++) { final int n = i; all.add(pool.submit(() -> { long s = 0;
    for (int j = 0; j < 20000; j++) { try { if (j % 1000 == n) throw new Exception("x"); s += ("" + j).length(); }
      catch (Exception e) { s += e.getStackTrace().length > 0 ? 1 : 0; } } return s; })); }
  long sum = 0; for (Future<Long> f : all) sum += f.get(); pool.shutdown(); System.gc(); System.out.println(sum); } }
"""
_GO = """
package main
import ("fmt"; "runtime"; "sync")
func deep(n int) int { if n == 0 { runtime.GC(); return 0 }; var room [64]int; room[n%64] = n
  return deep(n-1) + room[n%64] }
func main() { var wait sync.WaitGroup; var lock sync.Mutex; sum := 0
  for i := 0; i < 20; i++ { wait.Add(1); go func(i int) { defer wait.Done(); defer func() { recover() }()
    n := deep(100 + i); lock.Lock(); sum += n; lock.Unlock(); panic("left") }(i) }
  wait.Wait(); fmt.Println(sum) }
"""
_LISP = """(progn (setf (extern-alien "lose_on_corruption_p" int) 0)
  (print (handler-case (car (the cons (read-from-string "7"))) (type-error () 'caught)))
  (print (handler-case (/ 1 (read-from-string "0")) (division-by-zero () 'divided)))
  (print (handler-case (labels ((f (n) (+ 1 (f n)))) (f 1)) (storage-condition () 'deep)))
  (gc :full t) (print (length (loop repeat 300000 collect (list 1 2)))) (terpri) (exit :code 9))"""
_ERLANG = """
Me = self(), [spawn(fun() -> Me ! lists:sum(lists:seq(1, N)) end) || N <- lists:seq(1, 500)],
io:format("~p~n", [lists:sum([receive S -> S end || _ <- lists:seq(1, 500)])]),
io:format("~p~n", [catch hd([])]), halt(3).
"""
_MONO = """
using System; using System.Linq; using System.Threading;
class T { static int Deep(int n) { if (n == 0) throw new Exception("x"); return Deep(n - 1) + 1; }
  static int Main() { int caught = 0; var threads = Enumerable.Range(0, 8).Select(i => new Thread(() => {
      for (int j = 0; j < 50; j++) try { Deep(j); } catch (Exception e) {
        if (e.StackTrace.Length > 0) Interlocked.Increment(ref caught); } })).ToList();
    threads.ForEach(t => t.Start()); threads.ForEach(t => t.Join()); GC.Collect();
    object o = null; try { o.ToString(); } catch (NullReferenceException) { caught++; }
    Console.WriteLine(caught); return 6; } }
"""
_POSTGRES = """
b=/usr/lib/postgresql/15/bin; chmod 777 .; run() { setpriv --reuid nobody --regid nogroup --clear-groups "$@"; }
run $b/initdb -D d -A trust -U me -N --locale C >/dev/null; echo $?
run $b/pg_ctl -D d -w -l /dev/null -o "-c listen_addresses= -k $PWD" start >/dev/null; echo $?
q() { run $b/psql -h $PWD -U me -d postgres -Atc "$1"; }
q 'create table t as select g, md5(g::text) m from generate_series(1, 5000) g; create index on t(m)'
q 'select count(*), min(m), max(m) from t'; q 'select 1 / 0'
q 'do $$ begin for i in 1..200 loop begin perform 1 / 0; exception when others then null; end; end loop; end $$'
run $b/pg_ctl -D d -w -m fast stop >/dev/null; echo $?; rm -rf d
"""

MORE_PROGRAMS = (
    shell("digests", "seq 9999 > a; sha256sum a; md5sum a; b2sum a; cksum a; base64 a | tail -1"),
    shell("split and join", "seq 999 > a; split -n 7 a p; cat p* | cmp - a; join a a | wc -l; comm -12 a a | wc -l"),
    shell("text tools", "seq 99 | tac | nl | fold -w 9 | paste - - - | tr 0-9 a-j | expand | od -c | tail -2"),
    shell("copies", "mkdir -p a/b; seq 9 > a/b/c; ln -s b a/l; cp -a a d; find d | sort; mv d e; rm -r a; ls -R e"),
    shell("xargs", "seq 40 | xargs -n 1 -P 4 expr 1 + | sort -n | paste -sd,"),
    shell("time limit", "timeout 0.5 sleep 60; echo $?; timeout -s KILL 0.5 sleep 60; echo $?"),
    shell("factors", "seq 999983 1000019 | factor; numfmt --to=iec 123456789; date -u -d @0; printf '%s\\n' a b"),
    shell("environment of its own", "env -i A=1 B=2 env | sort; nice -n 5 nice; id -u; umask 027; umask"),
    Behaviour(
        "bash",
        (
            "/bin/bash",
            "-c",
            "a=(3 1 2); for i in ${!a[@]}; do (exit ${a[i]}) & done; wait; diff <(seq 9) <(seq 8); "
            "coproc cat; echo x >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y; exit 13",
        ),
        13,
    ),
    Behaviour(
        "traps of bash",
        (
            "/bin/bash",
            "-c",
            "trap 'echo usr1' USR1; for i in 1 2 3; do kill -USR1 $$; done; trap 'echo bye' EXIT; set -e; false",
        ),
        1,
    ),
    Behaviour(
        "perl forks",
        (
            "/usr/bin/perl",
            "-e",
            "for (1 .. 30) { if (!fork) { exit $_ } } my $s = 0; while (wait > 0) { $s += $? >> 8 } "
            "print qq($s\\n); open(F, '-|', 'echo piped'); print <F>; $SIG{ALRM} = sub { die qq(late\\n) "
            "};alarm 1; eval { sleep 9 }; print $@;",
        ),
    ),
    Behaviour(
        "python threads",
        (
            "/usr/bin/python3",
            "-c",
            "import threading; r = []; t = [threading.Thread(target=r.append, args=(i,)) for i in "
            "range(200)]; [x.start() for x in t]; [x.join() for x in t]; print(sum(r))",
        ),
    ),
    Behaviour(
        "python processes",
        (
            "/usr/bin/python3",
            "-c",
            "import multiprocessing as m\nwith m.Pool(4) as p: print(sum(p.map(abs, range(-500, 0))))",
        ),
    ),
    *(
        Behaviour(f"test of python {name}", ("/usr/bin/python3", "-W", "ignore", "-c", _MODULE, f"test_{name}"))
        for name in _MODULES.split()
    ),
    Behaviour(
        "ruby",
        (
            "/usr/bin/ruby",
            "-e",
            "f = Fiber.new { 9.times { |i| Fiber.yield i } }; puts 9.times.sum { f.resume }; puts "
            "20.times.map { |i| Thread.new { i * i } }.sum(&:value); begin; raise 'x'; rescue => e; puts "
            "e.backtrace.size; end; GC.start; GC.compact rescue 0; exit 7",
        ),
        7,
    ),
    Behaviour(
        "php",
        (
            "/usr/bin/php",
            "-r",
            "try { throw new Exception('x'); } catch (Exception $e) { echo $e->getMessage(); } echo "
            "array_sum(array_map(fn($x) => $x * $x, range(1, 500))), PHP_EOL; exit(6);",
        ),
        6,
    ),
    Behaviour(
        "node workers",
        (
            "/usr/bin/node",
            "-e",
            "const w = require('worker_threads'); let n = 0; for (let i = 0; i < 4; i++) new "
            "w.Worker('require(\"worker_threads\").parentPort.postMessage(41)', { eval: true "
            "}).on('message', m => n += m); process.on('exit', () => console.log(n))",
        ),
    ),
    Behaviour(
        "node garbage",
        (
            "/usr/bin/node",
            "--expose-gc",
            "-e",
            "let a = []; for (let i = 0; i < 3e5; i++) { a.push({ i }); if (i % 1e5 == 0) { gc(); a = "
            "[] } } try { null.x } catch (e) { console.log(e.stack.split('at').length > 2) }",
        ),
    ),
    shell("java", f"cat > T.java <<'END'\n{_JAVA}\nEND\njava -Xmx256m T.java"),
    shell("java, interpreted", f"cat > T.java <<'END'\n{_JAVA}\nEND\njava -Xint -Xmx256m -XX:+UseSerialGC T.java"),
    shell("go", f"cat > t.go <<'END'\n{_GO}\nEND\nHOME=$PWD GOCACHE=$PWD/cache go build t.go && ./t; rm -rf cache t"),
    shell(
        "git history",
        "export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' "
        "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; git init -q "
        "r; cd r; for i in 1 2 3; do seq $i > f; git add f; git commit -qm $i; done; git log "
        "--oneline; git gc -q; git fsck; cd ..; git clone -q r s; git -C s diff HEAD~2 --stat; rm -rf "
        "r s",
    ),
    Behaviour(
        "sqlite3 queries",
        (
            "/usr/bin/sqlite3",
            ":memory:",
            "with recursive c(x) as (select 1 union all select x + 1 from c where x < 9999) select "
            "sum(x), count(distinct x % 97), group_concat(x % 3) from c where x < 50; pragma "
            "integrity_check;",
        ),
    ),
    shell("gdb of a program", "gdb -nx -batch -ex 'break abort' -ex run /bin/true 2>&1 | grep -c 'exited normally'"),
    shell(
        "strace",
        "strace -f -qq -e trace=getppid,exit_group -o t sh -c 'echo $PPID >/dev/null; exit 3'; echo "
        "$?; grep -Evc 'syscall_0x1[45]|uretprobe|uprobe' t; rm t",  # those are the kernel's own
    ),
    shell(
        "C++ compiler",
        "printf '#include <vector>\n#include <map>\nint main() { std::map<int, std::vector<int>> m; "
        "m[3].push_back(4); return m[3][0]; }' > a.cc; g++ -O2 -o a a.cc; ./a; echo $?; rm a",
    ),
    shell("clang", "echo 'int main(void) { return 11; }' > a.c; clang -O2 -o a a.c; ./a; echo $?; rm a"),
    shell(
        "parallel make",
        "printf 'all: 1 2 3 4 5 6 7 8\n%%: %%.c\n\t@gcc -c -o $@ $<\n' > Makefile; for i in 1 2 3 4 5 "
        "6 7 8; do echo 'int x;' > $i.c; done; make -s -j2; ls",
    ),
    shell(
        "tcc",
        "printf '#include <stdio.h>\nint main() { printf(\"jit\\\\n\"); return 9; }' > a.c; tcc -run a.c",
        9,
    ),
    shell("busybox", "busybox sh -c 'for i in 1 2 3; do busybox echo $i; done | busybox sort -r | busybox md5sum'"),
    shell(
        "openssl",
        "openssl speed -seconds 1 sha256 >/dev/null 2>&1; echo $?; seq 99 | openssl dgst -sha512; "
        "openssl genrsa 1024 2>/dev/null | openssl rsa -noout -check 2>/dev/null",
    ),
    shell(
        "archives",
        "seq 9999 > a; for z in gzip bzip2 xz zstd; do $z -k a; done; tar --mtime=@0 -cf t.tar a a.xz; "
        "tar -tf t.tar; rm a.gz a.zst; ls",
    ),
    shell(
        "web server",
        f"echo '{_NGINX}' > nginx.conf; nginx -p . -c nginx.conf & until curl -s --unix-socket web.sock http://x/; "
        "do :; done; for i in 1 2 3 4 5 6 7 8 9; do curl -s --unix-socket web.sock http://x/; done; "
        "kill $(cat nginx.pid); wait; rm -rf *temp*; ls",
    ),
    shell("database server", _REDIS),
    shell(
        "valgrind finds a leak",
        "printf 'void *malloc(unsigned long); int main() { malloc(77); return 0; }' > a.c; gcc -g -o a "
        "a.c; valgrind -q --leak-check=full --error-exitcode=9 ./a 2>&1 | grep -c 'definitely lost'; "
        "rm a",
    ),
    shell(
        "sanitizers",
        "printf '#include <stdlib.h>\nint main() { char *p = malloc(7); free(p); return p[1]; }' > "
        "a.c; gcc -g -fsanitize=address -o a a.c; ./a 2>&1 | sed -n 's/.*\\(heap-use-after-free\\) "
        "on.*/\\1/p'; ./a >/dev/null 2>&1; echo $?; rm a",
    ),
    shell(
        "frames of the sanitizer",
        "printf '#include <stdlib.h>\nint main() { char *p = malloc(7); free(p); free(p); }' > a.c; "
        "gcc -g -fsanitize=address -fno-omit-frame-pointer -o a a.c; ./a 2>&1 | grep -c '#[0-9]'; rm a",
    ),
    Behaviour("lisp", ("/usr/bin/sbcl", "--noinform", "--no-sysinit", "--no-userinit", "--eval", _LISP), 9),
    Behaviour("erlang", ("/usr/bin/erl", "+S", "2", "-noshell", "-eval", _ERLANG), 3),
    shell("mono", f"cat > t.cs <<'END'\n{_MONO}\nEND\nmcs t.cs; mono t.exe; s=$?; rm t.exe; exit $s", 6),
    Behaviour("forth", ("/usr/bin/gforth", "-e", ": f 0 swap 0 do i + loop ; 99 f . 1 0 ' / catch . cr bye")),
    Behaviour(
        "prolog",
        ("/usr/bin/swipl", "-q", "-g", "numlist(1,999,L),sum_list(L,S),print(S),catch(atom_length(_,_),_,nl),halt(4)"),
        4,
    ),
    Behaviour(
        "R", ("/usr/bin/Rscript", "-e", "print(sum(sapply(1:999, sqrt))); try(stop('x')); gc() -> g; q(status=3)"), 3
    ),
    Behaviour(
        "guile",
        (
            "/usr/bin/guile",
            "--no-auto-compile",
            "-c",
            "(display (call/cc (lambda (k) (dynamic-wind (lambda () 1) (lambda () (k 5)) (lambda () (display 3))))))"
            "(catch #t (lambda () (car 1)) (lambda a (display (car a)))) (gc) (exit 7)",
        ),
        7,
    ),
    shell("ocaml", "echo 'try ignore (1 / (Random.int 1)) with Division_by_zero -> exit 8;;' > a.ml; ocaml a.ml", 8),
    Behaviour(
        "scheme", ("/usr/bin/csi", "-e", "(print (apply + (map (lambda (x) (* x x)) (list 1 2 3 4)))) (exit 2)"), 2
    ),
    shell("postgres", _POSTGRES),
)
