"""Keeping sessions somewhere else than on the local disk."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable

__all__ = ["DirectorySessionStore", "InMemorySessionStore", "SessionStore"]


@runtime_checkable
class SessionStore(Protocol):
    """Keeps session logs: append-only bytes by session id, for example in a database or an object store.

    With a store the worker works on a private copy that is removed when the session is closed.
    """

    async def load(self, session_id: str) -> bytes | None:
        """The whole log, or None if there is no such session."""
        ...

    async def append(self, session_id: str, offset: int, data: bytes) -> None:
        """Adds whole lines at `offset`, which is where the log ended before; called after every turn and at the end."""
        ...


class InMemorySessionStore:
    """Keeps sessions as long as this object lives."""

    def __init__(self) -> None:
        self.logs: dict[str, bytes] = {}

    async def load(self, session_id: str) -> bytes | None:
        return self.logs.get(session_id)

    async def append(self, session_id: str, offset: int, data: bytes) -> None:
        self.logs[session_id] = self.logs.get(session_id, b"")[:offset] + data


class DirectorySessionStore:
    """Keeps sessions as files of a directory, for example on a shared disk."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.fspath(directory)

    def _path(self, session_id: str) -> str:
        return os.path.join(self._directory, f"{session_id}.jsonl")

    async def load(self, session_id: str) -> bytes | None:
        try:
            with open(self._path(session_id), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    async def append(self, session_id: str, offset: int, data: bytes) -> None:
        os.makedirs(self._directory, exist_ok=True)
        with open(self._path(session_id), "ab") as file:
            file.truncate(offset)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
