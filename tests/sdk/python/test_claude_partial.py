"""Claude's Python SDK: messages piece by piece."""

import json

import pytest
from claude import calls, events, options, run, text
from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ResultMessage, StreamEvent
from mock_model import call, gate, piece, raw, say

pytestmark = pytest.mark.anyio


def joined(stream, kind, field):
    """The pieces of one kind, joined."""
    deltas = [e["delta"] for e in stream if e["type"] == "content_block_delta"]
    return "".join(d[field] for d in deltas if d["type"] == kind)


def messages_of(stream):
    """The stream cut into its messages, each checked for its order."""
    cut, current = [], None
    for event in stream:
        if event["type"] == "message_start":
            assert current is None
            current = []
        assert current is not None, f"{event['type']} outside a message"
        current.append(event)
        if event["type"] == "message_stop":
            cut.append(current)
            current = None
    assert current is None
    for message in cut:
        kinds = [event["type"] for event in message]
        assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"]
        index, open_block = 0, False
        for event in message[1:-2]:
            assert event["index"] == index
            match event["type"]:
                case "content_block_start":
                    assert not open_block
                    open_block = True
                case "content_block_delta":
                    assert open_block
                case "content_block_stop":
                    assert open_block
                    open_block, index = False, index + 1
        assert not open_block
    return cut


async def test_without_the_flag_there_are_no_pieces(model):
    model(say("a", "b"))
    assert events(await run("hi")) == []


async def test_pieces_are_in_order_and_add_up(model):
    model(say({"thought": "hm "}, {"thought": "well"}, "one ", "two ", call("list_directory", {"path": "."})), say("three ", "four"))
    messages = await run("hi", include_partial_messages=True)
    first, second = messages_of(events(messages))
    assert [e["content_block"]["type"] for e in first if e["type"] == "content_block_start"] == [
        "thinking", "text", "tool_use",
    ]
    assert joined(first, "thinking_delta", "thinking") == "hm well"
    assert joined(first, "text_delta", "text") + joined(second, "text_delta", "text") == text(messages)
    assert first[-2]["delta"]["stop_reason"] == "tool_use"
    assert second[-2]["delta"]["stop_reason"] == "end_turn"
    assert second[-2]["usage"]["output_tokens"] == 5


async def test_the_whole_message_has_the_id_of_its_pieces(model):
    model(say("one ", "two"))
    messages = await run("hi", include_partial_messages=True)
    started = events(messages)[0]["message"]["id"]
    assert {m.message_id for m in messages if isinstance(m, AssistantMessage)} == {started}


async def test_arguments_of_a_call_stream_in_pieces(model, place):
    (place.work / "notes.txt").write_text("milk")
    start = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": ""}}
    bits = ['{"file', '_path": ', '"notes', '.txt"}']
    more = [piece(tool_calls=[{"index": 0, "function": {"arguments": bit}}]) for bit in bits]
    model(raw(piece(role="assistant", tool_calls=[start]), *more, piece(finish="tool_calls")), say("done"))
    messages = await run("hi", include_partial_messages=True)
    first = messages_of(events(messages))[0]
    pieces = [e["delta"]["partial_json"] for e in first if e["type"] == "content_block_delta"]
    assert len([p for p in pieces if p]) == len(bits)
    assert json.loads("".join(pieces)) == calls(messages)[0].input


async def test_a_piece_arrives_before_the_next_is_said(model):
    mock = model(say("early ", gate("half"), "late"))
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("hi")
        seen = []
        async for message in client.receive_response():
            if isinstance(message, StreamEvent) and message.event.get("delta", {}).get("text"):
                seen.append(message.event["delta"]["text"])
                if seen == ["early "]:
                    await mock.reached("half")
                    mock.open("half")
            if isinstance(message, ResultMessage):
                assert message.result == "early late"
    assert "".join(seen) == "early late"
