"""Start the target's command, held between fork and exec until every probe is in place."""

from __future__ import annotations

import binascii
import json
import os
import pwd
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tracer.binaries.open_files import restore_limit
from tracer.errors import NoSuchTarget, NotPermitted, UsageError
from tracer.kernel.blocked_signals import signals_later
from tracer.late_dataclasses import dataclass
from tracer.procfs.process import variables_in

_GO = b"g"
_MOST_BYTES = 1 << 16
_NOTHING: Mapping[str, str] = {}
_IGNORED = "REFLEAK_IGNORED"
_VARIABLES = "REFLEAK_VARIABLES"
"""What the launcher found in its environment of _OF_SHELLS: `NAME=value`, each with a NUL behind it, in base64."""
_OF_SHELLS = ("PWD", "OLDPWD", "SHLVL", "_")
"""Variables that a shell gives itself, or others a new value: dash the first, bash all."""
_OF_PYTHON = "LC_CTYPE"
"""Python gives it to itself, and so to its children, where the locale is C (PEP 538); -I does not keep it from that."""
_SIGNALS_OF_PYTHON = (signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ, signal.SIGUSR1)
"""Ignored or handled by the interpreter or by refleak, inherited through exec when ignored."""
_ENDED = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)


@dataclass(frozen=True)
class User:
    """Who the target runs as."""

    uid: int
    gid: int
    name: str
    home: str


def user_of(name: str | None) -> User | None:
    """Return the user to become: `name`, else the one who called sudo, else None for no change.

    Raises UsageError where there is none of that name or number: what sudo's caller starts is never run as root.
    """
    if name is None:
        caller = os.environ.get("SUDO_UID", "")
        if os.geteuid() != 0 or caller in ("", "0"):
            return None
        try:
            entry = pwd.getpwuid(int(caller))
        except (KeyError, ValueError, OverflowError):
            raise UsageError(
                f"there is no user with the number {caller!r}, which SUDO_UID names",
                "name the user that the target is to run as: --user NAME (--user root for root)",
            ) from None
    else:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            raise UsageError(f"there is no user {name}", "give the name of a user to --user") from None
    return User(entry.pw_uid, entry.pw_gid, entry.pw_name, entry.pw_dir)


_HOW = "check its name and path; refleak --help shows examples"


def find_command(command: str) -> str:
    """Return the path of a command as a shell would find it; raises NoSuchTarget or NotPermitted.

    As it was typed: a script sees it as its own name, and a path without a slash is something else to the loader.
    """
    candidates = [command] if "/" in command else [
        f"{directory or '.'}/{command}" for directory in os.environ.get("PATH", os.defpath).split(":")
    ]
    files = [path for path in candidates if _is_file(Path(path))]
    for path in files:
        if os.access(path, os.X_OK):
            return path
    if files:
        raise NotPermitted(f"{files[0]} is not executable", f"chmod +x {files[0]}")
    if "/" in command and Path(command).is_dir():
        raise NoSuchTarget(f"{command} is a directory, and no command", _HOW)
    raise NoSuchTarget(f"there is no command {command}", _HOW)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder of PATH that is closed to this user, or a name too long: a shell passes over it
        return False


@dataclass(frozen=True)
class Streams:
    """File descriptors that the target gets as its standard input, output and error, in a session of its own."""

    stdin: int
    stdout: int
    stderr: int


