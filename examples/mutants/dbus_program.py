"""dbus-daemon 1.14, as examples/dbus/build.sh makes it: libdbus, and what the daemon counts itself."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import dbus_slots
from program import ROOT, Program

_HERE = ROOT / "examples/dbus"
_CLIENTS = _HERE / "clients.py"
_SERVICES = {
    "Good": f"{sys.executable} {_CLIENTS} serve org.example.Good",
    "Fails": "/bin/false", "Missing": "/nonexistent", "Slow": "/bin/sleep 3",
}  # fmt: skip


_TYPES = tomllib.loads((_HERE / "types.toml").read_text())["type"]
_HELD = {one["name"]: dbus_slots.HELD.get(one["name"], {dbus_slots.ONLY}) for one in _TYPES}


def _functions(what: str) -> dict[str, str]:
    """Return the gets or the puts, and the type of each."""
    named = ((one["name"], one[what]) for one in _TYPES)
    return {function: name for name, some in named for function in ([some] if isinstance(some, str) else some)}


class Dbus(Program):
    """A private bus, which clients of its own talk to. What it starts is not traced."""

    binary = _HERE / "build/dbus-daemon"
    slots = dbus_slots
    puts = _functions("put")
    gets = _functions("get")
    unused = "_dbus_listen_tcp_socket"
    options = ("--spec", str(_HERE / "types.toml"), "--no-follow-forks")
    held = _HELD

    def workloads(self, out: Path) -> dict[str, list[str]]:
        lines = (_HERE / "workloads.txt").read_text().splitlines()
        arguments = [f"--config-file={out / 'bus.conf'}", "--nofork", "--nopidfile", "--nosyslog"]
        return {line.split("|")[0]: arguments for line in lines if line and line[0] != "#"}

    def prepare(self, out: Path) -> None:
        """Write the configuration, and the services that the bus can start."""
        for name in ("services", "nothing"):
            (out / name).mkdir(exist_ok=True)
        (out / "bus.conf").write_text((_HERE / "bus.conf").read_text().replace("@FOLDER@", str(out)))
        for name, command in _SERVICES.items():
            text = f"[D-BUS Service]\nName=org.example.{name}\nExec={command}\n"
            (out / "services" / f"{name}.service").write_text(text)

    def command(self, out: Path, name: str, traced: list[str]) -> list[str]:
        return [sys.executable, str(_CLIENTS), name, str(out / "bus"), *traced]
