"""What a worker says, line by line.

An event is a thin view of one line: `raw` is the line as a dict with every field, also those that this version does not know, and
properties read from it. Parsing never raises. `model()` gives the pydantic model of the line, generated from the JSON Schemas.
"""

from __future__ import annotations

from .base import AgentUsage, Event, PermissionDenial, ToolCall, Usage
from .control import ControlCancel, ControlRequest, ControlResponse
from .messages import (
    AssistantChunk,
    AssistantMessage,
    ErrorMessage,
    FatalErrorMessage,
    ResultMessage,
    SessionStarted,
)
from .parse import ToolCallReader, TurnReader, parse_line, parse_stream
from .records import (
    CancelResult,
    CommandHint,
    CommandResult,
    Heartbeat,
    MalformedLine,
    SessionEvent,
    TerminalOutput,
    Thought,
    ToolDisplay,
    UnknownEvent,
)

__all__ = [
    "AgentUsage",
    "AssistantChunk",
    "AssistantMessage",
    "CancelResult",
    "CommandHint",
    "CommandResult",
    "ControlCancel",
    "ControlRequest",
    "ControlResponse",
    "ErrorMessage",
    "Event",
    "FatalErrorMessage",
    "Heartbeat",
    "MalformedLine",
    "Message",
    "PermissionDenial",
    "ResultMessage",
    "SessionEvent",
    "SessionStarted",
    "TerminalOutput",
    "Thought",
    "ToolCall",
    "ToolCallReader",
    "ToolDisplay",
    "TurnReader",
    "UnknownEvent",
    "Usage",
    "parse_line",
    "parse_stream",
]

Message = Event
"""What `query()` yields."""
