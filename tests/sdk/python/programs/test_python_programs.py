"""Python programs that are built around the Claude CLI, each with a turn, a tool call and what it has for permissions."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mock_model import call, gate, say

pytestmark = pytest.mark.anyio

WRITE = say(call("Write", {"file_path": "made", "content": "text"}))


@pytest.fixture
def claude(place, monkeypatch) -> Path:
    """The program under the name `claude`, first in PATH."""
    folder = place.home / "bin"
    folder.mkdir()
    link = folder / "claude"
    link.symlink_to(os.environ["QWEN_BIN"])
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return link


# claude-code-sdk


async def test_claude_code_sdk_answers_a_prompt_and_reports_its_tool_call(model, claude, place):
    import claude_code_sdk as sdk

    model(WRITE, say("done"))
    options = sdk.ClaudeCodeOptions(permission_mode="acceptEdits", cwd=place.work)
    messages = [message async for message in sdk.query(prompt="make it", options=options)]
    blocks = [b for m in messages if isinstance(m, sdk.AssistantMessage) for b in m.content]
    assert [b.name for b in blocks if isinstance(b, sdk.ToolUseBlock)] == ["Write"]
    assert [b.text for b in blocks if isinstance(b, sdk.TextBlock)] == ["done"]
    assert isinstance(messages[-1], sdk.ResultMessage)
    assert (messages[-1].subtype, messages[-1].result) == ("success", "done")
    assert (place.work / "made").read_text() == "text"


async def test_claude_code_sdk_denies_what_its_callback_answers_without_a_behavior(model, claude, place):
    """This version answers `{"allow": …}`. The protocol wants `behavior`, so nothing may run."""
    import claude_code_sdk as sdk

    model(WRITE, say("done"))
    asked = []

    async def decide(name, given, context):
        asked.append((name, given))
        return sdk.PermissionResultAllow()

    async with sdk.ClaudeSDKClient(sdk.ClaudeCodeOptions(can_use_tool=decide)) as client:
        await client.query("make it")
        messages = [message async for message in client.receive_response()]
    assert isinstance(messages[-1], sdk.ResultMessage)
    assert asked == [("Write", {"file_path": str(place.work / "made"), "content": "text"})]
    assert not (place.work / "made").exists()


async def test_claude_code_sdk_guards_a_call_by_a_hook_and_can_be_interrupted(model, claude, place):
    import claude_code_sdk as sdk

    mock = model(say(call("Bash", {"command": "touch made"})), say("no", gate("held")), say("again"))
    guarded = []

    async def guard(given, tool_use_id, context):
        guarded.append((given["tool_name"], given["tool_input"]))
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
        return {"hookSpecificOutput": decision}

    options = sdk.ClaudeCodeOptions(
        allowed_tools=["Bash"], hooks={"PreToolUse": [sdk.HookMatcher(matcher="Bash", hooks=[guard])]}
    )
    async with sdk.ClaudeSDKClient(options) as client:
        await client.query("make it")
        await mock.reached("held")
        await client.interrupt()
        interrupted = [message async for message in client.receive_response()]
        await client.query("more")
        answered = [message async for message in client.receive_response()]
    assert guarded == [("Bash", {"command": "touch made"})]
    assert not (place.work / "made").exists()
    assert interrupted[-1].subtype == "error_during_execution"
    assert answered[-1].result == "again"


# langchain-claude-code


def chat(**chosen):
    from langchain_claude_code import ClaudeCodeChatModel

    return ClaudeCodeChatModel(model="sonnet", **chosen).bind(cli_path=os.environ["QWEN_BIN"])


async def test_langchain_claude_code_answers_and_streams(model):
    model(say("Hello."), say("Hello", " again."))
    answer = await chat().ainvoke("hi")
    assert answer.content == "Hello."
    assert answer.response_metadata["is_error"] is False
    pieces = [chunk.content async for chunk in chat(include_partial_messages=True).astream("hi")]
    assert "".join(pieces) == "Hello again."


@pytest.mark.parametrize("allowed", [True, False])
async def test_langchain_claude_code_runs_allowed_tools_alone(model, place, allowed):
    model(WRITE, say("done"))
    answer = await chat(allowed_tools=["Write"] if allowed else []).ainvoke("make it")
    assert [made["name"] for made in answer.response_metadata["internal_tool_calls"]] == ["Write"]
    assert (place.work / "made").exists() == allowed


# ag-ui-claude-sdk


async def events(adapter, *texts):
    """The events of one run."""
    from ag_ui.core import RunAgentInput, UserMessage

    messages = [UserMessage(id=str(n), role="user", content=text) for n, text in enumerate(texts)]
    given = RunAgentInput(
        thread_id="t", run_id="r", state={}, messages=messages, tools=[], context=[], forwarded_props={}
    )
    return [event async for event in adapter.run(given)]


def adapter(**chosen):
    from ag_ui_claude_sdk import ClaudeAgentAdapter

    return ClaudeAgentAdapter(name="test", options={"cli_path": os.environ["QWEN_BIN"], **chosen})


async def test_ag_ui_claude_sdk_streams_a_run(model):
    model(say("Hello", " there."), say("Again."))
    agent = adapter()
    seen = await events(agent, "hi")
    assert (seen[0].type, seen[-1].type) == ("RUN_STARTED", "RUN_FINISHED")
    assert "".join(e.delta for e in seen if e.type == "TEXT_MESSAGE_CONTENT") == "Hello there."
    seen = await events(agent, "hi", "more")
    assert "".join(e.delta for e in seen if e.type == "TEXT_MESSAGE_CONTENT") == "Again."
    await agent.clear_session("t")


async def test_ag_ui_claude_sdk_shows_a_tool_call_that_was_asked_about(model, place):
    from claude_agent_sdk import PermissionResultAllow

    model(WRITE, say("done"))
    asked = []

    async def decide(name, given, context):
        asked.append(name)
        return PermissionResultAllow()

    agent = adapter(can_use_tool=decide)
    seen = await events(agent, "make it")
    await agent.clear_session("t")
    kinds = [str(event.type.value) for event in seen]
    assert [e.tool_call_name for e in seen if e.type == "TOOL_CALL_START"] == ["Write"]
    assert {"TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"} <= set(kinds), kinds
    assert asked == ["Write"]
    assert (place.work / "made").exists()


# pydantic-ai-claude-code


def pydantic_agent(place, **settings):
    from pydantic_ai import Agent
    from pydantic_ai_claude_code import ClaudeCodeModel, ClaudeCodeProvider

    provider = ClaudeCodeProvider({"use_sandbox_runtime": False, "working_directory": str(place.work), **settings})
    return Agent(ClaudeCodeModel("sonnet", provider=provider))


async def test_pydantic_ai_claude_code_answers_and_counts(model, claude, place):
    model(say("Hello."))
    run = await pydantic_agent(place).run("hi")
    assert run.output == "Hello."
    assert run.usage().output_tokens > 0


async def test_pydantic_ai_claude_code_runs_a_tool(model, claude, place):
    model(WRITE, say("done"))
    run = await pydantic_agent(place, allowed_tools=["Write", "Read"]).run("make it")
    assert run.output == "done"
    # Each call gets a folder of its own in the working directory.
    (made,) = place.work.glob("*/made")
    assert made.read_text() == "text"


# claude-code-log


async def test_claude_code_log_renders_our_transcript(model, claude, place):
    model(WRITE, say("all done"))
    command = [str(claude), "-p", "make it", "--dangerously-skip-permissions"]
    await asyncio.to_thread(subprocess.run, command, check=True, stdin=subprocess.DEVNULL, cwd=place.work)
    projects = place.home / ".claude" / "projects"
    (transcript,) = projects.glob("*/*.jsonl")
    page = place.home / "page.html"
    tool = [str(Path(sys.executable).with_name("claude-code-log")), str(transcript), "-o", str(page)]
    await asyncio.to_thread(subprocess.run, tool, check=True, capture_output=True)
    html = page.read_text()
    assert "make it" in html
    assert "all done" in html
    assert "Write" in html
