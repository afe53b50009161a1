"""Functions of this program as tools of the agent, streamed, with a permission callback."""

import asyncio
import os
from typing import Any

from qwen_agent_sdk import (
    AssistantChunk,
    PermissionResult,
    ResultMessage,
    ToolDisplay,
    ToolError,
    ToolPermissionContext,
    create_sdk_mcp_server,
    query,
    tool,
)


@tool
async def add(a: float, b: float) -> float:
    """Adds two numbers."""
    return a + b


@tool
async def divide(a: float, b: float) -> float:
    """Divides a by b."""
    if b == 0:
        raise ToolError("division by zero")  # the model reads the text of a ToolError, and of no other exception
    return a / b


async def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    if name.startswith("mcp__calculator__"):
        return PermissionResult.allow()
    return PermissionResult.deny("only the calculator may be used here")


async def main() -> None:
    async for message in query(
        "What is (19 + 23) / 2? Use the calculator.",
        model=os.environ.get("EXAMPLE_MODEL", "demo"),
        mcp_servers={"calculator": create_sdk_mcp_server("calculator", tools=[add, divide])},
        can_use_tool=can_use_tool,
        include_partial_messages=True,
    ):
        if isinstance(message, AssistantChunk):
            print(message.text, end="", flush=True)
        elif isinstance(message, ToolDisplay) and message.status in (
            "success",
            "error",
        ):
            print(f"[{message.tool_name}: {message.status}]")
        elif isinstance(message, ResultMessage):
            print(f"\n{message.outcome}, {message.tool_call_count} tool calls")


if __name__ == "__main__":
    asyncio.run(main())
