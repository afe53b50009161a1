"""Driving the program through the Python Claude Agent SDK."""

import os
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)
from mock_model import text_of


def options(**chosen: Any) -> ClaudeAgentOptions:
    """Options that start the program under test."""
    return ClaudeAgentOptions(**{"cli_path": os.environ["QWEN_BIN"], **chosen})


async def run(prompt: Any, **chosen: Any) -> list[Message]:
    """All messages of one `query()`."""
    return [message async for message in query(prompt=prompt, options=options(**chosen))]


async def turn(client: ClaudeSDKClient, prompt: Any) -> list[Message]:
    """All messages of one turn of a client."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def user(content: Any) -> dict[str, Any]:
    """A line of the user."""
    return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}


async def stream(*lines: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """A prompt that comes line by line."""
    for line in lines:
        yield line


def result(messages: list[Message]) -> ResultMessage:
    """The one result, which comes last."""
    results = [m for m in messages if isinstance(m, ResultMessage)]
    assert len(results) == 1, messages
    assert messages[-1] is results[0]
    return results[0]


def init(messages: list[Message]) -> dict[str, Any]:
    """What the turn's opening line says."""
    return next(m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "init")


def blocks(messages: list[Message], kind: type) -> list[Any]:
    """All content blocks of a kind, in their order."""
    spoken = [m for m in messages if isinstance(m, AssistantMessage | UserMessage)]
    return [b for m in spoken if isinstance(m.content, list) for b in m.content if isinstance(b, kind)]


def text(messages: list[Message]) -> str:
    """What the assistant said."""
    said = [m for m in messages if isinstance(m, AssistantMessage)]
    return "".join(block.text for block in blocks(said, TextBlock))


def calls(messages: list[Message]) -> list[ToolUseBlock]:
    """The tool calls."""
    return blocks(messages, ToolUseBlock)


def tool_results(messages: list[Message]) -> list[ToolResultBlock]:
    """The tool results."""
    return blocks(messages, ToolResultBlock)


def said(block: ToolResultBlock) -> str:
    """The text of a tool result."""
    if isinstance(block.content, str):
        return block.content
    return "".join(part.get("text", "") for part in block.content or [])


def events(messages: list[Message]) -> list[dict[str, Any]]:
    """The pieces of a stream."""
    return [m.event for m in messages if isinstance(m, StreamEvent)]


def text_of_users(conversation: list[dict[str, Any]]) -> list[str]:
    """What user and assistant said to each other, as the model saw it."""
    return [text_of(m) for m in conversation if m["role"] in ("user", "assistant")]
