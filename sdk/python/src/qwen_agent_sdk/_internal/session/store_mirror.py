"""Copies a session between a store of the host's and the worker's private directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from ...session_store import SessionStore
from ..lock import TaskLock
from ..log import SessionLogger
from ..runtime import Runtime

__all__ = ["StoreMirror"]


class StoreMirror:
    """One session in a store. The worker gets a private `QWEN_HOME`; what it appends to its log goes to the store."""

    def __init__(self, store: SessionStore, log: SessionLogger, runtime: Runtime) -> None:
        self._store = store
        self._log = log
        self._copying = TaskLock(runtime)
        self._home = tempfile.mkdtemp(prefix="qwen-sdk-home-")
        self._offsets: dict[str, int] = {}

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """The variables that point the worker at the private copy and leave the user's settings where they are."""
        home = base.get("QWEN_HOME") or str(Path(base.get("HOME", "~")).expanduser() / ".qwen")
        variables = {"QWEN_HOME": self._home}
        variables["QWEN_CODE_USER_SETTINGS_PATH"] = base.get(
            "QWEN_CODE_USER_SETTINGS_PATH", os.path.join(home, "settings.json")
        )
        return variables

    def _path(self, session_id: str) -> Path:
        return Path(self._home) / "sessions" / f"{session_id}.jsonl"

    async def fetch(self, session_id: str) -> None:
        """Brings a session from the store; a session that is not there stays unknown to the worker."""
        data = await self._store.load(session_id)
        if data is None:
            return
        path = self._path(session_id)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(path, "wb", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write(data)
        self._offsets[session_id] = len(data)

    async def copy(self, session_id: str) -> None:
        """Sends whole lines that are new to the store. A store that fails is tried again with the next turn."""
        async with self._copying:
            try:
                offset = self._offsets.get(session_id, 0)
                with open(self._path(session_id), "rb") as file:
                    file.seek(offset)
                    data = file.read()
                data = data[: data.rfind(b"\n") + 1]
                if data:
                    await self._store.append(session_id, offset, data)
                    self._offsets[session_id] = offset + len(data)
            except FileNotFoundError:
                return
            except Exception as error:
                self._log("error", "session_store_failed", error=repr(error))

    def clean_up(self) -> None:
        """Removes the private copy."""
        shutil.rmtree(self._home, ignore_errors=True)
