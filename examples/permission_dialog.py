"""A person decides about every change, with the diff on the screen."""

import os
from typing import Any

from qwen_agent_sdk import (
    Client,
    PermissionResult,
    PermissionUpdate,
    ToolPermissionContext,
)


def ask(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    """A plain function may block: it runs in a thread of its own."""
    shown = context.confirmation or {}
    print(f"\nThe agent wants to use {name}: {context.reason}")
    print(shown.get("diff") or shown.get("command") or arguments)
    answer = input("[y]es, [a]lways for edits, [n]o? ").strip().lower()
    if answer == "y":
        return PermissionResult.allow()
    if answer == "a":
        return PermissionResult.allow(updated_permissions=[PermissionUpdate("setMode", mode="auto-edit")])
    return PermissionResult.deny("the user said no")


def main() -> None:
    with Client(model=os.environ.get("EXAMPLE_MODEL", "demo"), can_use_tool=ask) as client:
        result = client.chat(task="Write a haiku about rivers to haiku.txt", workspace=".")
        print(result.summary)
        for denial in result.permission_denials:
            print(f"refused: {denial.tool_name} ({denial.reason})")


if __name__ == "__main__":
    main()
