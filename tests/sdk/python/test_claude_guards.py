"""Guards as the examples of Claude's Python SDK and its documentation write them. Each is written for Claude's names of
tools and arguments, and each fires: what it forbids does not happen, and the call beside it does."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from claude import calls, init, options, result, run, turn
from claude_agent_sdk import ClaudeSDKClient, HookMatcher, PermissionResultAllow, PermissionResultDeny
from mock_model import call, say

pytestmark = pytest.mark.anyio


def deny(reason):
    """What a hook answers to forbid a call."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


def allow(**more):
    """What a hook answers to let a call run without a question."""
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", **more}}


async def no_script(told, _id, _context):
    """Forbids commands that start a certain script, and looks at nothing but Bash."""
    if told["tool_name"] != "Bash":
        return {}
    return deny("that script is not to run") if "deploy.sh" in told["tool_input"].get("command", "") else {}


async def no_important_file(told, _id, _context):
    """Forbids one kind of file by the name of the tool and of its argument, and allows all else."""
    if told.get("tool_name") == "Write" and "important" in told.get("tool_input", {}).get("file_path", ""):
        return {"reason": "policy", "systemMessage": "blocked", **deny("important files stay as they are")}
    return {"reason": "reviewed", **allow()}


async def no_environment_file(told, _id, _context):
    """Protects `.env`, whichever tool writes it."""
    name = told["tool_input"].get("file_path", "").split("/")[-1]
    return deny("no changes to .env") if name == ".env" else {}


async def no_notebook(told, _id, _context):
    """Protects notebooks."""
    return deny("notebooks are read-only") if told["tool_input"].get("notebook_path") else {}


async def no_server(told, _id, _context):
    """Forbids every tool of every MCP server."""
    return deny("no servers") if told["tool_name"].startswith("mcp__") else {}


@dataclass
class Guarded:
    """A hook, a call that it forbids, and one that it lets through."""

    matcher: str | None
    hook: Any
    forbidden: tuple[str, dict[str, Any]]
    harmless: tuple[str, dict[str, Any]]
    chosen: dict[str, Any] = field(default_factory=dict)


TOUCH = ("Bash", {"command": "touch made"})
DEPLOY = ("Bash", {"command": "touch forbidden; ./deploy.sh --help"})

GUARDS = {
    "a command by its text": Guarded("Bash", no_script, DEPLOY, TOUCH, {"allowed_tools": ["Bash"]}),
    "a command in a list of matchers": Guarded("Bash|Write", no_script, DEPLOY, TOUCH, {"allowed_tools": ["Bash"]}),
    "a command without a matcher": Guarded(None, no_script, DEPLOY, TOUCH, {"permission_mode": "bypassPermissions"}),
    "a command by an expression": Guarded("^Ba.h$", no_script, DEPLOY, TOUCH, {"permission_mode": "bypassPermissions"}),
    "a file by the name of the tool": Guarded(
        "Write",
        no_important_file,
        ("Write", {"file_path": "important_forbidden", "content": "x"}),
        ("Write", {"file_path": "made", "content": "x"}),
    ),
    "a file by any tool that writes": Guarded(
        "Write|Edit|MultiEdit",
        no_environment_file,
        ("Edit", {"file_path": ".env", "old_string": "KEY", "new_string": "forbidden"}),
        ("Write", {"file_path": "made", "content": "x"}),
        {"permission_mode": "acceptEdits"},
    ),
    "a new file by any tool that writes": Guarded(
        "Write|Edit|MultiEdit",
        no_environment_file,
        ("Write", {"file_path": ".env", "content": "forbidden"}),
        ("Write", {"file_path": "made", "content": "x"}),
        {"permission_mode": "acceptEdits"},
    ),
    "notebooks by an expression": Guarded(
        "Notebook.*",
        no_notebook,
        ("NotebookEdit", {"notebook_path": "book.ipynb", "cell_id": "cell-0", "new_source": "forbidden"}),
        ("Write", {"file_path": "made", "content": "x"}),
        {"permission_mode": "acceptEdits"},
    ),
}


def prepare(place):
    """Files that guards protect."""
    (place.work / ".env").write_text("KEY=1\n")
    (place.work / "book.ipynb").write_text(
        '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": '
        '[{"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": null}]}'
    )


