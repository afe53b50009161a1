"""Many sessions on a pool of workers: `qwen hub`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from .._internal.runtime import Runtime, current_runtime
from .._internal.worker.channel import Channel
from .._internal.worker.hub import HubChannel, HubConnection
from .._internal.worker.launch import Launch
from ..errors import NotConnectedError
from ..options import QwenAgentOptions, StrPath, Timeouts, WorkerPoolOptions

__all__ = ["WorkerPool"]


class WorkerPool:
    """A hub that any number of clients share.

        async with WorkerPool(WorkerPoolOptions(max_workers=4)) as pool:
            options = QwenAgentOptions(model="qwen3-coder-plus", worker_pool=pool)
            async with QwenSDKClient(options) as client:
                ...

    Each session still has a worker of its own while it works; the hub starts, reuses, checks and replaces workers, and lets
    prompts wait while all are busy. A hub writes one output format, so `include_partial_messages` is an option of the pool.
    """

    def __init__(
        self,
        pool: WorkerPoolOptions | Mapping[str, Any] | None = None,
        *,
        options: QwenAgentOptions | None = None,
        binary_path: StrPath | None = None,
        include_partial_messages: bool = False,
        env: Mapping[str, str] | None = None,
        stderr: Callable[[str], object] | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        base = options if options is not None else QwenAgentOptions()
        self._pool = WorkerPoolOptions(**pool) if isinstance(pool, Mapping) else pool or WorkerPoolOptions()
        self._binary_path = binary_path if binary_path is not None else base.binary_path
        self._chunks = include_partial_messages or base.include_partial_messages
        self._env = {**base.env, **(env or {})}
        self._stderr = stderr if stderr is not None else base.stderr_sink()
        self._timeouts = timeouts if timeouts is not None else base.timeouts
        self._connection: HubConnection | None = None

    async def open(self) -> WorkerPool:
        """Starts the hub. `async with` does this."""
        if self._connection is not None and not self._connection.is_closed:
            raise RuntimeError("the pool is open already")
        connection = HubConnection(current_runtime(), self._timeouts)
        await connection.open(self._binary_path, self._pool, self._chunks, self._env, self._stderr)
        self._connection = connection
        return self

    async def close(self, timeout: float | None = None) -> None:
        """Ends the hub with all its workers. Sessions that are open then end with an error."""
        if self._connection is not None:
            await self._connection.close(self._timeouts.close if timeout is None else timeout)

    async def status(self) -> Mapping[str, Any]:
        """What the hub says about its workers, queues and sessions."""
        return await self._opened().request({"subtype": "hub/status"}, self._timeouts.control)

    def channel(self, launch: Launch, runtime: Runtime) -> Channel:
        """The way of one session through the hub; for clients."""
        connection = self._opened()
        if not connection.is_in_current_loop():
            message = "the pool was opened in another event loop; open one in the loop that uses it"
            raise NotConnectedError(message, code="other_loop")
        if launch.options.include_partial_messages != self._chunks:
            words = ("with", "without") if self._chunks else ("without", "with")
            message = f"the pool was opened {words[0]} include_partial_messages, the session {words[1]}"
            raise ValueError(f"{message}; open a pool for each format")
        return HubChannel(connection, launch, runtime)

    def _opened(self) -> HubConnection:
        if self._connection is None or self._connection.is_closed:
            raise NotConnectedError("the pool is not open; use 'async with' or await open()")
        return self._connection

    async def __aenter__(self) -> WorkerPool:
        is_open = self._connection is not None and not self._connection.is_closed
        return self if is_open else await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.kill()
