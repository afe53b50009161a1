"""Claude's Python SDK: flags that change what the model is asked, who the session is and what is kept of it."""

import json
import os
import subprocess

import pytest
from claude import blocks, init, options, result, run, turn, user
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    InMemorySessionStore,
    ThinkingBlock,
    get_session_messages,
    project_key_for_directory,
)
from mock_model import call, piece, raw, say

pytestmark = pytest.mark.anyio

THINKING = raw(piece(reasoning_content="deep"), piece(content="thought"), piece(finish="stop"))


@pytest.mark.parametrize(
    ("thinking", "asked"),
    [
        ({"type": "disabled"}, {"enable_thinking": False}),
        ({"type": "enabled", "budget_tokens": 2048}, {"enable_thinking": True, "thinking_budget": 2048}),
        ({"type": "adaptive"}, {}),
    ],
)
async def test_thinking_reaches_the_model(model, thinking, asked):
    mock = model(say("fine"))
    await run("hi", thinking=thinking)
    request = mock.requests()[0]
    assert {key: request[key] for key in ("enable_thinking", "thinking_budget") if key in request} == asked


async def test_thinking_tokens_reach_the_model(model):
    mock = model(say("fine"), say("fine"))
    await run("hi", max_thinking_tokens=0)
    await run("hi", max_thinking_tokens=4096)
    first, second = mock.requests()
    assert first["enable_thinking"] is False and second["thinking_budget"] == 4096


@pytest.mark.parametrize(("display", "shown"), [("omitted", []), ("summarized", ["deep"])])
async def test_thinking_is_shown_as_the_host_wants(model, display, shown):
    model(THINKING)
    messages = await run("hi", thinking={"type": "adaptive", "display": display})
    assert [block.thinking for block in blocks(messages, ThinkingBlock)] == shown
    assert result(messages).result == "thought"


