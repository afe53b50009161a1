"""Replays a recorded session: what the worker wrote, read again as events.

python examples/replay.py SESSION_ID
"""

import subprocess
import sys

from qwen_agent_sdk import (
    AssistantMessage,
    ResultMessage,
    ToolDisplay,
    find_binary,
    parse_stream,
)


def main(session_id: str) -> None:
    command = [find_binary(), "sessions", "replay", session_id, "--dialect", "qwen"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as replay:
        assert replay.stdout is not None
        for event in parse_stream(replay.stdout):
            if isinstance(event, AssistantMessage) and event.text:
                print("said:", event.text)
            elif isinstance(event, ToolDisplay) and event.status == "success":
                print("used:", event.tool_name)
            elif isinstance(event, ResultMessage):
                print(f"turn {event.prompt_id}: {event.status}: {event.summary}")


if __name__ == "__main__":
    main(sys.argv[1])
