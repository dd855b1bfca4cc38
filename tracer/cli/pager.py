"""The pager that what is longer than the terminal goes through."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_USUAL = "less"
_OF_LESS = {"LESS": "FRX"}
"""Shows colours, ends at once where all fits, leaves the text on the screen; as git has it."""
_COLOURS = "-R "
"""Before a user's own options, which may say otherwise: without it less shows colours as `ESC[1m`."""


@contextmanager
def paged(stream: TextIO) -> Iterator[TextIO]:
    """Give a stream to write a whole text to. It goes to `stream`, through $PAGER where that is a terminal and shorter.

    An empty $PAGER, and one that cannot be run, stands for none.
    """
    if not stream.isatty():
        yield stream
        return
    held = _Held(io.BytesIO(), stream.encoding or "utf-8", "backslashreplace", newline="\n", write_through=True)
    yield held
    text = held.whole()
    pager = shlex.split(os.environ.get("PAGER", _USUAL))
    if not pager or text.count(b"\n") < shutil.get_terminal_size().lines or not _show(pager, text):
        stream.flush()
        stream.buffer.write(text)
        stream.flush()


class _Held(io.TextIOWrapper):
    """A text that is to be written to a terminal."""

    def isatty(self) -> bool:
        return True

    def whole(self) -> bytes:
        buffer = self.detach()
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue()


def _show(pager: list[str], text: bytes) -> bool:
    """Return whether the pager could be run. Ctrl-C is the pager's while it runs."""
    variables = {**_OF_LESS, **os.environ, **({"LESSSECURE": "1"} if os.geteuid() == 0 else {})}
    if "LESS" in os.environ:
        variables["LESS"] = _COLOURS + os.environ["LESS"]
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with subprocess.Popen(pager, stdin=subprocess.PIPE, env=variables) as process:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(text)
                process.stdin.close()
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
