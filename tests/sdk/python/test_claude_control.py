"""Claude's Python SDK: what the host asks and turns while a conversation runs, above all stopping it."""

import asyncio

import pytest
from claude import options, result, text, tool_results, turn
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    UserMessage,
)
from mock_model import call, gate, say, text_of

pytestmark = pytest.mark.anyio


def interrupted(messages, words):
    """Whether the user's words of an interruption are there, once, before the result."""
    texts = [
        block.text
        for m in messages
        if isinstance(m, UserMessage) and isinstance(m.content, list)
        for block in m.content
        if isinstance(block, TextBlock)
    ] + [m.content for m in messages if isinstance(m, UserMessage) and isinstance(m.content, str)]
    return texts == [words]


async def test_an_interrupt_stops_the_words_and_keeps_the_session(model):
    mock = model(say("I was saying ", gate("never"), "more"), say("fresh"))
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("talk")
        messages = []
        async for message in client.receive_response():
            messages.append(message)
            if isinstance(message, StreamEvent) and message.event.get("delta", {}).get("text"):
                await client.interrupt()
        end = result(messages)
        assert (end.subtype, end.is_error) == ("error_during_execution", True)
        assert end.errors is not None
        assert text(messages) == "I was saying "
        assert interrupted(messages, "[Request interrupted by user]")
        await mock.gone(0)
        assert result(await turn(client, "go on")).result == "fresh"
    assert any("I was saying" in text_of(m) for m in mock.messages() if m["role"] == "assistant")


async def test_an_interrupt_stops_a_tool(model, place):
    started = place.work / "started"
    command = f"echo x > {started}; sleep 600"
    model(say(call("run_shell_command", {"command": command}, id="call_1")), say("fresh"))
    async with ClaudeSDKClient(options(permission_mode="bypassPermissions")) as client:
        await client.query("run")

        async def stop():
            while not started.exists():
                await asyncio.sleep(0.01)
            await client.interrupt()

        stopping = asyncio.create_task(stop())
        messages = [message async for message in client.receive_response()]
        await stopping
        assert result(messages).subtype == "error_during_execution"
        answer, = tool_results(messages)
        assert (answer.tool_use_id, answer.is_error) == ("call_1", True)
        assert interrupted(messages, "[Request interrupted by user for tool use]")
        assert result(await turn(client, "again")).result == "fresh"


async def test_an_interrupt_takes_a_question_back(model, place):
    model(say(call("write_file", {"file_path": "out.txt", "content": "x"})), say("fresh"))
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(tool, tool_input, context):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return PermissionResultAllow()

    async with ClaudeSDKClient(options(can_use_tool=slow)) as client:
        await client.query("write")

        async def stop():
            await asked.wait()
            await client.interrupt()

        stopping = asyncio.create_task(stop())
        messages = [message async for message in client.receive_response()]
        await stopping
        assert result(messages).subtype == "error_during_execution"
        await asyncio.wait_for(cancelled.wait(), 10)
        assert result(await turn(client, "again")).result == "fresh"
    assert not (place.work / "out.txt").exists()


async def test_an_interrupt_of_nothing_is_answered(model):
    model(say("hi"))
    async with ClaudeSDKClient(options()) as client:
        await client.interrupt()
        assert result(await turn(client, "hi")).result == "hi"


async def test_the_model_can_be_changed_and_changed_back(model):
    mock = model(say("a"), say("b"), say("c"), say("d"))
    async with ClaudeSDKClient(options(model="first")) as client:
        await turn(client, "1")
        await client.set_model("second")
        await turn(client, "2")
        await client.set_model(None)
        await turn(client, "3")
        await client.set_model("third")
        await client.set_model("default")
        await turn(client, "4")
    assert [request["model"] for request in mock.requests()] == ["first", "second", "first", "first"]


async def test_the_mode_can_be_changed(model, place):
    write = call("write_file", {"file_path": "out.txt", "content": "x"})
    model(say(write), say("no"), say(write), say("yes"))
    async with ClaudeSDKClient(options()) as client:
        denied = await turn(client, "1")
        await client.set_permission_mode("acceptEdits")
        allowed = await turn(client, "2")
    assert len(result(denied).permission_denials) == 1
    assert result(allowed).permission_denials == []
    assert (place.work / "out.txt").exists()
    told = [m.data for m in allowed if isinstance(m, SystemMessage) and m.subtype == "status"]
    assert [t["permissionMode"] for t in told] == ["acceptEdits"]


async def test_a_mode_that_does_not_exist_is_an_error_and_no_end(model):
    model(say("hi"))
    async with ClaudeSDKClient(options()) as client:
        with pytest.raises(Exception, match="bogus"):
            await client.set_permission_mode("bogus")
        assert result(await turn(client, "hi")).result == "hi"


async def test_the_use_of_the_context_can_be_asked(model):
    model(say("hi", {"usage": {"prompt_tokens": 1000, "completion_tokens": 24}}))
    async with ClaudeSDKClient(options(model="m")) as client:
        await turn(client, "hi")
        usage = await client.get_context_usage()
    assert usage["totalTokens"] >= 1000
    assert usage["maxTokens"] >= usage["totalTokens"] and usage["rawMaxTokens"] >= usage["maxTokens"]
    assert usage["model"] == "m" and 0 <= usage["percentage"] <= 100
    assert all({"name", "tokens", "color"} <= set(category) for category in usage["categories"])


async def test_the_server_says_what_it_is(model):
    model()
    async with ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
    assert {"commands", "agents", "output_style", "available_output_styles", "models", "account", "pid"} <= set(info)
    assert all({"name", "description"} <= set(entry) for entry in info["commands"] + info["agents"])
    assert info["models"][0]["value"] and info["claude_code_version"]


@pytest.mark.parametrize("ask", ["stop_task", "rewind_files", "reconnect_mcp_server"])
async def test_a_request_about_what_is_not_there_is_an_error_and_no_end(model, ask):
    model(say("hi"), say("still here"))
    async with ClaudeSDKClient(options(enable_file_checkpointing=True)) as client:
        await turn(client, "hi")
        with pytest.raises(Exception, match="nothing-of-this-name"):
            await getattr(client, ask)("nothing-of-this-name")
        assert result(await turn(client, "hi")).result == "still here"


async def test_files_can_be_put_back(model, place):
    (place.work / "out.txt").write_text("before")
    write = call("write_file", {"file_path": "out.txt", "content": "after"})
    model(say(call("read_file", {"file_path": "out.txt"})), say(write), say("done"))
    chosen = options(
        permission_mode="acceptEdits", enable_file_checkpointing=True, extra_args={"replay-user-messages": None}
    )
    async with ClaudeSDKClient(chosen) as client:
        messages = await turn(client, "write")
        prompt = next(m for m in messages if isinstance(m, UserMessage) and m.content == "write")
        assert (place.work / "out.txt").read_text() == "after"
        await client.rewind_files(prompt.uuid)
        assert (place.work / "out.txt").read_text() == "before"


async def test_prompts_queue_behind_a_running_turn(model):
    mock = model(say("one", gate("held")), say("two"))
    async with ClaudeSDKClient(options()) as client:
        await client.query("1")
        await mock.reached("held")
        await client.query("2")
        mock.open("held")
        ends = []
        async for message in client.receive_messages():
            if isinstance(message, ResultMessage):
                ends.append(message.result)
                if len(ends) == 2:
                    break
    assert ends == ["one", "two"]
