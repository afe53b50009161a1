"""Hooks: an audit log of every tool call, a guard against one of them, and context for every prompt."""

import asyncio
import json
import os
import time
from typing import Any

from qwen_agent_sdk import AsyncClient, HookContext, HookResult, hook


@hook("PreToolUse")
async def audit(given: dict[str, Any], context: HookContext) -> None:
    record = {
        "at": time.time(),
        "session": context.session_id,
        "tool": given["tool_name"],
        "input": given["tool_input"],
    }
    with open("audit.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


@hook("PreToolUse", matcher="run_shell_command", on_failure="block")
async def guard(given: dict[str, Any], context: HookContext) -> HookResult | None:
    if "rm -rf" in given["tool_input"].get("command", ""):
        return HookResult.block("deleting directories is not allowed here")
    return None


@hook("UserPromptSubmit")
async def house_rules(given: dict[str, Any], context: HookContext) -> HookResult:
    return HookResult.add_context("House rule: answer in one sentence.")


async def main() -> None:
    options = {
        "model": os.environ.get("EXAMPLE_MODEL", "demo"),
        "permission_mode": "yolo",
    }
    async with AsyncClient(hooks=[audit, guard, house_rules], **options) as client:
        print((await client.ask("Clean up the build directory")).summary)


if __name__ == "__main__":
    asyncio.run(main())
