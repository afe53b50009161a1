"""Answers what the worker asks: permissions, hooks, messages for MCP servers in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...errors import TimeoutExpiredError
from ...events import ControlRequest
from ...hooks import HookContext, HookMatcher, HookResult
from ...options import QwenAgentOptions
from ...permissions import PermissionResult, ToolPermissionContext
from ...tools import SdkMcpServer
from ..log import SessionLogger
from ..runtime import Runtime, TaskHandle
from .callbacks import call, call_within, log_exception
from .mcp_server import HostedServer, ToolSpan, host_server

__all__ = ["ControlDispatcher"]

JsonObject = dict[str, Any]


class ControlDispatcher:
    """Runs the callbacks of a session, each question in a task of its own.

    Every question gets exactly one answer. An exception or a passed deadline is an error answer, which the worker takes as no.
    """

    def __init__(
        self,
        options: QwenAgentOptions,
        hooks: Mapping[str, list[HookMatcher]],
        runtime: Runtime,
        send: Callable[[JsonObject], Awaitable[None]],
        log: SessionLogger,
        span: ToolSpan,
    ) -> None:
        self._options = options
        self._runtime = runtime
        self._send = send
        self._log = log
        self._open: dict[str, TaskHandle] = {}
        self._hooks: dict[str, tuple[str, HookMatcher, int]] = {}
        self.hook_ids: dict[str, list[JsonObject]] = {}
        self._register_hooks(hooks)
        self._servers: dict[str, HostedServer] = {
            name: host_server(server, runtime, span, log)
            for name, server in options.mcp_servers.items()
            if isinstance(server, SdkMcpServer)
        }

    def _register_hooks(self, hooks: Mapping[str, list[HookMatcher]]) -> None:
        for event, matchers in hooks.items():
            for matcher in matchers:
                ids = []
                for index in range(len(matcher.hooks)):
                    ids.append(f"hook-{len(self._hooks)}")
                    self._hooks[ids[-1]] = (event, matcher, index)
                entry: JsonObject = {"hookCallbackIds": ids, "onFailure": matcher.on_failure}
                if matcher.matcher:
                    entry["matcher"] = matcher.matcher
                # The worker waits a little longer than we do, so that the reason is ours.
                entry["timeout"] = self._hook_seconds(matcher) + 5
                self.hook_ids.setdefault(event, []).append(entry)

    def _hook_seconds(self, matcher: HookMatcher) -> float:
        return matcher.timeout if matcher.timeout is not None else self._options.timeouts.callback

    def dispatch(self, request: ControlRequest) -> None:
        """Starts to answer a question."""
        request_id = request.request_id

        async def answer() -> None:
            try:
                response = await self._respond(request)
            finally:
                self._open.pop(request_id, None)
            with contextlib.suppress(Exception):
                await self._send(
                    {
                        "type": "control_response",
                        "request_id": request_id,
                        "session_id": request.session_id,
                        "response": response,
                    }
                )

        self._open[request_id] = self._runtime.spawn(answer, f"qwen-control-{request.subtype}")

    def withdraw(self, request_id: str) -> None:
        """The worker does not want an answer any more: the callback is cancelled."""
        task = self._open.pop(request_id, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Cancels the callbacks that still run, and ends the servers."""
        for request_id in list(self._open):
            self.withdraw(request_id)
        for server in self._servers.values():
            await server.close()

    async def _respond(self, request: ControlRequest) -> JsonObject:
        try:
            result = await self._handle_control_request(request)
        except TimeoutExpiredError as error:
            self._log("warning", "callback_timeout", subtype=request.subtype, error=str(error))
            return _failure(str(error))
        except Exception as error:
            # What the exception contains is the host's: the worker may show an answer to the model.
            log_exception(self._log, "callback_failed", error, subtype=request.subtype)
            return _failure(f"the host's {request.subtype} callback failed; its log has the exception")
        return {"subtype": "success", "result": result}

    async def _handle_control_request(self, request: ControlRequest) -> JsonObject:
        if request.subtype == "can_use_tool":
            return await self._permission(request)
        if request.subtype == "hook_callback":
            return await self._hook(request)
        if request.subtype == "mcp_message":
            return await self._mcp(request)
        raise LookupError(f"this SDK does not know the control request {request.subtype!r}")

    async def _permission(self, request: ControlRequest) -> JsonObject:
        callback = self._options.can_use_tool
        if callback is None:
            return PermissionResult.deny("the host registered no can_use_tool callback").to_wire()
        tool = _object(request.raw.get("tool"))
        metadata = _object(request.raw.get("metadata"))
        context = ToolPermissionContext(
            session_id=request.session_id or "",
            prompt_id=request.prompt_id,
            tool_call_id=metadata.get("tool_call_id"),
            reason=str(metadata.get("reason", "")),
            blocked_path=metadata.get("blocked_path"),
            agent_id=metadata.get("agent_id"),
            confirmation=metadata.get("confirmation"),
            raw=request.raw,
        )
        name, arguments = str(tool.get("name", "")), _object(tool.get("arguments"))

        async def ask() -> Any:
            return await call(self._runtime, callback, name, arguments, context)

        answer = await call_within(self._runtime, self._options.timeouts.callback, "can_use_tool callback", ask)
        if isinstance(answer, bool):
            answer = PermissionResult.allow() if answer else PermissionResult.deny()
        if not isinstance(answer, PermissionResult):
            raise TypeError(f"can_use_tool returned {answer!r}; it must return a PermissionResult or a bool")
        self._log("info", "permission", tool=name, behavior=answer.behavior, prompt_id=request.prompt_id)
        return answer.to_wire()

    async def _hook(self, request: ControlRequest) -> JsonObject:
        callback_id = str(request.raw.get("callback_id", ""))
        if callback_id not in self._hooks:
            raise LookupError(f"there is no hook {callback_id!r}")
        event, matcher, index = self._hooks[callback_id]
        given = _object(request.raw.get("input"))
        context = HookContext(request.session_id or "", request.prompt_id, request.raw.get("tool_use_id"))

        async def run() -> Any:
            return await call(self._runtime, matcher.hooks[index], given, context)

        answer = await call_within(self._runtime, self._hook_seconds(matcher), f"{event} hook", run)
        if answer is None:
            return {}
        if isinstance(answer, HookResult):
            return answer.to_wire(event)
        if isinstance(answer, Mapping):
            return dict(answer)
        raise TypeError(f"the {event} hook returned {answer!r}; it must return a HookResult, a mapping or None")

    async def _mcp(self, request: ControlRequest) -> JsonObject:
        name = str(request.raw.get("server_name", ""))
        message = _object(request.raw.get("message"))
        server = self._servers.get(name)
        if server is None:
            raise LookupError(f"there is no MCP server {name!r} in this process")

        async def handle() -> JsonObject | None:
            return await server.handle(message)

        seconds = self._options.timeouts.tool
        answer = await call_within(self._runtime, seconds, f"MCP server {name!r}", handle)
        # A notification wants no answer, but every control request gets one.
        return {"mcp_response": answer if answer is not None else {"jsonrpc": "2.0", "result": {}, "id": 0}}


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _failure(message: str) -> JsonObject:
    return {"subtype": "error", "error": {"message": message, "retryable": False}}
