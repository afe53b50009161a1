"""Claude's Python SDK: the process, its surroundings, and its end."""

import asyncio
import os
import signal

import pytest
from claude import init, options, result, run, turn
from claude_agent_sdk import ClaudeSDKClient, ProcessError, query
from conftest import children, sleeping
from mock_model import call, gate, say

pytestmark = pytest.mark.anyio


async def gone(pid):
    """Waits until a process has ended and was collected."""
    while os.path.exists(f"/proc/{pid}"):
        await asyncio.sleep(0.01)


async def test_the_process_ends_with_the_client(model):
    model(say("hi"))
    async with ClaudeSDKClient(options()) as client:
        await turn(client, "hi")
        pid, = children()
    await asyncio.wait_for(gone(pid), 10)


async def test_leaving_in_the_middle_of_a_turn_leaves_nothing(model, place):
    model(say(call("run_shell_command", {"command": f"sleep {place.nap}"})))
    async with ClaudeSDKClient(options(permission_mode="bypassPermissions")) as client:
        await client.query("run")
        while not (started := sleeping(place.nap)):
            await asyncio.sleep(0.01)
        pid, = children()
    for process in (pid, *started):
        await asyncio.wait_for(gone(process), 10)


async def test_a_query_that_is_dropped_leaves_nothing(model):
    model(say("one", gate("never")))
    stream = query(prompt="hi", options=options())
    await anext(stream)
    pid, = children()
    await stream.aclose()
    await asyncio.wait_for(gone(pid), 10)


async def test_sigterm_ends_it_with_its_own_code(model):
    mock = model(say("one", gate("never")))
    with pytest.raises(ProcessError) as raised:
        async with ClaudeSDKClient(options()) as client:
            await client.query("hi")
            await mock.reached("never")
            pid, = children()
            os.kill(pid, signal.SIGTERM)
            async for _ in client.receive_messages():
                pass
    assert raised.value.exit_code == 143


async def test_what_it_says_on_standard_error_reaches_the_callback(model):
    model(say("hi"))
    lines = []
    await run("hi", stderr=lines.append, extra_args={"betas": "context-1m-2025-08-07"})
    assert any("betas" in line for line in lines)


async def test_it_works_where_it_is_told_to(model, place):
    inner = place.work / "inner"
    inner.mkdir()
    model(say(call("write_file", {"file_path": "here.txt", "content": "x"})), say("done"))
    messages = await run("go", cwd=inner, permission_mode="acceptEdits")
    assert init(messages)["cwd"] == str(inner)
    assert (inner / "here.txt").exists()


async def test_the_environment_of_the_options_reaches_commands(model):
    mock = model(say(call("run_shell_command", {"command": "echo $FLAVOUR"})), say("done"))
    await run("go", env={"FLAVOUR": "salty"}, permission_mode="bypassPermissions")
    assert "salty" in mock.results()[0]


async def test_added_directories_may_be_written(model, place):
    beside = place.home / "beside"
    beside.mkdir()
    write = call("write_file", {"file_path": str(beside / "out.txt"), "content": "x"})
    model(say(write), say("no"), say(write), say("yes"))
    await run("go", permission_mode="acceptEdits")
    assert not (beside / "out.txt").exists()
    await run("go", permission_mode="acceptEdits", add_dirs=[beside])
    assert (beside / "out.txt").exists()


FLAGS = {
    "settings as JSON": {"settings": '{"permissions": {"allow": []}}'},
    "setting sources": {"setting_sources": ["user", "project"]},
    "no setting sources": {"setting_sources": []},
    "fallback model": {"fallback_model": "other"},
    "betas": {"betas": ["context-1m-2025-08-07"]},
    "adaptive thinking": {"thinking": {"type": "adaptive"}},
    "a budget for thinking": {"thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"}},
    "no thinking": {"thinking": {"type": "disabled"}},
    "thinking tokens": {"max_thinking_tokens": 1024},
    "effort": {"effort": "high"},
    "task budget": {"task_budget": {"total": 1000}},
    "hook events": {"include_hook_events": True},
    "plugins": {"plugins": [{"type": "local", "path": "/nowhere"}]},
    "strict MCP": {"strict_mcp_config": True},
    "file checkpoints": {"enable_file_checkpointing": True},
    "skills": {"skills": ["some-skill"]},
    "replayed prompts": {"extra_args": {"replay-user-messages": None}},
    "debugging": {"extra_args": {"debug": None}},
    "a preset of tools": {"tools": {"type": "preset", "preset": "claude_code"}},
    "an application's name": {"client_app": "my-app/1.0"},
    "verbatim prompts": {"verbatim_prompts": True},
    "the text of sub-agents": {"forward_subagent_text": True},
    "a sandbox": {"sandbox": {"enabled": False}},
}


@pytest.mark.parametrize("name", FLAGS)
async def test_every_option_is_accepted(model, name):
    model(say("fine"))
    assert result(await run("hi", **FLAGS[name])).result == "fine"


async def test_settings_can_come_as_a_file(model, place):
    (place.home / "s.json").write_text('{"permissions": {"allow": ["Write"]}}')
    model(say(call("write_file", {"file_path": "out.txt", "content": "x"})), say("done"))
    await run("go", settings=str(place.home / "s.json"))
    assert (place.work / "out.txt").exists()


async def test_effort_reaches_the_model(model):
    mock = model(say("fine"))
    await run("hi", effort="low")
    assert mock.requests()[0].get("reasoning_effort") == "low"


async def test_a_flag_nobody_knows_is_an_error_and_not_a_hang(model):
    model(say("never"))
    with pytest.raises(ProcessError) as raised:
        await run("hi", extra_args={"no-such-flag": None})
    assert raised.value.exit_code not in (0, None)


async def test_prompts_of_the_user_are_repeated_on_request(model):
    model(say("fine"))
    messages = await run("hello there", extra_args={"replay-user-messages": None})
    assert any("hello there" in str(getattr(m, "content", "")) for m in messages)
