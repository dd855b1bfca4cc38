"""Servers with a process attached: processor time for each request, and what the tracer uses meanwhile."""

from __future__ import annotations

import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psutil

from benchmarks.attach import wait_until_armed
from benchmarks.commands import Command, Running, Unmeasured, run, running
from benchmarks.methods import REFLEAK, loss_of, refleak_report
from benchmarks.programs import Programs
from benchmarks.samples import Samples, text_of_ratio, text_of_time
from benchmarks.settings import CACHE, Settings
from benchmarks.tables import Results, Table

_READY_SECONDS = 20.0
_NGINX = """\
daemon off; user root; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{port}; root {folder}; }}
}}
"""
_NODE = """\
const http = require("http");
http.createServer((request, response) => {{
  const items = []; for (let i = 0; i < 20; i++) items.push({{id: i, name: "item " + i}});
  response.setHeader("Content-Type", "application/json"); response.end(JSON.stringify(items));
}}).listen({port}, "127.0.0.1");
"""
_UVICORN = """\
import json
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = json.dumps([{"id": i, "name": f"item {i}"} for i in range(20)]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
"""


@dataclass(frozen=True)
class Server:
    """A server made ready, what asks it for `requests`, and how many those are."""

    command: Command
    client: Command
    requests: int
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)


def _found(name: str) -> str:
    path = shutil.which(name, path="/usr/bin:/bin:/usr/sbin")
    if path is None:
        raise Unmeasured(f"{name} is not installed")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _http(port: int, requests: int, path: str = "") -> Command:
    return [_found("ab"), "-q", "-k", "-n", str(requests), "-c", "4", f"http://127.0.0.1:{port}/{path}"]


def nginx(settings: Settings) -> Server:
    """A small file, over connections that are kept."""
    port, requests, folder = _free_port(), settings.count(30_000, 200), settings.folder / "nginx"
    folder.mkdir(exist_ok=True)
    folder.joinpath("page.html").write_text("a page\n" * 200)
    configuration = folder / "nginx.conf"
    configuration.write_text(_NGINX.format(folder=folder, port=port))
    command: Command = [_found("nginx"), "-p", folder, "-c", configuration]
    return Server(command, _http(port, requests, "page.html"), requests, port)


def redis(settings: Settings) -> Server:
    """Values set and read at random keys."""
    port, requests = _free_port(), settings.count(100_000, 500)
    command = [_found("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    client = [_found("redis-benchmark"), "-p", str(port), "-q", "-c", "4", "-n", str(requests // 2), "-r", "10000",
              "-t", "set,get"]  # fmt: skip
    return Server(command, client, requests // 2 * 2, port)


def node(settings: Settings) -> Server:
    """A small JSON document made for each request."""
    port, requests, script = _free_port(), settings.count(15_000, 200), settings.folder / "server.js"
    script.write_text(_NODE.format(port=port))
    return Server([_found("node"), script], _http(port, requests), requests, port)


def uvicorn(settings: Settings) -> Server:
    """The same in Python, whose frames are walked too."""
    if find_spec("uvicorn") is None:
        raise Unmeasured("uvicorn is not installed")
    port, requests = _free_port(), settings.count(6_000, 100)
    settings.folder.joinpath("server.py").write_text(_UVICORN)
    command: Command = [sys.executable, "-m", "uvicorn", "--app-dir", settings.folder, "--no-access-log",
                        "--log-level", "error", "--port", str(port), "server:app"]  # fmt: skip
    return Server(command, _http(port, requests), requests, port)


SERVERS: Mapping[str, Callable[[Settings], Server]] = {
    "nginx": nginx, "redis": redis, "node": node, "uvicorn": uvicorn,
}  # fmt: skip
GOALS = {"nginx": 2.0, "redis": 3.0, "node": 2.0, "uvicorn": 2.5}


@contextmanager
def _serving(server: Server) -> Iterator[Running]:
    with running(server.command, environment=server.environment) as process:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=1):
                break
            if time.monotonic() > deadline:
                raise Unmeasured(f"was not ready: {(process.stderr or process.stdout).strip()[-100:]}")
            time.sleep(0.02)
        yield process


def used_seconds(pid: int) -> float:
    """Return the processor time of a process and its children, by the scheduler's clock (ns, schedstat in /proc)."""
    try:
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.NoSuchProcess:
        raise Unmeasured("ended early") from None
    tasks = (task for each in family for task in Path(f"/proc/{each}/task").glob("*/schedstat"))
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _per_request(pid: int, server: Server, settings: Settings) -> float:
    before = used_seconds(pid)
    run(server.client, settings.timeout_seconds).checked()
    return (used_seconds(pid) - before) / server.requests


@contextmanager
def _attached(pid: int, report: Path, settings: Settings, options: Sequence[str]) -> Iterator[Running]:
    command: Command = [REFLEAK, "-q", "--format", "json", "-o", report, *options, "-p", str(pid), "--tree"]
    with running(command, environment={"REFLEAK_CACHE": str(CACHE)}, patience=30) as tracer:
        wait_until_armed(tracer, settings)
        yield tracer


@dataclass
class _Found:
    """Seconds for each request, and the tracer's share of a processor."""

    untraced: Samples = field(default_factory=Samples)
    traced: Samples = field(default_factory=Samples)
    share: Samples = field(default_factory=Samples)
    notes: list[str] = field(default_factory=list)


def _round(index: int, server: Server, settings: Settings, options: Sequence[str], found: _Found) -> None:
    with _serving(server) as process, refleak_report() as report:
        _per_request(process.pid, server, settings)  # compiled, and its heap made
        found.untraced.by_round[index] = _per_request(process.pid, server, settings)
        with _attached(process.pid, report, settings, options) as tracer:
            _per_request(process.pid, server, settings)
            began, used = time.monotonic(), used_seconds(tracer.pid)
            found.traced.by_round[index] = _per_request(process.pid, server, settings)
            found.share.by_round[index] = 100 * (used_seconds(tracer.pid) - used) / (time.monotonic() - began)
            tracer.end(30)
        found.notes += filter(None, [loss_of(report)])


def servers(_programs: Programs, settings: Settings, options: Sequence[str] = ()) -> Results:
    """Measure each server untraced and then with refleak attached to it and its children."""
    lines, figures, notes = [], {}, []
    for name, prepare in SERVERS.items():
        found = _Found()
        try:
            server = prepare(settings)
            for index in range(min(3, settings.rounds)):
                _round(index, server, settings, options, found)
        except Unmeasured as reason:
            notes.append(f"{name}: {reason}")
        if not found.traced:
            continue
        ratio = found.traced.over(found.untraced)
        figures[f"server {name}"] = ratio
        lines.append([name, text_of_time(found.untraced.median * 1e9), text_of_time(found.traced.median * 1e9),
                      text_of_ratio(ratio), text_of_ratio(found.share)])  # fmt: skip
        notes += [f"{name}: {note}" for note in found.notes]
    header = ["server", "untraced", "traced", "traced / untraced", "tracer, % of one processor"]
    return Results([Table("Processor time for each request", header, lines, notes)], figures)
