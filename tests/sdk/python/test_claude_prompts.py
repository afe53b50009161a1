"""Claude's Python SDK: prompts and what the model gets to see of them."""

import base64

import pytest
from claude import blocks, init, options, result, run, stream, text, turn, user
from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ThinkingBlock
from mock_model import say, text_of

pytestmark = pytest.mark.anyio

PIXEL = base64.b64encode(bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8ffff3f0005fe02fe"
    "a735810e0000000049454e44ae426082"
)).decode()


async def test_a_string_prompt_is_answered_by_one_success(model):
    mock = model(say("Hello ", "there"))
    messages = await run("Say hello")
    end = result(messages)
    assert (end.subtype, end.is_error, end.result, end.num_turns) == ("success", False, "Hello there", 1)
    assert text(messages) == "Hello there"
    assert text_of(mock.messages()[-1]).endswith("Say hello")
    assert end.session_id == init(messages)["session_id"]
    assert end.usage["input_tokens"] == 10 and end.usage["output_tokens"] == 5
    assert end.duration_ms >= 0 and end.duration_api_ms >= 0
    assert end.total_cost_usd is not None
    assert end.model_usage and end.permission_denials == []
    assert end.uuid


async def test_the_opening_line_says_what_runs(model, place):
    model(say("hi"))
    opening = init(await run("hi", model="some-model"))
    assert opening["cwd"] == str(place.work)
    assert opening["model"] == "some-model"
    assert opening["permissionMode"] == "default"
    assert opening["apiKeySource"]
    assert opening["output_style"] == "default"
    assert all(part.isdigit() for part in opening["claude_code_version"].split(".")[:3])
    for listed in ("tools", "mcp_servers", "slash_commands", "agents", "skills", "plugins"):
        assert isinstance(opening[listed], list), listed


async def test_every_message_carries_its_ids(model):
    model(say({"thought": "hm"}, "hi"))
    messages = await run("hi", include_partial_messages=True)
    session = result(messages).session_id
    ids = [getattr(m, "uuid", None) or m.data["uuid"] for m in messages]
    assert len(ids) == len(set(ids))
    assert {getattr(m, "session_id", None) or m.data["session_id"] for m in messages} == {session}


async def test_lines_of_a_prompt_stream_are_turns_of_one_conversation(model):
    mock = model(say("one"), say("two"))
    messages = await run(stream(user("first"), user("second")))
    assert text(messages) == "onetwo"
    history = [text_of(m) for m in mock.messages() if m["role"] in ("user", "assistant")]
    assert [entry.endswith(end) for entry, end in zip(history, ("first", "one", "second"), strict=True)] == [True] * 3


async def test_a_client_holds_a_conversation_of_many_turns(model):
    mock = model(say("one"), say("two"), say("three"))
    async with ClaudeSDKClient(options()) as client:
        ends = [result(await turn(client, prompt)) for prompt in ("a", "b", "c")]
    assert [end.result for end in ends] == ["one", "two", "three"]
    assert len({end.session_id for end in ends}) == 1
    assert [m["role"] for m in mock.messages() if m["role"] != "system"] == ["user", "assistant"] * 2 + ["user"]


async def test_every_turn_opens_with_init(model):
    model(say("one"), say("two"))
    async with ClaudeSDKClient(options()) as client:
        first, second = await turn(client, "a"), await turn(client, "b")
    assert init(first)["session_id"] == init(second)["session_id"]


async def test_a_system_prompt_replaces_ours(model):
    mock = model(say("ok"))
    await run("hi", system_prompt="You are a pirate.")
    assert "You are a pirate." in mock.system()


async def test_an_appended_system_prompt_keeps_ours(model):
    mock = model(say("plain"), say("more"))
    preset = {"type": "preset", "preset": "claude_code"}
    await run("hi", system_prompt=preset)
    await run("hi", system_prompt={**preset, "append": "Speak like a pirate."})
    plain, more = mock.system(0), mock.system(1)
    assert plain and plain.split("\n")[0] == more.split("\n")[0]
    assert "Speak like a pirate." in more and "pirate" not in plain


async def test_a_system_prompt_can_come_from_a_file(model, place):
    mock = model(say("ok"))
    (place.home / "prompt.md").write_text("You only rhyme.")
    await run("hi", system_prompt={"type": "file", "path": str(place.home / "prompt.md")})
    assert "You only rhyme." in mock.system()


async def test_the_model_option_reaches_the_request(model):
    mock = model(say("ok"))
    await run("hi", model="qwen-special")
    assert mock.requests()[0]["model"] == "qwen-special"


async def test_an_image_reaches_the_model_as_an_image(model):
    mock = model(say("A pixel."))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    messages = await run(stream(user([{"type": "text", "text": "What is this?"}, image])))
    assert result(messages).result == "A pixel."
    parts = mock.messages()[-1]["content"]
    assert [part["image_url"]["url"] for part in parts if part["type"] == "image_url"] == [
        f"data:image/png;base64,{PIXEL}"
    ]
    assert PIXEL not in text_of(mock.messages()[-1])


async def test_thinking_comes_as_blocks_of_its_own(model):
    model(say({"thought": "Let me "}, {"thought": "see."}, "Done."))
    messages = await run("think")
    assert [block.thinking for block in blocks(messages, ThinkingBlock)] == ["Let me see."]
    assert all(isinstance(block.signature, str) for block in blocks(messages, ThinkingBlock))
    assert result(messages).result == "Done."


async def test_blocks_of_one_message_share_its_id(model):
    model(say({"thought": "hm"}, "Done."))
    spoken = [m for m in await run("think") if isinstance(m, AssistantMessage)]
    assert [len(m.content) for m in spoken] == [1, 1]
    assert len({m.message_id for m in spoken}) == 1
