"""Claude's Python SDK: the lines themselves, those too that the SDK hands to nobody."""

import asyncio
import json
import re

import pytest
from claude import options, result, run, turn, user
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ProcessError,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    query,
    tool,
)
from mock_model import call, gate, say
from test_claude_hooks import WRITE, Hook, hooks

pytestmark = pytest.mark.anyio


async def allow(name, given, context):
    return PermissionResultAllow()


async def deny(name, given, context):
    return PermissionResultDeny(message="no")


def lines(watched, kind, subtype=None):
    """The program's lines of a kind."""
    return [m for m in watched.said() if m["type"] == kind and subtype in (None, m.get("subtype"))]


async def test_the_flags_that_are_always_there_are_taken_with_empty_values_too(model, watched):
    model(say("hi"))
    await run("hi", cli_path=watched.path, tools=[], setting_sources=[])
    given = watched.arguments()
    assert given[:3] == ["--output-format", "stream-json", "--verbose"]
    for flag in ("--system-prompt", "--tools"):
        assert given[given.index(flag) + 1] == ""
    assert "--setting-sources=" in given and given[-2:] == ["--input-format", "stream-json"]


async def test_the_handshake_is_answered_once_in_the_words_of_the_reference(model, watched):
    model()
    async with ClaudeSDKClient(options(cli_path=watched.path, hooks=hooks("PreToolUse", Hook(), "Bash"))):
        pass
    assert watched.told()[0]["request"]["subtype"] == "initialize"
    answer, = watched.replies("initialize")
    assert answer["subtype"] == "success"
    said = answer["response"]
    assert {
        "commands", "agents", "output_style", "available_output_styles", "models", "account", "pid",
        "claude_code_version", "hook_on_failure_supported",
    } <= set(said)
    assert all({"name", "description", "argumentHint"} <= set(command) for command in said["commands"])
    assert all({"value", "displayName", "description"} <= set(entry) for entry in said["models"])
    assert said["output_style"] in said["available_output_styles"] and said["account"]["apiKeySource"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", said["claude_code_version"]) and said["pid"] > 0
    assert lines(watched, "system", "init") == []


async def test_who_has_to_act_is_told_and_idle_comes_behind_the_result(model, watched):
    model(say(WRITE), say("done"))
    async with ClaudeSDKClient(options(cli_path=watched.path, can_use_tool=allow)) as client:
        await turn(client, "go")
    assert watched.states() == ["running", "requires_action", "running", "idle"]
    assert all(m["sdk_host_only"] is True for m in lines(watched, "system", "session_state_changed"))
    kinds = [m.get("state", m["type"]) for m in watched.said()]
    assert kinds.index("idle") > kinds.index("result")


async def test_who_has_to_act_is_told_after_an_error_and_an_interrupt_too(model, watched):
    model({"steps": [{"status": 400, "body": {"error": {"message": "odd"}}}]}, say("a", gate("never")), say("b"))
    async with ClaudeSDKClient(options(cli_path=watched.path, include_partial_messages=True)) as client:
        await turn(client, "one")
        await client.query("two")
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and message.event.get("delta", {}).get("text"):
                await client.interrupt()
        await turn(client, "three")
    assert watched.states() == ["running", "idle"] * 3


async def test_a_question_about_a_call_has_all_its_fields(model, watched):
    model(say(WRITE), say("done"))
    async with ClaudeSDKClient(options(cli_path=watched.path, can_use_tool=deny)) as client:
        await turn(client, "go")
    asked, = watched.questions("can_use_tool")
    assert {"tool_name", "display_name", "input", "description", "permission_suggestions", "tool_use_id"} <= set(asked)
    assert asked["permission_suggestions"] == [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
    assert asked["tool_use_id"] == "call_w" and asked["input"]["content"] == "written"


async def test_a_function_of_the_host_is_reached_by_the_steps_of_mcp(model, watched):
    @tool("add", "Adds", {"a": int})
    async def add(args):
        return {"content": [{"type": "text", "text": "5"}]}

    model(say(call("mcp__calc__add", {"a": 5})), say("done"))
    chosen = options(
        cli_path=watched.path, mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        allowed_tools=["mcp__calc__add"],
    )
    async with ClaudeSDKClient(chosen) as client:
        await turn(client, "go")
    asked = watched.questions("mcp_message")
    methods = [request["message"]["method"] for request in asked]
    assert methods[:2] == ["initialize", "notifications/initialized"] and methods[-1] == "tools/call"
    assert "tools/list" in methods
    assert {request["server_name"] for request in asked} == {"calc"}
    given = watched.arguments()
    assert json.loads(given[given.index("--mcp-config") + 1]) == {"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}}


async def test_requests_are_answered_in_the_words_of_the_table(model, watched):
    model(say("hi"))
    async with ClaudeSDKClient(options(cli_path=watched.path, model="m")) as client:
        await client.interrupt()
        await client.set_model("other")
        await client.set_model(None)
        await client.set_permission_mode("plan")
        await client.get_context_usage()
        await client.get_mcp_status()
        await turn(client, "hi")

    def answers(subtype):
        return [answer["response"] for answer in watched.replies(subtype)]

    assert answers("interrupt")[0]["still_queued"] == []
    assert [answer["model"] for answer in answers("set_model")] == ["other", "m"]
    assert answers("set_permission_mode")[0]["mode"] == "plan"
    assert answers("mcp_status")[0]["mcpServers"] == []
    assert {
        "categories", "totalTokens", "maxTokens", "rawMaxTokens", "percentage", "model", "isAutoCompactEnabled",
        "memoryFiles", "mcpTools", "agents", "gridRows",
    } <= set(answers("get_context_usage")[0])
    told, = lines(watched, "system", "status")
    assert (told["status"], told["permissionMode"]) == (None, "plan")


@pytest.mark.parametrize("subtype", ["get_binary_version", "no_such_thing", ""])
async def test_a_request_that_is_not_known_is_an_error_and_no_end(model, watched, subtype):
    model(say("still here"))
    async with ClaudeSDKClient(options(cli_path=watched.path)) as client:
        with pytest.raises(Exception, match="subtype"):
            await client._query._send_control_request({"subtype": subtype})
        assert result(await turn(client, "hi")).result == "still here"
    answer, = watched.replies(subtype)
    assert answer["subtype"] == "error" and isinstance(answer["error"], str)


async def test_every_line_of_a_turn_has_the_fields_of_the_reference(model, watched):
    model(say({"thought": "hm"}, "I write", WRITE), say("done"))
    await run("go", cli_path=watched.path, permission_mode="acceptEdits")
    said = [m for m in watched.said() if not m["type"].startswith("control_")]
    assert all(m["uuid"] and m["session_id"] for m in said)
    assert len({m["uuid"] for m in said}) == len(said)
    opening, = lines(watched, "system", "init")
    assert {
        "cwd", "tools", "mcp_servers", "model", "permissionMode", "slash_commands", "apiKeySource",
        "claude_code_version", "output_style", "agents", "skills", "plugins",
    } <= set(opening)
    spoken = lines(watched, "assistant")
    assert [[block["type"] for block in m["message"]["content"]] for m in spoken] == [
        ["thinking"], ["text"], ["tool_use"], ["text"],
    ]
    assert all({"id", "model", "content", "usage", "stop_reason"} <= set(m["message"]) for m in spoken)
    assert len({m["message"]["id"] for m in spoken[:3]}) == 1
    assert spoken[0]["message"]["content"][0]["signature"] == ""
    assert all(m["parent_tool_use_id"] is None for m in spoken)
    answer, = lines(watched, "user")
    assert {"tool_use_id", "content"} <= set(answer["message"]["content"][0])
    assert answer["parent_tool_use_id"] is None and "tool_use_result" in answer
    end, = lines(watched, "result")
    assert {
        "subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id", "stop_reason",
        "total_cost_usd", "usage", "modelUsage", "permission_denials", "terminal_reason", "result",
    } <= set(end)
    assert end["terminal_reason"] == "completed" and end["num_turns"] == 2


async def test_an_interrupt_is_told_in_its_order(model, watched):
    model(say("I was ", gate("never")))
    async with ClaudeSDKClient(options(cli_path=watched.path, include_partial_messages=True)) as client:
        await client.query("talk")
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and message.event.get("delta", {}).get("text"):
                await client.interrupt()
    kinds = [m["type"] for m in watched.said() if m["type"] not in ("stream_event", "system")]
    assert kinds == ["control_response", "control_response", "assistant", "user", "result"]
    assert lines(watched, "assistant")[0]["aborted"] is True
    assert lines(watched, "result")[0]["terminal_reason"] == "aborted_streaming"


async def test_the_session_of_a_line_of_the_user_is_ignored_and_its_uuid_kept(model, watched):
    model(say("hi"))
    name = "6f1f1c3c-6b1e-4f7e-9a51-0d5f3f6f0a11"

    async def prompts():
        yield {**user("hello"), "session_id": "something else", "uuid": name}

    chosen = options(cli_path=watched.path, extra_args={"replay-user-messages": None})
    messages = [message async for message in query(prompt=prompts(), options=chosen)]
    assert result(messages).session_id != "something else"
    assert [m["uuid"] for m in lines(watched, "user")] == [name]


async def test_a_query_without_callbacks_ends_its_input_and_still_gets_its_turn(model):
    mock = model(say("slow ", gate("held"), "but sure"))

    async def release():
        await mock.reached("held")
        mock.open("held")

    releasing = asyncio.create_task(release())
    assert result(await run("hi")).result == "slow but sure"
    await releasing


async def test_a_start_that_fails_is_no_hang(model, place):
    model(say("never"))
    with pytest.raises(ProcessError) as raised:
        await run("hi", settings=str(place.home / "nowhere.json"))
    assert raised.value.exit_code not in (0, None)


async def test_an_interrupt_says_which_prompts_still_wait(model, watched):
    mock = model(say("a", gate("never")), say("b"))
    name = "6f1f1c3c-6b1e-4f7e-9a51-0d5f3f6f0a12"

    async def second():
        yield {**user("two"), "uuid": name}

    async with ClaudeSDKClient(options(cli_path=watched.path)) as client:
        await client.query("one")
        await mock.reached("never")
        await client.query(second())
        await client.interrupt()
        ends = [m async for m in client.receive_response()] + [m async for m in client.receive_response()]
    assert [m.subtype for m in ends if isinstance(m, ResultMessage)] == ["error_during_execution", "success"]
    assert watched.replies("interrupt")[0]["response"]["still_queued"] == [name]
