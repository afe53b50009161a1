"""Claude's Python SDK: commands in the background, sub-agents, and what the model's server says about its limits."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from claude import options, result, run, turn
from claude_agent_sdk import (
    ClaudeSDKClient,
    Message,
    RateLimitEvent,
    TaskNotificationMessage,
    TaskProgressMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
)
from mock_model import call, gate, say, text_of

pytestmark = pytest.mark.anyio

BYPASS = {"permission_mode": "bypassPermissions"}
DIG = {"description": "dig", "prompt": "Dig!"}
LOOK = call("list_directory", {"path": "."}, id="call_l")


def only(messages: list[Message], kind: type) -> Message:
    """The one message of a kind."""
    found = [m for m in messages if isinstance(m, kind)]
    assert len(found) == 1, messages
    return found[0]


async def until(client: ClaudeSDKClient, wanted: Callable[[Message], bool]) -> Message:
    """The next message that is wanted."""
    async with asyncio.timeout(20):
        async for message in client.receive_messages():
            if wanted(message):
                return message
    raise AssertionError("the stream ended")


async def test_a_command_in_the_background_is_told_of_from_its_start_to_its_end(model, place):
    command = "echo out; while [ ! -e go ]; do sleep 0.01; done"
    start = call("Bash", {"command": command, "run_in_background": True, "description": "wait"}, id="call_b")
    mock = model(say(start), say("started"), say("well"))
    async with ClaudeSDKClient(options(**BYPASS)) as client:
        started = only(await turn(client, "go"), TaskStartedMessage)
        assert (started.task_id, started.tool_use_id) == ("shell-1", "call_b")
        assert (started.description, started.task_type) == ("wait", "local_bash")
        (place.work / "go").touch()
        ended = await until(client, lambda m: isinstance(m, TaskNotificationMessage))
        assert (ended.task_id, ended.status) == ("shell-1", "completed")
        assert Path(ended.output_file).read_text() == "out\n"
        assert ended.session_id == started.session_id and ended.uuid != started.uuid
        await turn(client, "and?")
    assert "shell-1" in text_of(mock.messages()[-1])


async def test_a_sub_agent_tells_its_steps(model):
    model(say(call("agent", DIG, id="call_a")), say(LOOK), say("I found gold."), say("Gold!"))
    messages = await run("go", **BYPASS)
    assert result(messages).result == "Gold!"
    started, ended = only(messages, TaskStartedMessage), only(messages, TaskNotificationMessage)
    progress = only(messages, TaskProgressMessage)
    assert {m.task_id for m in (started, progress, ended)} == {"agent-1"}
    assert (started.task_type, started.data["is_backgrounded"]) == ("local_agent", False)
    assert (progress.last_tool_name, progress.description) == ("LS", "dig")
    assert progress.usage["total_tokens"] > 0
    assert (ended.status, ended.summary) == ("completed", "I found gold.")
    assert ended.usage["tool_uses"] == 1 and ended.usage["total_tokens"] > progress.usage["total_tokens"]


async def test_a_sub_agent_in_the_background_reports_to_the_next_turn(model):
    mock = model(
        say(call("agent", {**DIG, "run_in_background": True}, id="call_a"), match="go"),
        say(gate("dug"), "I found gold.", match="Dig!"),
        say("It digs.", match="go"),
        say("Gold!", match="and"),
    )
    async with ClaudeSDKClient(options(**BYPASS)) as client:
        messages = await turn(client, "go")
        assert result(messages).result == "It digs."
        assert only(messages, TaskStartedMessage).data["is_backgrounded"] is True
        await mock.reached("dug")
        mock.open("dug")
        ended = await until(client, lambda m: isinstance(m, TaskNotificationMessage))
        assert (ended.status, ended.tool_use_id) == ("completed", "call_a")
        assert Path(ended.output_file).read_text() == "I found gold.\n"
        await turn(client, "and?")
    assert "I found gold." in text_of(mock.messages()[-1])


async def test_a_sub_agent_in_the_background_can_be_stopped(model):
    mock = model(
        say(call("agent", {**DIG, "run_in_background": True}), match="go"),
        say(gate("never"), "never said", match="Dig!"),
        say("It digs.", match="go"),
    )
    async with ClaudeSDKClient(options(**BYPASS)) as client:
        await turn(client, "go")
        await mock.reached("never")
        await client.stop_task("agent-1")
        updated = await until(client, lambda m: isinstance(m, TaskUpdatedMessage))
        ended = await until(client, lambda m: isinstance(m, TaskNotificationMessage))
    assert (updated.status, ended.status) == ("killed", "stopped")


async def test_the_limits_of_the_models_server_are_told_when_they_change(model):
    refusal = {"steps": [{"status": 429, "headers": {"retry-after": "0"}, "body": "slow down"}]}
    model(refusal, say("a"), say("b"))
    async with ClaudeSDKClient(options()) as client:
        told = [m for m in await turn(client, "1") if isinstance(m, RateLimitEvent)]
        later = [m for m in await turn(client, "2") if isinstance(m, RateLimitEvent)]
    assert [m.rate_limit_info.status for m in told] == ["rejected", "allowed"]
    assert told[0].rate_limit_info.resets_at > 0 and told[0].uuid and told[0].session_id
    assert later == []
