"""Chromium without a window, driven over a pipe by its DevTools protocol.

Source: chromedevtools.github.io/devtools-protocol; with --remote-debugging-pipe, file descriptors 3 and 4 carry JSON
messages that end with a zero byte.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser (Debian: chromium)")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "--window-size=1300,1000",
)  # fmt: skip
_PATIENCE_S = 60
Json = dict[str, Any]


class Page:
    """One page; what it asked the network for and what its scripts said are kept."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in, self._buffer, self._number = to_browser, from_browser, b"", 0
        self._session: str | None = None
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> Json:
        self._number += 1
        message: Json = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return dict(reply["result"])

    def _receive(self) -> Json:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], _PATIENCE_S)
            assert ready, "the browser does not answer"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser ended"
            self._buffer += chunk
        head, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(head)
        self._note(message.get("method"), message.get("params", {}))
        return dict(message)

    def _note(self, method: str | None, parameters: Json) -> None:
        if method == "Network.requestWillBeSent":
            self.requested.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method in ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"):
            self.complaints.append(json.dumps(parameters))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(json.dumps(parameters["args"]))

    def open(self, path: Path) -> None:
        self._loaded = False
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._receive()

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        reply = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """Start a browser with a profile of its own, and end it."""
    assert CHROMIUM is not None
    down, up = os.pipe(), os.pipe()
    child_in, child_out = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (down[0], up[1]))
    command = [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{child_in} 4>&{child_out}', "browser", *command],
        pass_fds=(child_in, child_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for fd in (child_in, child_out, down[0], up[1]):
        os.close(fd)
    try:
        yield Page(down[1], up[0])
    finally:
        os.close(down[1])  # it ends when nobody can talk to it any more
        os.close(up[0])
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
