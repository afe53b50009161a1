"""Claude's Python SDK: sub-agents."""

import pytest
from claude import init, options, result, run
from claude_agent_sdk import AgentDefinition, AssistantMessage, ClaudeSDKClient, TextBlock, UserMessage
from mock_model import call, say, text_of

pytestmark = pytest.mark.anyio

REVIEWER = AgentDefinition(description="Reviews code", prompt="You review code with care.", tools=["Read"])
START = call("agent", {"description": "review", "prompt": "Look at a.txt", "subagent_type": "reviewer"}, id="call_a")


async def test_an_agent_of_the_host_does_its_part(model, place):
    (place.work / "a.txt").write_text("let x = 1")
    mock = model(
        say(START), say(call("read_file", {"file_path": "a.txt"}, id="call_r")), say("Looks fine."), say("All is well.")
    )
    messages = await run("review", agents={"reviewer": REVIEWER})
    assert result(messages).result == "All is well."
    assert "You review code with care." in mock.system(1)
    assert mock.tools(1) == ["Read"]
    assert text_of(mock.messages(1)[-1]).endswith("Look at a.txt")
    assert "Looks fine." in mock.results(3)[0]


async def test_its_lines_name_the_call_that_started_it(model, place):
    (place.work / "a.txt").write_text("let x = 1")
    model(
        say(START), say(call("read_file", {"file_path": "a.txt"}, id="call_r")), say("Looks fine."), say("All is well.")
    )
    messages = await run("review", agents={"reviewer": REVIEWER}, forward_subagent_text=True)
    spoken = [m for m in messages if isinstance(m, AssistantMessage | UserMessage)]
    inside = [m for m in spoken if m.parent_tool_use_id == "call_a"]
    assert inside
    assert {m.parent_tool_use_id for m in spoken} == {None, "call_a"}
    texts = [b.text for m in spoken if m.parent_tool_use_id is None and isinstance(m, AssistantMessage)
             for b in m.content if isinstance(b, TextBlock)]
    assert texts == ["All is well."]


async def test_agents_are_listed(model):
    model(say("hi"))
    async with ClaudeSDKClient(options(agents={"reviewer": REVIEWER})) as client:
        listed = {agent["name"]: agent["description"] for agent in (await client.get_server_info())["agents"]}
        await client.query("hi")
        opening = init([m async for m in client.receive_response()])
    assert listed["reviewer"] == "Reviews code"
    assert "reviewer" in opening["agents"]
