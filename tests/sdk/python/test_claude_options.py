"""Claude's Python SDK: options that are more than accepted."""

import asyncio
import getpass
import json
import sys

import pytest
from claude import init, options, result, run, said, tool_results, turn
from claude_agent_sdk import (
    ClaudeSDKClient,
    ResultError,
    ResultMessage,
    SystemMessage,
    TaskUpdatedMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from mock_model import call, fail, gate, say
from test_claude_hooks import WRITE
from test_claude_mcp import SERVER

pytestmark = pytest.mark.anyio

PRICES = json.dumps({"model": {"prices": {"mock": {"input": 1, "output": 2}}}})
SPENT = {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def ending(prompt="go", **chosen):
    """The result of a query, whether the SDK takes it for an error or not."""
    end = None
    try:
        async for message in query(prompt=prompt, options=options(**chosen)):
            if isinstance(message, ResultMessage):
                end = message
    except ResultError:
        assert end.is_error
    return end


async def test_cost_and_models_are_running_totals_and_usage_is_the_turns(model):
    model(say("a", SPENT), say("b", SPENT))
    async with ClaudeSDKClient(options(settings=PRICES)) as client:
        first, second = result(await turn(client, "1")), result(await turn(client, "2"))
    assert first.total_cost_usd == pytest.approx(0.0012) and second.total_cost_usd == pytest.approx(0.0024)
    assert [end.model_usage["mock"]["inputTokens"] for end in (first, second)] == [1000, 2000]
    assert second.model_usage["mock"]["costUSD"] == pytest.approx(0.0024)
    assert [end.usage["input_tokens"] for end in (first, second)] == [1000, 1000]


async def test_the_limit_of_money_ends_the_turn(model):
    mock = model(say(call("list_directory", {"path": "."}), SPENT), say("never"))
    end = await ending(settings=PRICES, max_budget_usd=0.001)
    assert (end.subtype, end.is_error) == ("error_max_budget_usd", True) and end.errors
    assert len(mock.requests()) == 1


async def test_an_answer_that_never_fits_is_an_error_of_its_own(model):
    model(say("no data"), loop=True)
    end = await ending(output_format={"type": "json_schema", "schema": SCHEMA})
    assert end.subtype == "error_max_structured_output_retries" and end.errors


async def test_another_model_takes_over_from_one_that_fails(model):
    mock = model(fail(404, "no such model"), say("here"))
    end = await ending(model="first", fallback_model="second")
    assert end.result == "here"
    assert [request["model"] for request in mock.requests()] == ["first", "second"]


async def test_settings_as_json_hold(model, place):
    model(say(WRITE), say("done"))
    await run("go", settings=json.dumps({"permissions": {"allow": ["Write"]}}))
    assert (place.work / "out.txt").exists()


@pytest.mark.parametrize(("sources", "written"), [(None, True), (["user"], True), ([], False)])
async def test_the_sources_of_settings_are_obeyed(model, place, sources, written):
    (place.home / ".qwen").mkdir(exist_ok=True)
    (place.home / ".qwen" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Write"]}}))
    model(say(WRITE), say("done"))
    await run("go", setting_sources=sources)
    assert (place.work / "out.txt").exists() is written


@pytest.mark.parametrize("strict", [False, True])
async def test_strict_mcp_knows_the_hosts_servers_alone(model, place, strict):
    @tool("add", "Adds", {"a": int})
    async def add(args):
        return {"content": [{"type": "text", "text": "5"}]}

    (place.home / "server.py").write_text(SERVER)
    configured = {"mcpServers": {"outside": {"command": sys.executable, "args": [str(place.home / "server.py")]}}}
    (place.home / ".qwen").mkdir(exist_ok=True)
    (place.home / ".qwen" / "settings.json").write_text(json.dumps(configured))
    mock = model(say("hi"))
    async with ClaudeSDKClient(
        options(mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])}, strict_mcp_config=strict)
    ) as client:
        opening = init(await turn(client, "hi"))
    names = {server["name"] for server in opening["mcp_servers"]}
    assert names == ({"calc"} if strict else {"calc", "outside"})
    assert ("mcp__outside__shout" in mock.tools()) is not strict and "mcp__calc__add" in mock.tools()


async def test_the_context_of_a_resumed_session_is_known_before_its_first_turn(model):
    model(say("words " * 400), say("more"))
    session = result(await run("tell me")).session_id
    async with ClaudeSDKClient(options(resume=session)) as client:
        usage = await client.get_context_usage()
    assert usage["totalTokens"] > 400


async def test_a_command_in_the_background_can_be_ended(model, place):
    start = call("Bash", {"command": f"sleep {place.nap}", "run_in_background": True})
    model(say(start), say("started"))
    async with ClaudeSDKClient(options(permission_mode="bypassPermissions")) as client:
        messages = await turn(client, "go")
        assert "shell-1" in said(tool_results(messages)[0])
        await client.stop_task("shell-1")
        async with asyncio.timeout(10):
            async for message in client.receive_messages():
                if isinstance(message, TaskUpdatedMessage):
                    break
    assert (message.task_id, message.status) == ("shell-1", "killed")


async def test_what_has_no_effect_is_said_on_standard_error(model):
    model(say("fine"))
    noted = []
    await run("hi", stderr=noted.append, betas=["context-1m-2025-08-07"], plugins=[{"type": "local", "path": "/none"}])
    for flag in ("--betas", "--plugin-dir"):
        assert any(flag in line for line in noted)


async def test_a_host_that_wants_short_lines_gets_them(model, place):
    (place.work / "big.txt").write_text("0123456789abcdef\n" * 100_000)
    model(say(call("run_shell_command", {"command": "cat big.txt"})), say("x" * 900_000))
    messages = await run("go", permission_mode="bypassPermissions", max_buffer_size=1024 * 1024)
    assert result(messages).subtype == "success"


async def test_the_sandbox_of_the_options_is_taken(model):
    model(say(call("run_shell_command", {"command": "echo hi"})), say("done"))
    chosen = {"enabled": True, "autoAllowBashIfSandboxed": True, "network": {"allowLocalBinding": True}}
    messages = await run("go", sandbox=chosen, permission_mode="bypassPermissions")
    assert result(messages).subtype == "success"


async def test_a_user_can_be_named(model):
    model(say("fine"))
    assert result(await run("hi", user=getpass.getuser())).result == "fine"


async def test_a_conversation_that_is_summed_up_tells_its_boundary(model):
    model(*[say("words " * 400)] * 4, say("A summary."), say("after"))
    async with ClaudeSDKClient(options()) as client:
        for prompt in ("one", "two", "three", "four"):
            await turn(client, prompt * 100)
        messages = await turn(client, "/compress")
        messages += await turn(client, "more")
    told = [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "compact_boundary"]
    assert len(told) == 1 and told[0]["compact_metadata"]["pre_tokens"] > 0


async def test_interrupting_twice_and_asking_on_is_fine(model):
    mock = model(say("a", gate("never")), say("b"))
    async with ClaudeSDKClient(options()) as client:
        await client.query("one")
        await mock.reached("never")
        await asyncio.gather(client.interrupt(), client.interrupt())
        ends = [m async for m in client.receive_response()]
        assert ends[-1].subtype == "error_during_execution"
        assert result(await turn(client, "two")).result == "b"
