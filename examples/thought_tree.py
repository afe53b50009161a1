"""A tree of thoughts, drawn while it grows."""

import asyncio
import os

from qwen_agent_sdk import ResultMessage, Thought, query


async def main() -> None:
    depth = 0
    async for message in query(
        os.environ.get("EXAMPLE_PROMPT", "4 9 10 13"),
        model=os.environ.get("EXAMPLE_MODEL", "oracle:game24"),
        agent="tot",
    ):
        if isinstance(message, Thought):
            if message.subject.startswith("Expanding"):
                depth += 1
            elif message.subject.startswith("Backtracking"):
                depth = max(0, depth - 1)
            print(f"{'│  ' * max(0, depth - 1)}├─ {message.subject}")
            for line in message.description.splitlines()[:3]:
                print(f"{'│  ' * depth}   {line}")
        if isinstance(message, ResultMessage):
            print("└─", message.summary)


if __name__ == "__main__":
    asyncio.run(main())
