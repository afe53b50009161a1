"""MCP servers that live in this process and are reached by `mcp_message`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from ...tools import SdkMcpServer, SdkMcpTool, ToolError
from ..log import SessionLogger
from ..runtime import Runtime
from .callbacks import call, log_exception

__all__ = ["HostedServer", "ToolSpan", "host_server"]

JsonObject = dict[str, Any]
ToolSpan = Callable[[str, Mapping[str, Any], Callable[[], Awaitable[JsonObject]]], Awaitable[JsonObject]]
"""Runs a tool call inside a span: name, `_meta` of the request, the work."""

_LATEST_REVISION = "2025-06-18"
_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603


class HostedServer(Protocol):
    """Answers JSON-RPC messages."""

    async def handle(self, message: JsonObject) -> JsonObject | None:
        """The answer to a request; None for a notification."""
        ...

    async def close(self) -> None: ...


def host_server(server: SdkMcpServer, runtime: Runtime, span: ToolSpan, log: SessionLogger) -> HostedServer:
    """Makes a server answer: our own, or a server object of the `mcp` package."""
    if server.instance is None:
        return _ToolServer(server, runtime, span, log)
    from .mcp_bridge import BridgedServer

    return BridgedServer(server.instance, runtime)


class _ToolServer:
    """The part of MCP that tools need. The calls of one message run beside each other, each in its own task."""

    def __init__(self, server: SdkMcpServer, runtime: Runtime, span: ToolSpan, log: SessionLogger) -> None:
        self._log = log
        self._server = server
        self._runtime = runtime
        self._span = span
        self._tools = {tool.name: tool for tool in server.tools}

    async def handle(self, message: JsonObject) -> JsonObject | None:
        method = message.get("method")
        if "id" not in message:
            return None
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        try:
            if method == "initialize":
                result = self._initialize(params)
            elif method == "ping":
                result = {}
            elif method == "tools/list":
                result = {"tools": [_describe(tool) for tool in self._tools.values()]}
            elif method == "tools/call":
                result = await self._call(params)
            else:
                return _error(message, _METHOD_NOT_FOUND, f"there is no method {method!r}")
        except _UnknownToolError as error:
            return _error(message, _INVALID_PARAMS, str(error))
        except Exception as error:
            log_exception(self._log, "mcp_server_failed", error, server=self._server.name)
            return _error(message, _INTERNAL_ERROR, "the server failed; the host's log has the exception")
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _initialize(self, params: JsonObject) -> JsonObject:
        return {
            "protocolVersion": params.get("protocolVersion", _LATEST_REVISION),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self._server.name, "version": self._server.version},
        }

    async def _call(self, params: JsonObject) -> JsonObject:
        name = params.get("name")
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise _UnknownToolError(f"the server {self._server.name!r} has no tool {name!r}")
        arguments = params.get("arguments")
        arguments = arguments if isinstance(arguments, dict) else {}
        meta = params.get("_meta")

        async def run() -> JsonObject:
            try:
                return _result(await _invoke(self._runtime, tool, arguments))
            except ToolError as error:
                return _failed(str(error))
            except Exception as error:
                log_exception(self._log, "tool_failed", error, server=self._server.name, tool=tool.name)
                return _failed(f"The tool {tool.name} failed. Its program has logged why.")

        return await self._span(tool.name, meta if isinstance(meta, dict) else {}, run)

    async def close(self) -> None:
        return None


class _UnknownToolError(Exception):
    pass


async def _invoke(runtime: Runtime, tool: SdkMcpTool, arguments: JsonObject) -> Any:
    if tool.takes_arguments_object:
        return await call(runtime, tool.handler, arguments)
    import functools
    import inspect

    from pydantic import ConfigDict, ValidationError, validate_call

    has_begun = False

    @functools.wraps(tool.handler)
    def begin(**validated: Any) -> Any:
        nonlocal has_begun
        has_begun = True
        return tool.handler(**validated)

    validated = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(begin)
    try:
        if inspect.iscoroutinefunction(tool.handler):
            return await validated(**arguments)
        return await call(runtime, lambda: validated(**arguments))
    except ValidationError as error:
        if has_begun:
            raise
        # The arguments are the model's: it is told what is wrong with them. What the function raises is the host's.
        raise ToolError(f"The arguments do not fit: {error}") from error


def _describe(tool: SdkMcpTool) -> JsonObject:
    described: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
    }
    if tool.annotations:
        described["annotations"] = dict(tool.annotations)
    return described


def _result(value: Any) -> JsonObject:
    """What a function returned, as an MCP result."""
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        return value
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else _json_text(value)}]}


def _failed(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _json_text(value: Any) -> str:
    """A value as JSON; models, dataclasses, dates and the like as pydantic writes them."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        from pydantic_core import to_json

        return to_json(value, fallback=str).decode()


def _error(message: JsonObject, code: int, text: str) -> JsonObject:
    return {"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}}
