"""Sub-agents that this program defines, and their work as it happens."""

import asyncio
import os

from qwen_agent_sdk import AgentDefinition, ResultMessage, ToolDisplay, query

AGENTS = {
    "reader": AgentDefinition(
        description="Reads files and reports what is in them.",
        prompt="You read the files that you are asked about and report in one paragraph.",
        tools=["read_file", "list_directory", "grep_search"],
    ),
    "critic": AgentDefinition(
        description="Finds weak points.",
        prompt="You find weak points in a text.",
        tools=[],
    ),
}


async def main() -> None:
    async for message in query(
        "Let the reader look at README.md and the critic judge it.",
        model=os.environ.get("EXAMPLE_MODEL", "demo"),
        agents=AGENTS,
    ):
        display = message.result_display if isinstance(message, ToolDisplay) else None
        if display and display.get("kind") == "task_execution":
            print(
                f"[{display['agent']}] {display['status']}, {display['tool_calls']} calls, {display['tokens']} tokens"
            )
        if isinstance(message, ResultMessage):
            print(message.summary)


if __name__ == "__main__":
    asyncio.run(main())
