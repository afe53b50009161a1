"""A chat in the terminal: /quit leaves, Ctrl-C stops the answer."""

import os

from qwen_agent_sdk import AssistantChunk, Client, ToolDisplay


def main() -> None:
    model = os.environ.get("EXAMPLE_MODEL", "demo")
    with Client(model=model, include_partial_messages=True, permission_mode="plan") as client:
        while True:
            try:
                prompt = input("> ").strip()
            except EOFError:
                return
            if prompt == "/quit":
                return
            if not prompt:
                continue
            try:
                for message in client.stream(prompt):
                    if isinstance(message, AssistantChunk):
                        print(message.text, end="", flush=True)
                    elif isinstance(message, ToolDisplay) and message.status == "executing":
                        print(f"[{message.tool_name}]", flush=True)
            except KeyboardInterrupt:
                print(" (stopped)")
            print()


if __name__ == "__main__":
    main()
