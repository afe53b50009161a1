"""Claude's Python SDK: tools that live in the host, and servers beside it."""

import sys

import pytest
from claude import calls, init, options, result, run, said, tool_results, turn
from claude_agent_sdk import ClaudeSDKClient, create_sdk_mcp_server, tool
from mock_model import call, say
from test_claude_prompts import PIXEL

pytestmark = pytest.mark.anyio

SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method = request["method"]
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "outside", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "shout", "description": "Shouts", "inputSchema": {
            "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": request["params"]["arguments"]["word"].upper()}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@tool("add", "Adds two numbers", {"a": float, "b": float})
async def add(args):
    return {"content": [{"type": "text", "text": f"the sum is {args['a'] + args['b']}"}]}


@tool("refuse", "Always fails", {})
async def refuse(args):
    return {"content": [{"type": "text", "text": "out of order"}], "is_error": True}


@tool("crash", "Raises", {})
async def crash(args):
    raise RuntimeError("a bug in the host")


@tool("picture", "Returns a picture", {})
async def picture(args):
    return {"content": [{"type": "text", "text": "here"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]}


def calculator():
    return create_sdk_mcp_server("calc", "1.0", [add, refuse, crash, picture])


async def use(mock_calls, **chosen):
    servers = chosen.pop("mcp_servers", None) or {"calc": calculator()}
    async with ClaudeSDKClient(options(mcp_servers=servers, **chosen)) as client:
        return await turn(client, "go")


async def test_a_function_of_the_host_is_a_tool(model):
    mock = model(say(call("mcp__calc__add", {"a": 2, "b": 3})), say("5"))
    messages = await use(mock, allowed_tools=["mcp__calc__add"])
    assert "mcp__calc__add" in mock.tools(0)
    assert mock.results() == ["the sum is 5"] or "the sum is 5" in mock.results()[0]
    assert calls(messages)[0].name == "mcp__calc__add"
    assert {"name": "calc", "status": "connected"} in [
        {key: server[key] for key in ("name", "status")} for server in init(messages)["mcp_servers"]
    ]
    assert "mcp__calc__add" in init(messages)["tools"]


async def test_its_schema_reaches_the_model(model):
    mock = model(say("ok"))
    await use(mock)
    offered = {t["function"]["name"]: t["function"] for t in mock.requests()[0]["tools"]}
    assert offered["mcp__calc__add"]["description"] == "Adds two numbers"
    assert set(offered["mcp__calc__add"]["parameters"]["properties"]) == {"a", "b"}


async def test_a_function_needs_permission_like_any_tool(model):
    mock = model(say(call("mcp__calc__add", {"a": 2, "b": 3})), say("a pity"))
    messages = await use(mock)
    assert result(messages).permission_denials[0]["tool_name"] == "mcp__calc__add"
    assert "the sum" not in mock.results()[0]


@pytest.mark.parametrize(("name", "why"), [("refuse", "out of order"), ("crash", "a bug in the host")])
async def test_a_failing_function_is_an_error_result(model, name, why):
    mock = model(say(call(f"mcp__calc__{name}")), say("a pity"))
    messages = await use(mock, allowed_tools=["mcp__calc"])
    assert tool_results(messages)[0].is_error is True
    assert why in said(tool_results(messages)[0])
    assert why in mock.results()[0]
    assert result(messages).subtype == "success"


async def test_an_image_of_a_function_reaches_the_model(model):
    mock = model(say(call("mcp__calc__picture")), say("nice"))
    await use(mock, allowed_tools=["mcp__calc__picture"])
    parts = [p for m in mock.messages() if isinstance(m["content"], list) for p in m["content"]]
    assert [p["image_url"]["url"] for p in parts if p["type"] == "image_url"] == [f"data:image/png;base64,{PIXEL}"]


async def test_two_servers_stand_side_by_side(model):
    @tool("add", "Joins two words", {"a": str, "b": str})
    async def join(args):
        return {"content": [{"type": "text", "text": args["a"] + args["b"]}]}

    mock = model(
        say(call("mcp__calc__add", {"a": 1, "b": 1}), call("mcp__words__add", {"a": "x", "b": "y"})), say("done")
    )
    servers = {"calc": calculator(), "words": create_sdk_mcp_server("words", "1.0", [join])}
    await use(mock, mcp_servers=servers, allowed_tools=["mcp__calc__add", "mcp__words__add"])
    assert "the sum is 2" in mock.results()[0]
    assert "xy" in mock.results()[1]


async def test_a_one_shot_query_can_call_functions(model):
    mock = model(say(call("mcp__calc__add", {"a": 2, "b": 2})), say("4"))
    messages = await run("go", mcp_servers={"calc": calculator()}, allowed_tools=["mcp__calc__add"])
    assert "the sum is 4" in mock.results()[0]
    assert result(messages).result == "4"


async def test_a_server_beside_the_host_is_started(model, place):
    program = place.home / "server.py"
    program.write_text(SERVER)
    mock = model(say(call("mcp__outside__shout", {"word": "hey"})), say("done"))
    servers = {"outside": {"type": "stdio", "command": sys.executable, "args": [str(program)]}}
    await use(mock, mcp_servers=servers, allowed_tools=["mcp__outside__shout"])
    assert "HEY" in mock.results()[0]


async def test_servers_can_come_from_a_file(model, place):
    program, config = place.home / "server.py", place.home / "mcp.json"
    program.write_text(SERVER)
    config.write_text(
        '{"mcpServers": {"outside": {"command": "%s", "args": ["%s"]}}}' % (sys.executable, program)
    )
    mock = model(say("ok"))
    await use(mock, mcp_servers=str(config), strict_mcp_config=True)
    assert "mcp__outside__shout" in mock.tools()


async def test_the_status_of_servers_can_be_asked(model):
    model(say("ok"))
    async with ClaudeSDKClient(options(mcp_servers={"calc": calculator()})) as client:
        await turn(client, "hi")
        server, = (await client.get_mcp_status())["mcpServers"]
    assert (server["name"], server["status"]) == ("calc", "connected")
    assert {t["name"] for t in server["tools"]} == {"add", "refuse", "crash", "picture"}
    assert server["serverInfo"]["name"] == "calc"


async def test_a_server_can_be_switched_off_and_on(model):
    mock = model(say("one"), say("two"))
    async with ClaudeSDKClient(options(mcp_servers={"calc": calculator()})) as client:
        await client.toggle_mcp_server("calc", enabled=False)
        await turn(client, "hi")
        await client.toggle_mcp_server("calc", enabled=True)
        await client.reconnect_mcp_server("calc")
        await turn(client, "hi")
    assert "mcp__calc__add" not in mock.tools(0)
    assert "mcp__calc__add" in mock.tools(1)
