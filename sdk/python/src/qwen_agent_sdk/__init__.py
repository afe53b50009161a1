"""An SDK for the `qwen` coding agent.

from qwen_agent_sdk import Client

with Client(model="qwen3-coder-plus") as client:
    print(client.chat(task="Explain main.py", workspace="/repos/demo").summary)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__
from .clients.asynchronous import AsyncClient, Prompt, QwenSDKClient
from .clients.pool import WorkerPool
from .clients.query import QueryStream, query
from .errors import (
    BinaryNotFoundError,
    ControlRequestError,
    HandshakeError,
    NotConnectedError,
    ProcessError,
    PromptRejectedError,
    ProtocolVersionError,
    QwenSDKError,
    SessionNotFoundError,
    StructuredOutputError,
    TimeoutExpiredError,
    WorkerCrashedError,
)
from .events import (
    AgentUsage,
    AssistantChunk,
    AssistantMessage,
    CancelResult,
    CommandHint,
    CommandResult,
    ControlCancel,
    ControlRequest,
    ControlResponse,
    ErrorMessage,
    Event,
    FatalErrorMessage,
    Heartbeat,
    MalformedLine,
    Message,
    PermissionDenial,
    ResultMessage,
    SessionEvent,
    SessionStarted,
    TerminalOutput,
    Thought,
    ToolCall,
    ToolCallReader,
    ToolDisplay,
    UnknownEvent,
    Usage,
    parse_line,
    parse_stream,
)
from .hooks import HookContext, HookMatcher, HookResult, hook
from .options import (
    AgentDefinition,
    Limits,
    QwenAgentOptions,
    QwenClientOptions,
    SettingsProfile,
    Timeouts,
    WorkerPoolOptions,
)
from .permissions import PermissionResult, PermissionUpdate, ToolPermissionContext
from .session_store import DirectorySessionStore, InMemorySessionStore, SessionStore
from .tools import SdkMcpServer, SdkMcpTool, ToolError, create_sdk_mcp_server, tool
from .transport.binary import find_binary
from .transport.stdio import ExitStatus, StdIOSubprocessTransport, Transport

if TYPE_CHECKING:
    from .clients.synchronous import Client, QwenClient

__all__ = [
    "AgentDefinition",
    "AgentUsage",
    "AssistantChunk",
    "AssistantMessage",
    "AsyncClient",
    "BinaryNotFoundError",
    "CancelResult",
    "Client",
    "CommandHint",
    "CommandResult",
    "ControlCancel",
    "ControlRequest",
    "ControlRequestError",
    "ControlResponse",
    "DirectorySessionStore",
    "ErrorMessage",
    "Event",
    "ExitStatus",
    "FatalErrorMessage",
    "HandshakeError",
    "Heartbeat",
    "HookContext",
    "HookMatcher",
    "HookResult",
    "InMemorySessionStore",
    "Limits",
    "MalformedLine",
    "Message",
    "NotConnectedError",
    "PermissionDenial",
    "PermissionResult",
    "PermissionUpdate",
    "ProcessError",
    "Prompt",
    "PromptRejectedError",
    "ProtocolVersionError",
    "QueryStream",
    "QwenAgentOptions",
    "QwenClient",
    "QwenClientOptions",
    "QwenSDKClient",
    "QwenSDKError",
    "ResultMessage",
    "SdkMcpServer",
    "SdkMcpTool",
    "SessionEvent",
    "SessionNotFoundError",
    "SessionStarted",
    "SessionStore",
    "SettingsProfile",
    "StdIOSubprocessTransport",
    "StructuredOutputError",
    "TerminalOutput",
    "Thought",
    "TimeoutExpiredError",
    "Timeouts",
    "ToolCall",
    "ToolCallReader",
    "ToolDisplay",
    "ToolError",
    "ToolPermissionContext",
    "Transport",
    "UnknownEvent",
    "Usage",
    "WorkerCrashedError",
    "WorkerPool",
    "WorkerPoolOptions",
    "__version__",
    "create_sdk_mcp_server",
    "find_binary",
    "hook",
    "parse_line",
    "parse_stream",
    "query",
    "tool",
]

# Loaded when they are first used: most programs need neither, and a cold query() should be fast.
_LAZY = {"Client": "clients.synchronous", "QwenClient": "clients.synchronous"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