class Launched:
    """A child that waits to become the target."""

    def __init__(self, pid: int, go: int, failure: int, command: Sequence[str]) -> None:
        self.pid, self.command = pid, tuple(command)
        self._go, self._failure = go, failure
        self._status: int | None = None
        self.is_held = True
        """Whether it is not the target yet, and was not told to become it."""

    def release(self, variables: Mapping[str, str] = _NOTHING) -> None:
        """Let it exec, with these variables besides; raises NoSuchTarget if that fails."""
        self.is_held = False
        with suppress(BrokenPipeError):  # it has ended, and told why
            os.write(self._go, _GO + json.dumps(dict(variables)).encode())
        told = os.read(self._failure, 4)
        self._close()
        if told:
            self.wait()
            number = struct.unpack("<i", told)[0]
            raise NoSuchTarget(f"cannot run {self.command[0]}: {os.strerror(number)}")

    def abandon(self) -> None:
        """End it before it became the target; once it has, it runs on."""
        if self.is_held:
            self.is_held = False
            self._close()
            self.wait()

    def _close(self) -> None:
        os.close(self._go)
        os.close(self._failure)

    def poll(self) -> int | None:
        """Return the wait status if it has ended, without waiting.

        That a thread of it stands, for its memory to be read, is left to be told to who stopped it.
        """
        if self._status is None:
            seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None and seen.si_code in _ENDED:
                self._status = os.waitpid(self.pid, 0)[1]
        return self._status

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitpid(self.pid, 0)[1]
        return self._status


def launch(command: Sequence[str], user: User | None, streams: Streams | None = None) -> Launched:
    """Fork a child that execs `command` once it is released.

    It keeps everything but, under sudo, the user, and with `streams` the terminal.
    """
    path = find_command(command[0])
    go_read, go_write = os.pipe()
    failure_read, failure_write = os.pipe()
    with signals_later() as blocked:  # the child must not handle one as refleak does
        pid = os.fork()
        if pid == 0:
            try:
                os.close(go_write)
                os.close(failure_read)
                if streams is not None:
                    _leave_terminal(streams)
                _become_target(path, command, user, go_read, blocked)
            except OSError as error:
                os.write(failure_write, struct.pack("<i", error.errno or 1))
            finally:
                os._exit(127)
    os.close(go_read)
    os.close(failure_write)
    return Launched(pid, go_write, failure_read, command)


def _leave_terminal(streams: Streams) -> None:
    os.setsid()
    for fd, given in enumerate((streams.stdin, streams.stdout, streams.stderr)):
        os.dup2(given, fd)


def _ignored_at_start(mask: str) -> set[signal.Signals]:
    """Return which of Python's own signals were ignored when refleak was started: by the mask that the launcher found
    (SigIgn of proc(5)), or else as far as the interpreter lets it show."""
    try:
        bits = int(mask, 16)
    except ValueError:
        return {signal.SIGINT} if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else set()
    return {number for number in _SIGNALS_OF_PYTHON if bits >> (number - 1) & 1}


def callers_environment() -> dict[str, str]:
    """Return the environment of whoever started refleak: without what the launcher's shell and Python did to it."""
    environment = dict(os.environ)
    with suppress(OSError):
        _put_back(environment, Path("/proc/self/environ").read_bytes(), (_OF_PYTHON,))
    if (found := environment.pop(_VARIABLES, None)) is not None:
        with suppress(binascii.Error):
            _put_back(environment, binascii.a2b_base64(found), _OF_SHELLS)
    return environment


def _put_back(environment: dict[str, str], block: bytes, names: Sequence[str]) -> None:
    """Give variables the values that they have in `block`, an environment as the kernel keeps it, or none."""
    before = variables_in(block, names)
    for name in names:
        if name in before:
            environment[name] = before[name]
        else:
            environment.pop(name, None)


def _become_target(path: str, command: Sequence[str], user: User | None, go: int, blocked: set[int]) -> None:
    restore_limit()
    environment = callers_environment()
    ignored = _ignored_at_start(environment.pop(_IGNORED, ""))
    for number in _SIGNALS_OF_PYTHON:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    if user is not None:
        os.initgroups(user.name, user.gid)
        os.setgid(user.gid)
        os.setuid(user.uid)
        environment.update(HOME=user.home, USER=user.name, LOGNAME=user.name)
    told = os.read(go, _MOST_BYTES)
    if told.startswith(_GO):
        os.execve(path, list(command), environment | json.loads(told.removeprefix(_GO)))
