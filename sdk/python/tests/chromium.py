"""A headless Chromium over its debugging pipe: enough to open a page and to work with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any


def find_chromium() -> str | None:
    """The browser of this machine, if it has one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM_BIN") or next((path for name in names if (path := shutil.which(name))), None)


class Chromium:
    """A browser with one page, which ends with the block."""

    def __init__(self, browser: str, address: str, profile: Path) -> None:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += [f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # The browser reads commands from descriptor 3 and answers on descriptor 4.
        shell = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, browser, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._commands = os.fdopen(ours_out, "wb", buffering=0)
        self._answers = os.fdopen(ours_in, "rb")
        self._count = 0
        self._session: str | None = None
        self._pending = b""
        target = self._send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        self._send("Page.enable", {})
        self._send("Page.navigate", {"url": address})
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; promises are awaited."""
        params = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._send("Runtime.evaluate", params)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        command = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        self._commands.write(json.dumps(command).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            read = os.read(self._answers.fileno(), 65536)
            assert read, "the browser ended"
            self._pending += read
        line, self._pending = self._pending.split(b"\0", 1)
        return dict(json.loads(line))

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The browser's own children hold its pipes.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._commands.close()
        self._answers.close()
