"""Clients of a message bus: each workload of the mutants, over bare sockets.

    clients.py WORKLOAD SOCKET COMMAND...   run a command that starts the bus, and a workload; end the bus by SIGTERM
    clients.py serve NAME                   own a name and answer calls; what the bus activates

Nothing here counts on how fast anybody is: what is asked for is waited for, by its reply, its signal, or the end of the
connection.
"""

from __future__ import annotations

import array
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BUS, BUS_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"
CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
_NO_REPLY, _NO_AUTO_START = 1, 2
_ALIGNMENT = {"y": 1, "g": 1, "b": 4, "i": 4, "u": 4, "h": 4, "s": 4, "o": 4, "a": 4, "{": 8, "(": 8, "v": 1}
_HEADER = {1: "o", 2: "s", 3: "s", 4: "s", 5: "u", 6: "s", 7: "s", 8: "g", 9: "u"}
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE, UNIX_FDS = range(1, 10)
_SECONDS = 20


def _padded(data: bytes, alignment: int) -> bytes:
    return data + bytes(-len(data) % alignment)


def _append(data: bytes, kind: str, value: object) -> bytes:
    """Append a value of a simple type, an array of strings or a dictionary of strings."""
    data = _padded(data, _ALIGNMENT[kind[0]])
    if kind in "so":
        text = str(value).encode()
        return data + struct.pack("<I", len(text)) + text + b"\0"
    if kind == "g":
        text = str(value).encode()
        return data + bytes([len(text)]) + text + b"\0"
    if kind[0] == "a":
        assert isinstance(value, (list, dict))
        start = len(_padded(data + bytes(4), _ALIGNMENT[kind[1]]))
        body = bytes(start)
        for item in value.items() if isinstance(value, dict) else value:
            body = _append(_append(_padded(body, 8), "s", item[0]), "s", item[1]) if kind[1] == "{" else _append(
                body, kind[1:], item)  # fmt: skip
        return _padded(data + struct.pack("<I", len(body) - start), _ALIGNMENT[kind[1]]) + body[start:]
    return data + struct.pack("<i" if kind == "i" else "<I", value)


def _types(signature: str) -> list[str]:
    kinds = []
    while signature:
        length = signature.index("}") + 1 if signature.startswith("a{") else 2 if signature[0] == "a" else 1
        kinds.append(signature[:length])
        signature = signature[length:]
    return kinds


class Message:
    def __init__(self, kind: int, serial: int, fields: dict[int, str | int], body: bytes) -> None:
        self.kind, self.serial, self.fields, self.body = kind, serial, fields, body

    @property
    def number(self) -> int:
        return int(struct.unpack_from("<I", self.body)[0])

    @property
    def text(self) -> str:
        return self.body[4 : 4 + self.number].decode()


