"""Lines for a reader that is slower than its session, while other sessions share the hub's pipe."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from ...errors import QwenSDKError
from ...events import Event, parse_line
from ..runtime import Runtime

if TYPE_CHECKING:
    from .connection import SessionReceiver

__all__ = ["Spill"]


class Spill:
    """A temporary file that holds lines until the reader has room, in their order."""

    def __init__(self, session: SessionReceiver, runtime: Runtime) -> None:
        self._session = session
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", prefix="qwen-sdk-")  # noqa: SIM115
        self._waiting = 0
        self._failure: list[QwenSDKError | None] = []
        self._runtime = runtime
        self._task = runtime.spawn(self._bring_back, "qwen-spill")

    def put(self, event: Event, line: str) -> None:
        """Puts a line aside. Lines of the control channel pass: a callback must not wait for the reader."""
        if event.type.startswith("control_"):
            self._session.handle(event, len(line))
            return
        self._file.seek(0, os.SEEK_END)
        self._file.write(line + "\n")
        self._waiting += 1

    async def _bring_back(self) -> None:
        session, position = self._session, 0
        while True:
            while session.is_full():
                await session.room()
            if not self._waiting:
                break
            self._file.seek(position)
            for _ in range(min(self._waiting, 256)):
                line = self._file.readline()
                session.handle(parse_line(line.rstrip("\n")), len(line))
                self._waiting -= 1
            position = self._file.tell()
            session.flush()
            await self._runtime.checkpoint()
        self._file.close()
        session.spill = None
        for failure in self._failure:
            session.hub_ended(failure)

    def end(self, failure: QwenSDKError | None) -> None:
        """Reports the hub's end after the lines that wait."""
        self._failure.append(failure)

    def discard(self) -> None:
        """Drops what waits."""
        self._task.cancel()
        self._file.close()