def everything(place):
    """What all files of the workspace hold, with their names."""
    return "".join(f"{path.name}:{path.read_text()}\n" for path in place.work.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", GUARDS)
async def test_a_hook_that_is_written_for_claudes_names_fires(model, place, name):
    guard = GUARDS[name]
    prepare(place)
    mock = model(say(call(*guard.forbidden, id="c1")), say(call(*guard.harmless, id="c2")), say("done"))
    hooks = {"PreToolUse": [HookMatcher(matcher=guard.matcher, hooks=[guard.hook])]}
    messages = await run("go", hooks=hooks, **guard.chosen)
    assert "forbidden" not in everything(place)
    assert (place.work / "made").exists(), mock.results()
    assert [made.name for made in calls(messages)] == [guard.forbidden[0], guard.harmless[0]]
    assert result(messages).result == "done"


@pytest.mark.parametrize("matcher", ["mcp__.*", "^mcp__", "mcp__calc__.*", "mcp__calc__add"])
async def test_a_hook_for_tools_of_servers_fires(model, place, matcher):
    from claude_agent_sdk import create_sdk_mcp_server, tool

    added = []

    @tool("add", "Adds.", {"a": int})
    async def add(given):
        added.append(given)
        return {"content": [{"type": "text", "text": "1"}]}

    model(say(call("mcp__calc__add", {"a": 1})), say(call(*TOUCH)), say("done"))
    await run(
        "go",
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        hooks={"PreToolUse": [HookMatcher(matcher=matcher, hooks=[no_server])]},
        permission_mode="bypassPermissions",
    )
    assert added == [] and (place.work / "made").exists()


async def test_a_hook_redirects_a_file_by_the_name_of_its_argument(model, place):
    async def redirected(told, _id, _context):
        if told["tool_name"] != "Write":
            return {}
        given = told["tool_input"]
        return allow(updatedInput={**given, "file_path": f"kept/{given['file_path'].split('/')[-1]}"})

    model(say(call("Write", {"file_path": "elsewhere/note", "content": "x"})), say("done"))
    await run("go", hooks={"PreToolUse": [HookMatcher(matcher="Write|Edit", hooks=[redirected])]})
    assert (place.work / "kept/note").read_text() == "x" and not (place.work / "elsewhere").exists()


async def test_a_hook_lets_reading_tools_run_by_their_names(model, place):
    (place.work / "note").write_text("milk")
    seen = []

    async def reading(told, _id, _context):
        seen.append(told["tool_name"])
        return allow() if told["tool_name"] in ("Read", "Glob", "Grep", "LS") else deny("only reading")

    mock = model(
        say(call("Read", {"file_path": "note"}), call("Grep", {"pattern": "milk"}), call("Glob", {"pattern": "*"})),
        say(call("LS", {"path": "."}), call("Bash", {"command": "touch made"})),
        say("done"),
    )
    await run("go", hooks={"PreToolUse": [HookMatcher(hooks=[reading])]}, permission_mode="bypassPermissions")
    assert seen == ["Read", "Grep", "Glob", "LS", "Bash"]
    assert not (place.work / "made").exists() and "milk" in mock.results()[0]


async def test_an_audit_after_a_call_sees_claudes_names(model, place):
    written = []

    async def audit(told, _id, _context):
        written.append((told["tool_name"], told["tool_input"]["file_path"]))
        return {}

    model(
        say(call("Write", {"file_path": "a", "content": "1"})),
        say(call("Edit", {"file_path": "a", "old_string": "1", "new_string": "2"})),
        say(call(*TOUCH)),
        say("done"),
    )
    hooks = {"PostToolUse": [HookMatcher(matcher="Edit|Write", hooks=[audit])]}
    await run("go", hooks=hooks, permission_mode="bypassPermissions")
    path = str(place.work / "a")
    assert written == [("Write", path), ("Edit", path)]


async def test_an_audit_sees_results_in_the_fields_of_claudes_cli(model, place):
    seen = {}

    async def audit(told, _id, _context):
        seen[told["tool_name"]] = told["tool_response"]
        return {}

    path = str(place.work / "a")
    model(
        say(call("Write", {"file_path": "a", "content": "1\n"})),
        say(call("Read", {"file_path": "a"})),
        say(call("Edit", {"file_path": "a", "old_string": "1", "new_string": "2"})),
        say(call("Bash", {"command": "echo hi"})),
        say("done"),
    )
    await run("go", hooks={"PostToolUse": [HookMatcher(hooks=[audit])]}, permission_mode="bypassPermissions")
    patch = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-1", "+2"]}
    expected = {
        "Write": {"type": "create", "filePath": path, "content": "1\n", "structuredPatch": [], "originalFile": None},
        "Read": {"type": "text", "file": {"filePath": path, "content": "1\n", "numLines": 1, "startLine": 1, "totalLines": 1}},
        "Edit": {"filePath": path, "oldString": "1", "newString": "2", "originalFile": "1\n", "structuredPatch": [patch]},
        "Bash": {"stdout": "hi", "stderr": "", "interrupted": False},
    }
    assert {name: {key: seen[name][key] for key in fields} for name, fields in expected.items()} == expected


async def test_output_that_a_hook_finds_critical_ends_the_run(model, place):
    async def stop(told, _id, _context):
        if "CRITICAL" in str(told.get("tool_response", "")):
            return {"continue_": False, "stopReason": "halted for safety"}
        return {"continue_": True}

    model(say(call("Bash", {"command": "echo CRITICAL"})), say(call(*TOUCH)), say("done"))
    hooks = {"PostToolUse": [HookMatcher(matcher="Bash", hooks=[stop])]}
    async with ClaudeSDKClient(options(hooks=hooks, allowed_tools=["Bash"])) as client:
        await turn(client, "go")
    assert not (place.work / "made").exists()


async def test_a_permission_callback_decides_by_claudes_names(model, place):
    asked = []

    async def decide(tool, given, context):
        asked.append(tool)
        if tool in ("Read", "Glob", "Grep"):
            return PermissionResultAllow()
        if tool in ("Write", "Edit", "MultiEdit"):
            path = given.get("file_path", "")
            if path.startswith(("/etc/", "/usr/")):
                return PermissionResultDeny(message="no system directory")
            return PermissionResultAllow(updated_input={**given, "file_path": f"safe/{path.split('/')[-1]}"})
        if tool == "Bash":
            if any(word in given.get("command", "") for word in ("rm -rf", "sudo")):
                return PermissionResultDeny(message="a dangerous command")
            return PermissionResultAllow()
        return PermissionResultDeny(message=f"what is {tool}?")

    (place.work / "kept").write_text("x")
    mock = model(
        say(call("Write", {"file_path": "/etc/forbidden", "content": "x"}, id="c1")),
        say(call("Write", {"file_path": "note", "content": "x"}, id="c2")),
        say(call("Bash", {"command": "rm -rf kept"}, id="c3")),
        say(call("Bash", {"command": "touch made"}, id="c4")),
        say("done"),
    )
    async with ClaudeSDKClient(options(can_use_tool=decide, permission_mode="default")) as client:
        end = result(await turn(client, "go"))
    assert asked == ["Write", "Write", "Bash", "Bash"], mock.results()
    assert (place.work / "safe/note").exists() and not (place.work / "note").exists()
    assert (place.work / "kept").exists() and (place.work / "made").exists()
    assert [(denial["tool_name"], denial["tool_use_id"]) for denial in end.permission_denials] == [
        ("Write", "c1"),
        ("Bash", "c3"),
    ]


LISTS = {
    "a tool is forbidden": ({"disallowed_tools": ["Bash"]}, TOUCH, ("Write", {"file_path": "other", "content": "x"})),
    "a command is forbidden": (
        {"disallowed_tools": ["Bash(touch:*)"]},
        TOUCH,
        ("Bash", {"command": "cp .env other"}),
    ),
    "writing is forbidden": (
        {"disallowed_tools": ["Write", "Edit", "MultiEdit", "NotebookEdit"]},
        ("Write", {"file_path": "made", "content": "x"}),
        ("Bash", {"command": "touch other"}),
    ),
    "files are forbidden": (
        {"disallowed_tools": ["Edit(/made)", "Write(/made)"]},
        ("Write", {"file_path": "made", "content": "x"}),
        ("Write", {"file_path": "other", "content": "x"}),
    ),
}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list_of_forbidden_tools_holds_in_every_mode(model, place, name):
    chosen, forbidden, harmless = LISTS[name]
    prepare(place)
    mock = model(say(call(*forbidden)), say(call(*harmless)), say("done"))
    await run("go", permission_mode="bypassPermissions", **chosen)
    assert not (place.work / "made").exists()
    assert (place.work / "other").exists(), mock.results()


async def test_a_list_of_allowed_tools_allows_only_those(model, place):
    model(say(call("Bash", {"command": "touch other"})), say(call(*TOUCH)), say("done"))
    await run("go", allowed_tools=["Read", "Bash(touch made)"])
    assert (place.work / "made").exists() and not (place.work / "other").exists()


async def test_a_list_of_tools_is_all_that_there_is(model, place):
    model(say(call(*TOUCH)), say("done"))
    messages = await run("go", tools=["Read", "Glob", "Grep"], permission_mode="bypassPermissions")
    assert init(messages)["tools"] == ["Read", "Glob", "Grep"]
    assert not (place.work / "made").exists()


async def test_an_agent_of_the_host_has_the_tools_that_its_list_names(model, place):
    from claude_agent_sdk import AgentDefinition

    agents = {"reader": AgentDefinition(description="Reads.", prompt="Read.", tools=["Read", "Grep"], model="sonnet")}
    mock = model(
        say(call("Task", {"description": "d", "prompt": "look", "subagent_type": "reader", "model": "haiku"})),
        say(call(*TOUCH)),
        say("looked"),
        say("done"),
    )
    await run("go", agents=agents, permission_mode="bypassPermissions", model="the-model")
    assert mock.tools(1) == ["Read", "Grep"]
    assert mock.requests()[1]["model"] == "the-model", "sonnet is no name of a model here"
    assert not (place.work / "made").exists()
