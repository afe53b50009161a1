"""Servers of the `mcp` package inside this process. Imported only when one is used: the package is slow to load."""

from __future__ import annotations

from typing import Any

from ..runtime import Runtime, TaskHandle, Waiter

__all__ = ["BridgedServer"]

JsonObject = dict[str, Any]


class BridgedServer:
    """Runs a server (`mcp.server.Server`, or a `FastMCP`/`MCPServer` around one) on streams in memory."""

    def __init__(self, instance: Any, runtime: Runtime) -> None:
        # The high-level servers wrap a low-level one.
        self._server = getattr(instance, "_mcp_server", None) or getattr(instance, "_lowlevel_server", instance)
        self._runtime = runtime
        self._task: TaskHandle | None = None
        self._to_server: Any = None
        self._waiting: dict[Any, tuple[Waiter, list[JsonObject]]] = {}
        self._failure: BaseException | None = None

    async def _start(self) -> None:
        import anyio

        self._to_server, server_reads = anyio.create_memory_object_stream[Any](64)
        server_writes, from_server = anyio.create_memory_object_stream[Any](64)

        async def serve() -> None:
            try:
                options = self._server.create_initialization_options()
                async with anyio.create_task_group() as group:
                    group.start_soon(self._read, from_server)
                    await self._server.run(server_reads, server_writes, options)
                    group.cancel_scope.cancel()
            except Exception as error:
                self._failure = error
            finally:
                for done, _ in self._waiting.values():
                    done.set()

        self._task = self._runtime.spawn(serve, "qwen-mcp")

    async def _read(self, from_server: Any) -> None:
        async for message in from_server:
            answer = message.message.model_dump(by_alias=True, mode="json", exclude_none=True)
            waiting = self._waiting.get(answer.get("id"))
            if waiting is not None:
                waiting[1].append(answer)
                waiting[0].set()

    async def handle(self, message: JsonObject) -> JsonObject | None:
        """Passes a message on and waits for the answer to a request."""
        if self._task is None:
            await self._start()
        parsed = _parse(message)
        if "id" not in message:
            await self._to_server.send(parsed)
            return None
        done = self._runtime.waiter()
        answers: list[JsonObject] = []
        self._waiting[message["id"]] = (done, answers)
        try:
            await self._to_server.send(parsed)
            await done.wait()
        finally:
            self._waiting.pop(message["id"], None)
        if answers:
            return answers[0]
        text = f"the server ended: {self._failure}" if self._failure else "the server ended"
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": text}}

    async def close(self) -> None:
        """Ends the server."""
        if self._task is not None:
            self._task.cancel()


def _parse(message: JsonObject) -> Any:
    from mcp import types
    from mcp.shared.message import SessionMessage

    # The name of the union's validator differs between the major versions of the package.
    adapter: Any = getattr(types, "jsonrpc_message_adapter", None)
    if adapter is not None:
        return SessionMessage(adapter.validate_python(message))
    union: Any = types.JSONRPCMessage
    return SessionMessage(union.model_validate(message))
