"""The same script through the official Claude Agent SDK against this program and against the CLI in the SDK's package.

    tests/sdk/compare/compare.py QWEN_BIN > docs/contributing/claude-comparison.md

Run it with the Python of `target/sdk/python/venv` (tests/sdk/run makes it). Everything stays on this machine: the model is
scripted, and both programs get an empty home.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    ResultMessage,
    UserMessage,
)
from model import Reply, ScriptedModel, results_in

MODEL = "claude-sonnet-4-5"
NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
    {"id": "a", "cell_type": "code", "metadata": {}, "source": ["print(1)"], "outputs": [
        {"output_type": "stream", "name": "stdout", "text": ["1\n"]}], "execution_count": 1}]}


def calls(work: str) -> list[tuple[str, str, dict[str, Any]]]:
    """The script: a name for each call, the tool and its arguments."""
    return [
        ("write new", "Write", {"file_path": f"{work}/new.txt", "content": "one\ntwo\nthree\n"}),
        ("read", "Read", {"file_path": f"{work}/new.txt"}),
        ("edit", "Edit", {"file_path": f"{work}/new.txt", "old_string": "two", "new_string": "2"}),
        ("write unread", "Write", {"file_path": f"{work}/old.txt", "content": "x"}),
        ("glob", "Glob", {"pattern": "*.txt"}),
        ("grep content", "Grep", {"pattern": "t", "path": f"{work}/new.txt", "output_mode": "content", "-C": 1}),
        ("grep count", "Grep", {"pattern": "o", "output_mode": "count"}),
        ("grep files", "Grep", {"pattern": "one"}),
        ("bash cd", "Bash", {"command": "cd sub && touch made", "description": "Make a file"}),
        ("bash after cd", "Bash", {"command": "pwd"}),
        ("bash failing", "Bash", {"command": "ls /nowhere"}),
        ("read notebook", "Read", {"file_path": f"{work}/n.ipynb"}),
        ("read missing", "Read", {"file_path": f"{work}/missing.txt"}),
    ]


class Recorder:
    """What one program did, as a flat table."""

    def __init__(self, work: str) -> None:
        self.rows: dict[str, Any] = {}
        self.work = work

    def add(self, prefix: str, value: Any) -> None:
        """Adds a value, with a row for each leaf."""
        if isinstance(value, dict):
            for key, inner in value.items():
                self.add(f"{prefix}.{key}", inner)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for at, inner in enumerate(value):
                self.add(f"{prefix}[{at}]", inner)
        else:
            text = json.dumps(value).replace(self.work, "WORK")
            text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", text)
            self.rows[prefix] = "a number" if re.search(r"(duration|Duration)\w*$", prefix) else text


async def play(cli: str | None) -> dict[str, Any]:
    """Runs the scenarios against one program."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("COMPARE_DIR")) as place:
        work, home = f"{place}/work", f"{place}/home"
        for folder in (f"{work}/sub", home):
            os.makedirs(folder)
        Path(f"{work}/old.txt").write_text("old\n")
        Path(f"{work}/n.ipynb").write_text(json.dumps(NOTEBOOK))
        table = Recorder(os.path.realpath(work))
        steps = calls(os.path.realpath(work))

        def answer(body: dict[str, Any]) -> Reply:
            prompt = json.dumps(body["messages"])
            if not body.get("tools"):
                return ("{}", None, "end_turn")
            if "CUT-OFF" in prompt:
                return ("part ", None, "max_tokens")
            if "REFUSED" in prompt:
                return ("I", None, "refusal")
            if "SCRIPT" in prompt and "AGAIN" not in prompt:
                done = results_in(body)
                if done < len(steps):
                    name, tool, arguments = steps[done]
                    return (f"Step {name}.", {"name": tool, "input": arguments}, "tool_use")
            return ("done", None, "end_turn")

        model = ScriptedModel(answer)
        env = {"HOME": home, "QWEN_HOME": f"{home}/.qwen", "CLAUDE_CONFIG_DIR": f"{home}/.claude"}
        env |= {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-test", "DISABLE_AUTOUPDATER": "1"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

        async def allow(tool: str, arguments: dict[str, Any], context: Any) -> PermissionResultAllow:
            called = getattr(context, "tool_use_id", None) or "toolu_1"
            name = steps[int(called.split("_")[1]) // 2][0]
            suggestions = [s.to_dict() if hasattr(s, "to_dict") else str(s) for s in context.suggestions]
            table.add(f"permission request `{name}`.suggestions", suggestions)
            return PermissionResultAllow()

        async def after(given: Any, *_: Any) -> dict[str, Any]:
            name = steps[int(given["tool_use_id"].split("_")[1]) // 2][0]
            if f"hook `{name}`.tool_response" not in " ".join(table.rows):
                table.add(f"hook `{name}`.tool_response", given["tool_response"])
            return {}

        def options(**more: Any) -> ClaudeAgentOptions:
            hooks = {"PostToolUse": [HookMatcher(hooks=[after])]}
            chosen = {"cli_path": cli, "cwd": work, "env": env, "model": MODEL, "can_use_tool": allow, "hooks": hooks}
            return ClaudeAgentOptions(**{**chosen, **more})

        async def run(name: str, prompt: str, **more: Any) -> str | None:
            script = name == "script"
            async with ClaudeSDKClient(options(**more)) as client:
                await client.query(prompt)
                session = None
                async for message in client.receive_response():
                    if isinstance(message, UserMessage) and isinstance(message.content, list) and script:
                        for block in message.content:
                            called = getattr(block, "tool_use_id", None)
                            if called and re.fullmatch(r"toolu_\d+", called):
                                step = steps[int(called.split("_")[1]) // 2][0]
                                table.add(f"result `{step}`.is_error", bool(block.is_error))
                                table.add(f"message `{step}`.tool_use_result", message.tool_use_result)
                    if isinstance(message, ResultMessage):
                        session = message.session_id
                        for field in ("subtype", "is_error", "stop_reason", "num_turns", "total_cost_usd", "result"):
                            table.add(f"end `{name}`.{field}", getattr(message, field))
                        usage = message.usage or {}
                        for field in ("input_tokens", "output_tokens"):
                            table.add(f"end `{name}`.usage.{field}", usage.get(field))
                        for used in (message.model_usage or {}).values():
                            for field in ("inputTokens", "outputTokens", "costUSD", "contextWindow", "maxOutputTokens"):
                                table.add(f"end `{name}`.model_usage.{field}", used.get(field))
                return session

        session = await run("script", "SCRIPT")
        await run("resumed", "AGAIN", resume=session)
        await run("cut off", "CUT-OFF")
        await run("refused", "REFUSED")
        await run("budget", "SCRIPT", max_budget_usd=0.001)
        for model_name in ("claude-opus-4-6", "claude-opus-5-5", "claude-sonnet-5", MODEL, "claude-haiku-4-5"):
            for more, options_name in (({}, ""), ({"max_thinking_tokens": 5000}, ", 5,000 thinking tokens")):
                before = len(model.bodies)
                await run("", "AGAIN", model=model_name, **more)
                body = next(body for body in model.bodies[before:] if body.get("tools"))
                prefix = f"request `{model_name}{options_name}`"
                table.add(f"{prefix}.thinking", {k: v for k, v in body.get("thinking", {}).items()})
                table.add(f"{prefix}.max_tokens", body.get("max_tokens"))
                table.add(f"{prefix}.output_config", body.get("output_config"))
        model.close()
        return {row: value for row, value in table.rows.items() if not row.startswith("end ``")}


def report(ours: dict[str, Any], vendors: dict[str, Any]) -> None:
    """Prints the table."""
    rows = list(dict.fromkeys([*vendors, *ours]))
    equal = [row for row in rows if row in ours and ours[row] == vendors.get(row)]
    print("# The same script through Claude's SDK and two programs\n")
    print("`tests/sdk/compare/compare.py` drives this program and the CLI of the SDK's package with the same scripted model.")
    print("Values are equal in the fields of the last section. The reasons for differences are in")
    print("[the migration page](../migration.md#differences-from-claudes-cli-under-an-unchanged-host).\n")
    print("## Different\n\n| field | Claude's CLI | here |\n|---|---|---|")
    cell = lambda table, row: (shorten(table[row]) if row in table else "absent")  # noqa: E731
    for row in rows:
        if row not in equal:
            print(f"| {row} | {cell(vendors, row)} | {cell(ours, row)} |")
    print(f"\n## Equal ({len(equal)} fields)\n\n| field | value |\n|---|---|")
    for row in equal:
        print(f"| {row} | {shorten(ours[row])} |")


def shorten(text: str) -> str:
    """A value as a cell of a table."""
    text = text.replace("|", "\\|").replace("`", "'")
    return f"`{text if len(text) <= 90 else text[:87] + '…'}`"


async def main() -> None:
    """Compares."""
    vendors = await play(None)
    ours = await play(os.path.abspath(sys.argv[1]))
    report(ours, vendors)


asyncio.run(main())