class Client:
    """One connection. A client says Hello unless told not to."""

    def __init__(self, path: str, hello: bool = True, mechanism: str = "EXTERNAL", fds: bool = False) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(_SECONDS)
        self.socket.connect(path)
        self._serial, self._data = 0, b""
        self._kept: list[Message] = []
        identity = str(os.getuid()) if mechanism == "EXTERNAL" else "nobody"
        self.say(f"\0AUTH {mechanism} {identity.encode().hex()}\r\n")
        if self.line().startswith("OK"):
            if fds:
                self.say("NEGOTIATE_UNIX_FD\r\n")
                self.line()
            self.say("BEGIN\r\n")
            self.name = self.bus("Hello").text if hello else ""

    def say(self, text: str) -> None:
        self.socket.sendall(text.encode())

    def line(self) -> str:
        while b"\n" not in self._data:
            self._read()
        line, self._data = self._data.split(b"\n", 1)
        return line.decode()

    def send(self, kind: int, fields: dict[int, str | int], signature: str = "", *values: object, flags: int = 0,
             fds: tuple[int, ...] = ()) -> int:  # fmt: skip
        """Send a message; return its serial number."""
        self._serial += 1
        body = b""
        for one, value in zip(_types(signature), values, strict=True):
            body = _append(body, one, value)
        if signature:
            fields = {**fields, SIGNATURE: signature}
        if fds:
            fields = {**fields, UNIX_FDS: len(fds)}
        header = struct.pack("<cBBBII", b"l", kind, flags, 1, len(body), self._serial) + bytes(4)
        for number, value in fields.items():
            header = _padded(header, 8) + bytes([number, 1]) + _HEADER[number].encode() + b"\0"
            header = _append(header, _HEADER[number], value)
        header = header[:12] + struct.pack("<I", len(header) - 16) + header[16:]
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([_padded(header, 8) + body], ancillary)
        return self._serial

    def call(self, to: str, member: str, signature: str = "", *values: object, interface: str = BUS,
             path: str = BUS_PATH, flags: int = 0) -> int:  # fmt: skip
        fields: dict[int, str | int] = {PATH: path, DESTINATION: to, INTERFACE: interface, MEMBER: member}
        return self.send(CALL, fields, signature, *values, flags=flags)

    def ask(self, to: str, member: str, signature: str = "", *values: object, **options: str) -> Message:
        """Call a method; return its reply or error."""
        return self.reply(self.call(to, member, signature, *values, **options))  # type: ignore[arg-type]

    def bus(self, member: str, signature: str = "", *values: object, **options: str) -> Message:
        return self.ask(BUS, member, signature, *values, **options)

    def reply(self, serial: int) -> Message:
        return self.wait(lambda message: message.fields.get(REPLY_SERIAL) == serial)

    def wait(self, wanted: Callable[[Message], bool]) -> Message:
        """Return the first message that is wanted; others are kept."""
        for message in self._kept:
            if wanted(message):
                self._kept.remove(message)
                return message
        while not wanted(message := self._next()):
            self._kept.append(message)
        return message

    def answer(self, call: Message, kind: int = RETURN) -> None:
        fields: dict[int, str | int] = {REPLY_SERIAL: call.serial, DESTINATION: call.fields[SENDER]}
        self.send(kind, {**fields, ERROR_NAME: "org.example.Failed"} if kind == ERROR else fields, "s", "done")

    def signal(self, member: str, **to: str) -> None:
        fields: dict[int, str | int] = {PATH: "/", INTERFACE: "org.example.Events", MEMBER: member}
        self.send(SIGNAL, {**fields, DESTINATION: to["to"]} if to else fields, "s", "news")

    def ended(self) -> None:
        """Wait until the bus closes the connection."""
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionResetError:
            pass

    def close(self) -> None:
        self.socket.close()

    def _read(self) -> None:
        data, _, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(64))
        if not data:
            raise EOFError
        self._data += data

    def _next(self) -> Message:
        while len(self._data) < 16 or len(self._data) < self._length():
            self._read()
        data, self._data = self._data[: self._length()], self._data[self._length() :]
        kind, body_length, serial, fields_length = data[1], *struct.unpack_from("<III", data, 4)
        fields: dict[int, str | int] = {}
        at = 16
        while at < 16 + fields_length:
            at += -at % 8
            number, value_kind = data[at], chr(data[at + 2])
            at += 4
            if value_kind == "u":
                fields[number] = struct.unpack_from("<I", data, at)[0]
                at += 4
            else:
                size = 1 if value_kind == "g" else 4
                length = int.from_bytes(data[at : at + size], "little")
                fields[number] = data[at + size : at + size + length].decode()
                at += size + length + 1
        return Message(kind, serial, fields, data[len(data) - body_length :])

    def _length(self) -> int:
        body, _, fields = struct.unpack_from("<III", self._data, 4)
        return int((16 + fields + 7) // 8 * 8 + body)


def names(path: str) -> list[Client]:
    """Names are requested, queued for, replaced, given back, and lost with their owners."""
    first, second, third = (Client(path) for _ in range(3))
    for name in ("org.example.A", "org.example.B", "org.example.C"):
        first.bus("RequestName", "su", name, 1)
        second.bus("RequestName", "su", name, 0)
        third.bus("RequestName", "su", name, 4)
    second.bus("RequestName", "su", "org.example.A", 2)
    third.bus("RequestName", "su", "org.example.B", 3)
    third.bus("RequestName", "su", "org.example.D", 0)
    first.bus("RequestName", "su", "org.example.D", 0)
    third.bus("ListQueuedOwners", "s", "org.example.A")
    first.bus("ReleaseName", "s", "org.example.A")
    third.bus("ReleaseName", "s", "org.example.B")
    third.bus("ReleaseName", "s", "org.example.Nobody")
    first.bus("RequestName", "su", "not a name", 0)
    third.close()
    first.bus("GetNameOwner", "s", "org.example.C")
    second.close()
    first.bus("ListNames")
    return [first]


def ask(path: str) -> list[Client]:
    """The bus is asked all that it can say."""
    client, other = Client(path), Client(path)
    for member in ("ListNames", "ListActivatableNames", "GetId"):
        client.bus(member)
    for member in ("NameHasOwner", "GetNameOwner", "ListQueuedOwners", "GetConnectionUnixUser",
                   "GetConnectionUnixProcessID", "GetConnectionCredentials", "GetAdtAuditSessionData",
                   "GetConnectionSELinuxSecurityContext"):  # fmt: skip
        for name in (other.name, "org.example.Nobody", BUS):
            client.bus(member, "s", name)
    client.bus("Introspect", interface="org.freedesktop.DBus.Introspectable")
    client.bus("Introspect", interface="org.freedesktop.DBus.Introspectable", path="/")
    client.bus("GetAll", "s", BUS, interface="org.freedesktop.DBus.Properties")
    client.bus("Get", "ss", BUS, "Features", interface="org.freedesktop.DBus.Properties")
    client.bus("Get", "ss", BUS, "Interfaces", interface="org.freedesktop.DBus.Properties")
    client.bus("Ping", interface="org.freedesktop.DBus.Peer")
    client.bus("GetMachineId", interface="org.freedesktop.DBus.Peer")
    client.bus("GetStats", interface="org.freedesktop.DBus.Debug.Stats")
    client.bus("GetConnectionStats", "s", other.name, interface="org.freedesktop.DBus.Debug.Stats")
    client.bus("GetAllMatchRules", interface="org.freedesktop.DBus.Debug.Stats")
    other.close()
    return [client]


def match(path: str) -> list[Client]:
    """Rules are added, met by signals, removed, refused, and lost with their clients."""
    listener, other, sender = (Client(path) for _ in range(3))
    rules = ["type='signal'", "interface='org.example.Events'", "member='Two',arg0='news'", "path_namespace='/'",
             f"type='signal',sender='{sender.name}'", "arg0path='/'", "arg0namespace='org.example'"]  # fmt: skip
    for rule in rules:
        listener.bus("AddMatch", "s", rule)
    other.bus("AddMatch", "s", rules[0])
    other.bus("AddMatch", "s", rules[1])
    for member in ("One", "Two", "Three"):
        sender.signal(member)
    for member in ("One", "Two", "Three"):
        other.wait(lambda message, member=member: message.fields.get(MEMBER) == member)  # type: ignore[misc]
    listener.bus("GetAllMatchRules", interface="org.freedesktop.DBus.Debug.Stats")
    for rule in rules[1:4]:
        listener.bus("RemoveMatch", "s", rule)
    listener.bus("RemoveMatch", "s", "type='error'")
    for rule in ("type='no such'", "nonsense", "arg99='x'", "type='signal',type='signal'", "path='bad'", "member='9'"):
        listener.bus("AddMatch", "s", rule)
    listener.bus("RemoveMatch", "s", "nonsense")
    other.close()
    sender.signal("Last")
    sender.bus("GetId")
    return [listener, sender]


def calls(path: str) -> list[Client]:
    """Calls are answered, answered by an error, never answered, and cut off by either end."""
    server, client = Client(path), Client(path)
    server.bus("RequestName", "su", "org.example.Server", 0)

    def received() -> Message:
        return server.wait(lambda message: message.kind == CALL)

    for kind in (RETURN, RETURN, ERROR):
        serial = client.call("org.example.Server", "Do", "s", "it", interface="org.example.Server", path="/")
        server.answer(received(), kind)
        client.reply(serial)
    client.call("org.example.Server", "Do", "s", "no reply", interface="org.example.Server", path="/", flags=_NO_REPLY)
    received()
    server.signal("Direct", to=client.name)
    client.wait(lambda message: message.fields.get(MEMBER) == "Direct")
    vanishing = Client(path)
    vanishing.call("org.example.Server", "Do", interface="org.example.Server", path="/")
    call = received()
    vanishing.close()
    while client.bus("NameHasOwner", "s", vanishing.name).number:
        pass
    server.answer(call)
    server.bus("GetId")
    serial = client.call("org.example.Server", "Do", interface="org.example.Server", path="/")
    received()
    server.close()
    client.reply(serial)
    client.ask("org.example.Server", "Do", interface="org.example.Server", path="/")
    return [client]


def expire(path: str) -> list[Client]:
    """Replies that never come are given up by the bus, one after the other."""
    server, client, other = (Client(path) for _ in range(3))
    serials = [client.call(server.name, "Wait", interface="org.example.Server", path="/") for _ in range(3)]
    serial = other.call(server.name, "Wait", interface="org.example.Server", path="/")
    for one in serials:
        client.reply(one)
    other.reply(serial)
    serials = [client.call(server.name, "Wait", interface="org.example.Server", path="/") for _ in range(7)]
    for one in serials:
        client.reply(one)
    return [server, client]


def activate(path: str) -> list[Client]:
    """Services are started by a call, by name, twice, in vain, and too slowly."""
    client, other = Client(path), Client(path)
    first = client.call("org.example.Good", "Do", interface="org.example.Server", path="/")
    second = other.call("org.example.Good", "Do", interface="org.example.Server", path="/")
    third = other.call(BUS, "StartServiceByName", "su", "org.example.Good", 0)
    client.reply(first)
    other.reply(second)
    other.reply(third)
    client.bus("StartServiceByName", "su", "org.example.Good", 0)
    client.bus("UpdateActivationEnvironment", "a{ss}", {"COLOUR": "green"})
    for name in ("Fails", "Missing", "Nobody"):
        client.bus("StartServiceByName", "su", f"org.example.{name}", 0)
        client.ask(f"org.example.{name}", "Do", interface="org.example.Server", path="/")
    serial = client.call("org.example.Nobody", "Do", interface="org.example.Server", path="/", flags=_NO_AUTO_START)
    client.reply(serial)
    return [client, other]


def slow(path: str) -> list[Client]:
    """A service is too slow; one of those that wait for it goes away."""
    client, other = Client(path), Client(path)
    serials = [client.call("org.example.Slow", "Do", interface="org.example.Server", path="/") for _ in range(3)]
    other.call("org.example.Slow", "Do", interface="org.example.Server", path="/")
    other.call(BUS, "StartServiceByName", "su", "org.example.Slow", 0)
    other.close()
    for serial in serials:
        client.reply(serial)
    client.call("org.example.Slow", "Do", interface="org.example.Server", path="/")
    return [client]


def monitor(path: str) -> list[Client]:
    """One monitors all and one some of what others say; then rules are refused."""
    everything, some, refused, client = (Client(path) for _ in range(4))
    member, interface = "BecomeMonitor", "org.freedesktop.DBus.Monitoring"
    everything.bus("RequestName", "su", "org.example.M", 0)
    everything.bus("AddMatch", "s", "type='signal'")
    everything.bus(member, "asu", [], 0, interface=interface)
    some.bus(member, "asu", ["type='signal'", "member='One'"], 0, interface=interface)
    refused.bus(member, "asu", ["type='signal'", "nonsense"], 0, interface=interface)
    refused.bus(member, "asu", [], 1, interface=interface)
    client.bus("RequestName", "su", "org.example.N", 0)
    client.signal("One")
    client.ask("org.example.Nobody", "Do")
    client.bus("ListNames")
    some.close()
    client.signal("Two")
    everything.signal("Monitors must be silent")
    everything.ended()
    return [client, refused]


def errors(path: str) -> list[Client]:
    """Wrong members, arguments and messages, and clients that break the protocol."""
    client = Client(path)
    client.bus("NoSuchMember")
    client.bus("Hello")
    client.bus("RequestName", "s", "org.example.A")
    client.bus("ListNames", interface="org.example.NoSuchInterface")
    client.bus("AddMatch", "u", 7)
    client.bus("UpdateActivationEnvironment", "s", "nonsense")
    client.bus("GetConnectionStats", "s", "org.example.Nobody", interface="org.freedesktop.DBus.Debug.Stats")
    client.bus("Get", "ss", BUS, "NoSuch", interface="org.freedesktop.DBus.Properties")
    client.bus("Set", "ss", BUS, "Features", interface="org.freedesktop.DBus.Properties")
    client.ask("org.example.Denied", "Do", interface="org.example.Denied", path="/")
    client.ask("org.example.Nobody", "Do", interface="org.example.Server", path="/")
    early = Client(path, hello=False)
    early.call("org.example.Nobody", "Do")
    early.ended()
    early = Client(path, hello=False)
    early.signal("Early")
    early.ended()
    broken = Client(path)
    broken.socket.sendall(b"this is no message at all, and long enough to be looked at by anybody")
    broken.ended()
    broken = Client(path)
    broken.signal("Good before bad")
    broken.socket.sendall(b"l\1\0\1" + b"\xff" * 12)
    broken.ended()
    return [client]


def auth(path: str) -> list[Client]:
    """Clients fail to say who they are, are slow to, are nobody, or leave half-way."""
    silent = socket.socket(socket.AF_UNIX)
    silent.settimeout(_SECONDS)
    silent.connect(path)
    Client(path, mechanism="NOSUCH").close()
    Client(path, hello=False, mechanism="ANONYMOUS").ended()
    wrong = Client(path, mechanism="NOSUCH")
    wrong.say("AUTH EXTERNAL 31323334\r\n")
    wrong.line()
    wrong.say("CANCEL\r\nERROR\r\nAUTH\r\n")
    wrong.line()
    for _ in range(8):
        wrong.say("NONSENSE\r\n")
    wrong.ended()
    half = Client(path, hello=False)
    half.close()
    while silent.recv(100):
        pass
    return [Client(path)]


def limits(path: str) -> list[Client]:
    """Limits are met: of connections, names, rules, pending replies and waiting bytes."""
    clients = [Client(path) for _ in range(6)]
    first, second = clients[:2]
    for number in range(12):
        first.bus("RequestName", "su", f"org.example.N{number}", 0)
        first.bus("AddMatch", "s", f"member='M{number}'")
    serials = [first.call(second.name, "Wait", interface="org.example.Server", path="/") for _ in range(20)]
    first.reply(serials[-1])
    for _ in range(4):
        with suppress(OSError, EOFError):
            Client(path)
    for client in clients[2:]:
        client.close()
    first.bus("ListNames")
    return [first, second]


def descriptors(path: str) -> list[Client]:
    """Descriptors are passed, to one that takes them and one that does not; some never come."""
    giver, taker, other = Client(path, fds=True), Client(path, fds=True), Client(path)
    read, write = os.pipe()
    fields: dict[int, str | int] = {PATH: "/", INTERFACE: "org.example.Fds", MEMBER: "Give"}
    giver.send(SIGNAL, {**fields, DESTINATION: taker.name}, "h", 0, fds=(read,))
    taker.wait(lambda message: message.fields.get(MEMBER) == "Give")
    giver.reply(giver.send(CALL, {**fields, DESTINATION: other.name}, "h", 0, fds=(read, write)))
    os.close(read)
    os.close(write)
    giver.bus("GetId")
    return [giver, other]


def reload(path: str) -> list[Client]:
    """The configuration is read again, on request and by SIGHUP, while clients are there."""
    client, other = Client(path), Client(path)
    client.bus("RequestName", "su", "org.example.A", 0)
    client.bus("ReloadConfig")
    os.kill(bus_pid(client), signal.SIGHUP)
    client.bus("AddMatch", "s", "type='signal'")
    other.bus("ReloadConfig")
    other.signal("One")
    client.wait(lambda message: message.fields.get(MEMBER) == "One")
    return [client, other]


def visits(path: str) -> list[Client]:
    """Clients come and go at once: before they say anything, who they are, or Hello, and after."""
    for _ in range(5):
        bare = socket.socket(socket.AF_UNIX)
        bare.connect(path)
        bare.close()
        bare = socket.socket(socket.AF_UNIX)
        bare.connect(path)
        bare.sendall(f"\0AUTH EXTERNAL {str(os.getuid()).encode().hex()}\r\n".encode())
        bare.recv(100)
        bare.close()
        Client(path, hello=False).close()
        Client(path).close()
    return []


def crowd(path: str) -> list[Client]:
    """Many clients come, say something to each other, and go."""
    first = Client(path)
    first.bus("AddMatch", "s", "interface='org.example.Events'")
    for number in range(40):
        client = Client(path)
        client.bus("RequestName", "su", f"org.example.C{number % 3}", 0)
        client.bus("AddMatch", "s", f"member='M{number}'")
        client.signal("Hello")
        serial = client.call(first.name, "Do", interface="org.example.Server", path="/")
        first.answer(first.wait(lambda message: message.kind == CALL))
        client.reply(serial)
        client.close()
    return [first]


WORKLOADS = {workload.__name__: workload for workload in (
    names, ask, match, calls, expire, activate, slow, monitor, errors, auth, limits, descriptors, reload, visits, crowd,
)}  # fmt: skip


def bus_pid(client: Client) -> int:
    return client.bus("GetConnectionUnixProcessID", "s", BUS).number


def serve(name: str) -> None:
    path = os.environ["DBUS_STARTER_ADDRESS"].split("path=")[1].split(",")[0]
    client = Client(path)
    client.bus("RequestName", "su", name, 0)
    try:
        while True:
            client.answer(client.wait(lambda message: message.kind == CALL))
    except EOFError:
        pass


def run(workload: str, path: str, command: list[str]) -> None:
    Path(path).unlink(missing_ok=True)
    traced = subprocess.Popen(command)
    while not Path(path).exists() and traced.poll() is None:
        time.sleep(0.01)
    pid, left = 0, []
    try:
        first = Client(path)
        pid = bus_pid(first)
        first.close()
        left = WORKLOADS[workload](path)
    finally:
        _end(pid, signal.SIGTERM)
        try:
            for client in left:
                client.ended()
            traced.wait(_SECONDS)
        except (OSError, EOFError, subprocess.TimeoutExpired):
            _end(pid, signal.SIGKILL)
            traced.wait()


def _end(pid: int, signal_: signal.Signals) -> None:
    """End the bus, which may have crashed."""
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal_)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        run(sys.argv[1], sys.argv[2], sys.argv[3:])
