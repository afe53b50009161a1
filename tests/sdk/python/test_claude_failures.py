"""Claude's Python SDK: models that fail, limits that are reached, output that is too long."""

import json

import pytest
from claude import options, result, run, said, text, tool_results, turn
from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ResultError, ResultMessage, SystemMessage, query
from mock_model import call, fail, say

pytestmark = pytest.mark.anyio

LIST = call("list_directory", {"path": "."})


async def failing(**chosen):
    """The messages of a query that ends with an error, and the error that the SDK raises for it."""
    seen = []
    with pytest.raises(ResultError) as raised:
        async for message in query(prompt="hi", options=options(**chosen)):
            seen.append(message)
    return seen, raised.value


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [(400, "your prompt is odd", "invalid_request"), (401, "who are you", "authentication_failed")],
)
async def test_a_refusal_of_the_model_is_an_api_error(model, status, message, kind):
    mock = model(fail(status, message))
    seen, error = await failing()
    assert error.exit_code == 1
    assert (error.subtype, error.terminal_reason, error.api_error_status) == ("success", "api_error", status)
    assert error.result.startswith(f"API Error: {status}") and message in error.result
    spoken = [m for m in seen if isinstance(m, AssistantMessage)]
    assert [m.model for m in spoken] == ["<synthetic>"]
    assert spoken[0].error == kind
    assert isinstance(seen[-1], ResultMessage) and seen[-1].is_error
    assert len(mock.requests()) == 1


async def test_a_server_that_is_busy_is_tried_again(model):
    busy = {"steps": [{"status": 503, "headers": {"retry-after": "0"}, "body": "busy"}]}
    model(busy, say("here I am"))
    messages = await run("hi")
    assert result(messages).result == "here I am"
    retries = [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "api_retry"]
    assert [r["attempt"] for r in retries] == [1]
    assert {"max_retries", "retry_delay_ms", "error_status", "error"} <= set(retries[0])
    assert retries[0]["error_status"] == 503


async def test_a_server_that_stays_broken_is_an_api_error(model):
    broken = {"steps": [{"status": 500, "headers": {"retry-after": "0"}, "body": "broken"}]}
    model(broken, loop=True)
    _, error = await failing()
    assert (error.subtype, error.terminal_reason, error.api_error_status) == ("success", "api_error", 500)


async def test_a_server_that_is_not_there_is_an_api_error(place):
    settings = json.dumps({"model": {"maxRetries": 0}})
    (place.home / ".qwen").mkdir()
    (place.home / ".qwen" / "settings.json").write_text(settings)
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "m"}
    seen, error = await failing(env=env)
    assert (error.subtype, error.terminal_reason) == ("success", "api_error")
    assert error.result.startswith("API Error")


async def test_garbage_of_the_model_ends_the_turn_and_not_the_session(model):
    garbage = {"steps": [{"raw": "data: {\"choices\": [[[\n\n"}, {"raw": "\x00\x01 what is this\n\n"}, {"close": True}]}
    model(say(call("read_file", "{\"file_path\": "), call("no_such_tool")), say("sorry"), *[garbage] * 8, say("better"))
    async with ClaudeSDKClient(options()) as client:
        first = await turn(client, "one")
        assert [r.is_error for r in tool_results(first)] == [True, True]
        assert result(first).result == "sorry"
        await turn(client, "two")
        assert result(await turn(client, "three")) is not None


async def test_no_model_is_an_error_result_and_not_a_hang(place):
    _, error = await failing()
    assert error.exit_code == 1


async def test_the_limit_of_turns_is_a_result(model):
    mock = model(say(LIST), loop=True)
    seen, error = await failing(max_turns=2)
    assert (error.subtype, error.terminal_reason) == ("error_max_turns", "max_turns")
    assert error.errors
    assert len(mock.requests()) == 2
    assert seen[-1].num_turns in (2, 3)


async def test_the_limit_of_money_is_taken(model):
    model(say("cheap"))
    prices = json.dumps({"model": {"prices": {"mock": {"input": 1, "output": 1}}}})
    assert result(await run("hi", max_budget_usd=5.0, settings=prices)).result == "cheap"


async def test_structured_output_follows_its_schema(model):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    mock = model(say(call("StructuredOutput", {"n": 42})), say("done"))
    messages = await run("count", output_format={"type": "json_schema", "schema": schema})
    tools = [t["function"]["parameters"].get("properties", {}) for t in mock.requests()[0]["tools"]]
    offered = [properties for properties in tools if "n" in properties]
    assert len(offered) == 1
    assert result(messages).structured_output == {"n": 42}


async def test_output_longer_than_a_line_may_be_is_cut(model, place):
    (place.work / "big.txt").write_text("0123456789abcdef\n" * 150_000)
    mock = model(say(call("run_shell_command", {"command": "cat big.txt"})), say("long"))
    messages = await run("show", permission_mode="bypassPermissions")
    assert result(messages).result == "long"
    shown = said(tool_results(messages)[0])
    assert "0123456789abcdef" in shown and len(shown) < 1_000_000
    assert len(mock.results()[0]) < 1_000_000


async def test_a_long_answer_of_the_model_is_read(model):
    model(say(*["x" * 10_000] * 60))
    assert len(text(await run("talk"))) == 600_000
