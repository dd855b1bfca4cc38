"""The user's terminal, taken over for a live view and given back on every way out.

A small process that is forked at the start outlives refleak: if that is killed, it gives the terminal back.
"""

from __future__ import annotations

import os
import select
import signal
import termios
from contextlib import suppress

from tracer.errors import UsageError

_ENTER, _LEAVE = b"\x1b[?1049h\x1b[?25l\x1b[2J", b"\x1b[0m\x1b[?25h\x1b[?1049l"
"""The alternate screen without a cursor, and back."""
_ENTERED, _LEFT = b"e", b"l"
_LOCAL_FLAGS = 3
_OTHERS_AFFAIR = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTTOU, signal.SIGTSTP, signal.SIGUSR1,
)  # fmt: skip
"""Signals that the guard must outlive to give the terminal back."""
_KEYS = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down",
    b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b"\x1b": "escape", b"\r": "enter", b"\n": "enter", b"\x03": "q", b"\x04": "q",
}  # fmt: skip


class Terminal:
    """Make one before anything that must not be inherited is opened."""

    def __init__(self) -> None:
        try:
            self._fd = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
            self._before = termios.tcgetattr(self._fd)
        except (OSError, termios.error):
            raise UsageError("the live view needs a terminal", "without one: refleak --interval 1 ...") from None
        self._is_taken = False
        self._guard = self._fork_guard()

    def _fork_guard(self) -> tuple[int, int]:
        """Return the guard's pid and where to write to it."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid:
            os.close(reading)
            return pid, writing
        try:
            os.close(writing)
            for number in _OTHERS_AFFAIR:
                signal.signal(number, signal.SIG_IGN)
            told = _LEFT
            while byte := os.read(reading, 1):
                told = byte
            if told == _ENTERED:
                self._give_back()
        finally:
            os._exit(0)

    def take(self) -> None:
        """Take it over. Keys are read one by one; none of them is a signal."""
        os.write(self._guard[1], _ENTERED)
        self._is_taken = True
        taken = termios.tcgetattr(self._fd)
        taken[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self._fd, termios.TCSADRAIN, taken)
        os.write(self._fd, _ENTER)

    def give_back(self) -> None:
        """Leave it as it was found; harmless if it was not taken."""
        if self._is_taken:
            self._give_back()
            self._is_taken = False

    def _give_back(self) -> None:
        with suppress(OSError, termios.error):
            os.write(self._fd, _LEAVE)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def close(self) -> None:
        """Give it back and let the guard go."""
        self.give_back()
        pid, writing = self._guard
        if pid:
            with suppress(OSError):
                os.write(writing, _LEFT)
            os.close(writing)
            os.waitpid(pid, 0)
            os.close(self._fd)
            self._guard = 0, -1

    def size(self) -> tuple[int, int]:
        """Return columns and lines; 80 and 24 where the terminal does not say."""
        try:
            columns, lines = os.get_terminal_size(self._fd)
        except OSError:
            columns, lines = 0, 0
        return columns or 80, lines or 24

    def show(self, screen: str) -> None:
        """Write a whole screen, line by line over what was there."""
        body = "\x1b[K\r\n".join(screen.split("\n"))
        rest = memoryview(f"\x1b[H{body}\x1b[K\x1b[J".encode(errors="replace"))
        with suppress(OSError):
            while rest:
                rest = rest[os.write(self._fd, rest) :]

    def keys(self) -> list[str]:
        """Return the names of the keys that were pressed since the last call; a terminal that hung up is a `q`."""
        if not select.select([self._fd], [], [], 0)[0]:
            return []
        try:
            typed = os.read(self._fd, 1024)
        except OSError:
            typed = b""
        return list(_named(typed)) if typed else ["q"]


def _named(typed: bytes) -> list[str]:
    names = []
    while typed:
        known = next((key for key in sorted(_KEYS, key=len, reverse=True) if typed.startswith(key)), typed[:1])
        names.append(_KEYS.get(known) or known.decode("ascii", "replace"))
        typed = typed[len(known) :]
    return names