async def test_betas_and_the_task_budget_are_headers_and_fields_of_anthropics_wire(model, monkeypatch):
    mock = model(say("fine"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", mock.base_url.removesuffix("/v1"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant")
    chosen = {"betas": ["context-1m-2025-08-07"], "task_budget": {"total": 5000}}
    await run("hi", extra_args={"auth-type": "anthropic"}, model="m", thinking={"type": "adaptive"}, **chosen)
    assert mock.headers()["anthropic-beta"] == "context-1m-2025-08-07,task-budgets-2026-03-13"
    (request,) = mock.requests()
    assert request["output_config"]["task_budget"] == {"type": "tokens", "total": 5000}
    assert request["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize("where", ["flag", "handshake"])
async def test_the_session_can_be_an_agent(model, where):
    mock = model(say("fine"))
    agent = {"description": "Reviews.", "prompt": "You review.", "tools": ["Read"], "model": "other-model"}
    extra = {"agent": "reviewer"}
    if where == "flag":
        await run("hi", extra_args={**extra, "agents": json.dumps({"reviewer": agent})})
    else:
        await run("hi", extra_args=extra, agents={"reviewer": AgentDefinition(**agent)})
    assert mock.system().startswith("You review.") and mock.tools() == ["Read"]
    assert mock.requests()[0]["model"] == "other-model"


async def test_a_model_of_the_options_goes_before_the_agents(model):
    mock = model(say("fine"))
    agent = {"description": "Reviews.", "prompt": "You review.", "model": "other-model"}
    await run("hi", model="mine", extra_args={"agent": "reviewer", "agents": json.dumps({"reviewer": agent})})
    assert mock.requests()[0]["model"] == "mine"


async def test_a_store_of_the_hosts_gets_what_the_copy_on_disk_gets(model, place):
    model(say(call("list_directory", {"path": "."}, id="call_l")), say("nothing there"))
    store = InMemorySessionStore()
    end = result(await run("look", session_store=store))
    kept = get_session_messages(end.session_id, directory=str(place.work))
    key = {"project_key": project_key_for_directory(str(place.work)), "session_id": end.session_id}
    entries = await store.load(key)
    assert [e["uuid"] for e in entries] == [m.uuid for m in kept]
    assert [e["type"] for e in entries] == ["user", "assistant", "user", "assistant"]


async def test_going_on_from_an_earlier_place_leaves_out_only_the_turn_that_is_named(model, place):
    mock = model(*[say(word) for word in ("one", "two", "three", "again")])
    async with ClaudeSDKClient(options()) as client:
        session = result(await turn(client, "a")).session_id
        await turn(client, "b")
    entries = get_session_messages(session, directory=str(place.work))
    kept, dropped = entries[1].uuid, entries[2].uuid
    end = result(await run("c", resume=session, resume_session_at=kept, resume_drops_turn=dropped, fork_session=True))
    assert end.result == "three"
    assert [m["content"] for m in mock.messages() if m["role"] == "user"] == ["a", "c"]
    with pytest.raises(Exception, match="Resume rejected by --resume-drops-turn:"):
        await run("d", resume=session, resume_session_at=kept, resume_drops_turn=kept)


async def test_debugging_goes_to_the_file_that_is_named(model, place):
    model(say("fine"))
    await run("hi", extra_args={"debug-file": str(place.home / "debug.log")})
    log = (place.home / "debug.log").read_text()
    assert "[DEBUG]" in log and '"subtype":"init"' in log


async def test_models_are_told_with_their_limits(model):
    model(say("fine"))
    end = result(await run("hi", settings='{"model": {"contextWindow": 50000, "maxTokens": 1000}}'))
    (usage,) = end.model_usage.values()
    assert (usage["contextWindow"], usage["maxOutputTokens"], usage["webSearchRequests"]) == (50000, 1000, 0)
    assert usage["outputTokens"] > 0 and "costUSD" in usage


async def test_a_plugin_brings_commands_agents_skills_hooks_and_servers(model, place):
    plugin = place.home / "my-plugin"
    files = {
        ".claude-plugin/plugin.json": '{"name": "tidy"}',
        "commands/greet.md": "Say hello to $ARGUMENTS.",
        "agents/sweeper.md": "---\nname: sweeper\ndescription: Sweeps\n---\nYou sweep.",
        "skills/mop/SKILL.md": "---\nname: mop\ndescription: Mops\n---\nHow to mop.",
        "hooks/hooks.json": json.dumps(
            {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "cat ${CLAUDE_PLUGIN_ROOT}/note"}]}]}}
        ),
        "note": "the floor is wet",
        ".mcp.json": '{"mcpServers": {"bucket": {"command": "/no/such/program"}}}',
    }
    for name, content in files.items():
        (plugin / name).parent.mkdir(parents=True, exist_ok=True)
        (plugin / name).write_text(content)
    mock = model(say("fine"))
    messages = await run("/tidy:greet Ann", plugins=[{"type": "local", "path": str(plugin)}])
    told = init(messages)
    assert told["plugins"] == [{"name": "tidy", "path": str(plugin)}]
    assert "tidy:greet" in told["slash_commands"] and "tidy:sweeper" in told["agents"] and "tidy:mop" in told["skills"]
    assert [server["name"] for server in told["mcp_servers"]] == ["bucket"]
    (prompt,) = [m["content"] for m in mock.messages() if m["role"] == "user"]
    assert "Say hello to Ann." in str(prompt) and "the floor is wet" in str(prompt)


def test_an_early_prompt_waits_for_the_handshake_where_the_flag_says_so(model):
    model(say("fine"))
    handshake = {"type": "control_request", "request_id": "r", "request": {"subtype": "initialize"}}
    lines = "".join(json.dumps(line) + "\n" for line in (user("hi"), handshake))
    flags = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--await-initialize"]
    ran = subprocess.run([os.environ["QWEN_BIN"], *flags], input=lines, capture_output=True, text=True, timeout=60)
    kinds = [json.loads(line)["type"] for line in ran.stdout.splitlines()]
    assert kinds == ["control_response", "system", "assistant", "result"]
