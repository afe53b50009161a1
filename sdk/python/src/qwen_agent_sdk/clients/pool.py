"""The hub that one or several clients use."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from .._internal.hub.connection import HubConnection
from .._internal.runtime import current_runtime
from ..errors import NotConnectedError
from ..options import QwenAgentOptions, StrPath, Timeouts, WorkerPoolOptions
from ..transport.binary import find_binary
from ..transport.stdio import StdIOSubprocessTransport

__all__ = ["WorkerPool"]


class WorkerPool:
    """A `qwen hub` that any number of clients share.

        async with WorkerPool(WorkerPoolOptions(max_workers=4)) as pool:
            options = QwenAgentOptions(model="qwen3-coder-plus", worker_pool=pool)
            async with AsyncClient(options) as client:
                ...

    Each session has its own worker while it works; the hub starts, reuses, checks and replaces workers, and lets
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
        self._transport = base.transport
        self._binary_path = binary_path if binary_path is not None else base.binary_path
        self._chunks = include_partial_messages or base.include_partial_messages
        self._env = {**base.env, **(env or {})}
        self._stderr = stderr if stderr is not None else base.stderr_sink()
        self._timeouts = timeouts if timeouts is not None else base.timeouts
        self._connection: HubConnection | None = None
        self._config: str | None = None

    async def open(self) -> WorkerPool:
        """Starts the hub. `async with` does this."""
        await (await self.start()).greeting()
        return self

    async def start(self) -> HubConnection:
        """Starts the hub without waiting for its first line; for clients."""
        if self._connection is not None and not self._connection.is_closing:
            raise RuntimeError("the pool is open already")
        transport = self._transport
        if transport is None:
            environment = {**os.environ, **self._env}
            transport = StdIOSubprocessTransport(self._command(), env=environment, stderr=self._stderr)
        self._connection = HubConnection(current_runtime(), self._timeouts, transport)
        try:
            await self._connection.start()
        finally:
            if self._connection.is_closing:
                self._remove_config()
        return self._connection

    def _command(self) -> list[str]:
        timeouts = self._timeouts
        command = [find_binary(self._binary_path), "hub", "--dialect", "qwen"]
        command += ["--output-format", "stream-chunk-json" if self._chunks else "stream-json"]
        # Spare workers have no flags of a session and fit none of ours, so there are none unless they are asked for.
        configured = {"min_workers": 0, **self._pool.to_wire()}
        further = {"start_timeout": timeouts.start, "heartbeat_timeout": timeouts.heartbeat}
        further["heartbeat_interval"] = timeouts.heartbeat_interval
        defaults = Timeouts()
        changed = {name: value for name, value in further.items() if value != _DEFAULTS.get(name)}
        if timeouts == defaults or not changed:
            for name, value in configured.items():
                command += [f"--{name.replace('_', '-')}", str(value)]
            return command
        import tempfile

        handle, self._config = tempfile.mkstemp(prefix="qwen-sdk-hub-", suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"worker_pool": {**configured, **changed}}, file)
        return [*command, "--config", self._config]

    async def close(self, timeout: float | None = None) -> None:
        """Ends the hub with all its workers. Sessions that are open then end with an error."""
        if self._connection is not None:
            await self._connection.close(self._timeouts.close if timeout is None else timeout)
        self._remove_config()

    def kill(self) -> None:
        """Ends the hub at once, without waiting; callable from any thread."""
        if self._connection is not None:
            self._connection.kill()
        self._remove_config()

    @property
    def is_closed(self) -> bool:
        """True unless the hub runs."""
        return self._connection is None or self._connection.is_closing or self._connection.has_ended

    def _remove_config(self) -> None:
        if self._config is not None:
            os.unlink(self._config)
            self._config = None

    async def status(self) -> Mapping[str, Any]:
        """The state of the hub: workers, queues and sessions."""
        return await self._opened().request({"subtype": "hub/status"}, self._timeouts.control)

    def connection_for(self, options: QwenAgentOptions) -> HubConnection:
        """The way to the hub for a session; for clients."""
        connection = self._opened()
        if not connection.is_in_current_loop():
            message = "the pool was opened in another event loop; open one in the loop that uses it"
            raise NotConnectedError(message, code="other_loop")
        if options.include_partial_messages != self._chunks:
            words = ("with", "without") if self._chunks else ("without", "with")
            message = f"the pool was opened {words[0]} include_partial_messages, the session {words[1]}"
            raise ValueError(f"{message}; open a pool for each format")
        return connection

    def _opened(self) -> HubConnection:
        if self._connection is None or self._connection.is_closing:
            raise NotConnectedError("the pool is not open; use 'async with' or await open()")
        return self._connection

    async def __aenter__(self) -> WorkerPool:
        is_open = self._connection is not None and not self._connection.is_closing
        return self if is_open else await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:
            self.kill()


_DEFAULTS = {"start_timeout": 30.0, "heartbeat_timeout": 10.0, "heartbeat_interval": 2.0}
"""Time-outs of the SDK that need no configuration of the hub."""
