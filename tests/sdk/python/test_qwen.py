"""The Python SDK of Qwen Code, and what its own executable gets wrong."""

import asyncio
import os
import uuid

import pytest
from mock_model import call, gate, piece, raw, say, text_of
from qwen_code_sdk import ProcessExitError, query, query_sync
from test_claude_prompts import PIXEL

pytestmark = pytest.mark.anyio

WRITE = call("write_file", {"file_path": "out.txt", "content": "written"}, id="call_w")


def chosen(**more):
    return {"path_to_qwen_executable": os.environ["QWEN_BIN"], **more}


async def run(prompt, **more):
    """All messages of a query."""
    async with query(prompt, chosen(**more)) as running:
        return [message async for message in running]


def user(content, session=""):
    return {
        "type": "user", "session_id": session, "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
    }


async def lines(*entries):
    for entry in entries:
        yield entry


def results(messages):
    return [m for m in messages if m["type"] == "result"]


def result(messages):
    end, = results(messages)
    assert messages[-1] is end
    return end


def text(messages):
    spoken = [m["message"]["content"] for m in messages if m["type"] == "assistant"]
    return "".join(block["text"] for content in spoken for block in content if block["type"] == "text")


def tool_results(messages):
    said = [m["message"]["content"] for m in messages if m["type"] == "user"]
    return [b for content in said if isinstance(content, list) for b in content if b["type"] == "tool_result"]


class Asked:
    """A permission callback that remembers what it was asked."""

    def __init__(self, answer):
        self.answer, self.questions = answer, []

    def callback(self):
        async def can_use_tool(tool, tool_input, context):
            self.questions.append((tool, tool_input, context))
            return self.answer

        return can_use_tool


async def test_a_prompt_is_answered_by_one_success(model):
    model(say("Hello ", "there"))
    wanted = str(uuid.uuid4())
    messages = await run("hi", session_id=wanted)
    opening = messages[0]
    assert (opening["type"], opening["subtype"], opening["session_id"]) == ("system", "init", wanted)
    assert opening["permission_mode"] == "default"
    assert opening["qwen_code_version"]
    assert text(messages) == "Hello there"
    end = result(messages)
    assert (end["subtype"], end["is_error"], end["result"]) == ("success", False, "Hello there")
    assert end["session_id"] == wanted and end["permission_denials"] == []


async def test_every_message_passes_the_guards(model):
    model(say({"thought": "hm"}, WRITE), say("done"))
    fields = {
        "user": {"message"},
        "assistant": {"uuid", "message", "session_id", "parent_tool_use_id"},
        "system": {"subtype", "uuid", "session_id"},
        "result": {"subtype", "duration_ms", "is_error", "uuid", "session_id"},
        "stream_event": {"uuid", "session_id", "event", "parent_tool_use_id"},
    }
    for message in await run("hi", include_partial_messages=True):
        assert fields[message["type"]] <= set(message), message


async def test_lines_of_a_prompt_are_turns_of_one_conversation(model):
    mock = model(say("one", gate("both")), say("two"))
    second = asyncio.Event()

    async def prompts():
        yield user("first")
        await mock.reached("both")
        yield user("second")
        second.set()
        mock.open("both")

    async with query(prompts(), chosen()) as running:
        ends = [m["result"] async for m in running if m["type"] == "result"]
    assert ends == ["one", "two"]
    assert [m["role"] for m in mock.messages() if m["role"] != "system"] == ["user", "assistant", "user"]


def test_the_synchronous_face_works_too(model):
    model(say("hi"))
    with query_sync("hi", chosen()) as running:
        messages = list(running)
    assert result(messages)["result"] == "hi"


async def test_an_allowed_call_runs(model, place):
    model(say(WRITE), say("done"))
    asked = Asked({"behavior": "allow"})
    messages = await run("go", can_use_tool=asked.callback())
    (tool, tool_input, context), = asked.questions
    assert tool == "write_file" and tool_input["content"] == "written"
    assert {s["type"] for s in context["suggestions"]} >= {"allow", "deny"}
    assert all(s["label"] for s in context["suggestions"])
    assert (place.work / "out.txt").read_text() == "written"
    assert tool_results(messages)[0]["is_error"] is False


async def test_a_changed_input_is_what_runs(model, place):
    model(say(WRITE), say("done"))
    asked = Asked({"behavior": "allow", "updatedInput": {"file_path": "other.txt", "content": "changed"}})
    await run("go", can_use_tool=asked.callback())
    assert (place.work / "other.txt").read_text() == "changed"
    assert not (place.work / "out.txt").exists()


async def test_a_denied_call_is_listed(model, place):
    mock = model(say(WRITE), say("a pity"))
    asked = Asked({"behavior": "deny", "message": "not today"})
    end = result(await run("go", can_use_tool=asked.callback()))
    assert not (place.work / "out.txt").exists()
    assert [d["tool_use_id"] for d in end["permission_denials"]] == ["call_w"]
    assert "not today" in mock.results()[0]


async def test_a_denial_can_end_the_turn(model):
    mock = model(say(WRITE), say("never"))
    asked = Asked({"behavior": "deny", "message": "stop", "interrupt": True})
    end = result(await run("go", can_use_tool=asked.callback()))
    assert end["subtype"] == "error_during_execution" and end["is_error"] is True
    assert end["error"]["message"]
    assert len(mock.requests()) == 1


@pytest.mark.parametrize("mode", [None, "default", "plan"])
async def test_nothing_is_written_unasked(model, place, mode):
    model(say(WRITE), say("a pity"))
    more = {} if mode is None else {"permission_mode": mode}
    await run("go", **more)
    assert not (place.work / "out.txt").exists()


@pytest.mark.parametrize("mode", ["auto-edit", "yolo"])
async def test_a_mode_that_writes_does(model, place, mode):
    model(say(WRITE), say("done"))
    assert result(await run("go", permission_mode=mode))["permission_denials"] == []
    assert (place.work / "out.txt").exists()


async def test_a_question_is_taken_back_when_the_turn_is_interrupted(model):
    model(say(WRITE), say("fresh"))
    asked, taken_back = asyncio.Event(), asyncio.Event()

    async def slow(tool, tool_input, context):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            if context["cancel_event"].is_set():
                taken_back.set()

    go_on = asyncio.Event()

    async def prompts():
        yield user("go")
        await go_on.wait()
        yield user("again")

    async with query(prompts(), chosen(can_use_tool=slow)) as running:

        async def stop():
            await asked.wait()
            await running.interrupt()

        stopping = asyncio.create_task(stop())
        ends = []
        async for message in running:
            if message["type"] == "result":
                ends.append(message)
                go_on.set()
        await stopping
    await asyncio.wait_for(taken_back.wait(), 10)
    assert [end["subtype"] for end in ends] == ["error_during_execution", "success"]
    assert ends[0]["error"]["message"]


async def test_the_limit_of_turns_is_a_result_and_a_clean_end(model):
    mock = model(say(call("list_directory", {"path": "."})), loop=True)
    end = result(await run("go", max_session_turns=2))
    assert end["is_error"] is True and end["subtype"] == "error_max_turns"
    assert end["error"]["message"]
    assert len(mock.requests()) == 2


async def test_an_error_of_the_model_is_a_result(model):
    model({"steps": [{"status": 400, "body": {"error": {"message": "an odd prompt"}}}]})
    end = result(await run("go"))
    assert end["is_error"] is True
    assert "an odd prompt" in str(end)


async def test_an_image_is_no_text(model):
    mock = model(say("A pixel."))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    await run(lines(user([{"type": "text", "text": "What?"}, image])))
    assert PIXEL not in text_of(mock.messages()[-1])
    assert [p["type"] for p in mock.messages()[-1]["content"]] == ["text", "image_url"]


async def test_no_line_is_longer_than_the_reader_can_take(model, place):
    (place.work / "big.txt").write_text("0123456789abcdef\n" * 20_000)
    model(say(call("run_shell_command", {"command": "cat big.txt"})), say("x" * 200_000))
    messages = await run("go", permission_mode="yolo", include_partial_messages=True)
    assert result(messages)["subtype"] == "success"
    assert "0123456789abcdef" in str(tool_results(messages)[0]["content"])


async def test_arguments_stream_in_pieces(model):
    start = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "list_directory", "arguments": ""}}
    bits = ['{"pa', 'th": ', '"."}']
    more = [piece(tool_calls=[{"index": 0, "function": {"arguments": bit}}]) for bit in bits]
    model(raw(piece(role="assistant", tool_calls=[start]), *more, piece(finish="tool_calls")), say("done"))
    messages = await run("go", include_partial_messages=True)
    deltas = [m["event"].get("delta", {}) for m in messages if m["type"] == "stream_event"]
    pieces = [d["partial_json"] for d in deltas if d.get("type") == "input_json_delta"]
    assert len([p for p in pieces if p]) == 3 and "".join(pieces) == '{"path": "."}'


async def test_a_session_is_resumed_and_continued(model):
    mock = model(say("one"), say("two"), say("three"))
    session = result(await run("a"))["session_id"]
    assert result(await run("b", resume=session))["session_id"] == session
    assert result(await run("c", continue_session=True))["session_id"] == session
    history = [text_of(m) for m in mock.messages() if m["role"] in ("user", "assistant")]
    assert history == ["a", "one", "b", "two", "c"]


async def test_a_session_nobody_knows_is_an_error(model):
    mock = model(say("never"))
    unknown, seen = str(uuid.uuid4()), []
    # The SDK closes itself when the process fails, and then may find itself closed before it raises what it found.
    with pytest.raises((ProcessExitError, RuntimeError)):
        async with query("hi", chosen(resume=unknown)) as running:
            async for message in running:
                seen.append(message)
    assert all(unknown in str(m) for m in results(seen))
    assert mock.requests() == []


async def test_model_and_mode_can_be_changed(model, place):
    mock = model(say("one"), say(WRITE), say("two"))
    first = asyncio.Event()

    async def prompts():
        yield user("1")
        await first.wait()
        yield user("2")

    async with query(prompts(), chosen(model="first")) as running:
        ends = []
        async for message in running:
            if message["type"] == "result":
                ends.append(message)
                if len(ends) == 1:
                    await running.set_model("second")
                    await running.set_permission_mode("yolo")
                    assert isinstance((await running.supported_commands())["commands"], list)
                    assert (await running.mcp_server_status()) is not None
                    with pytest.raises(RuntimeError, match="Invalid permission mode: bogus"):
                        await running.set_permission_mode("bogus")
                    first.set()
    assert [r["model"] for r in mock.requests()] == ["first", "second", "second"]
    assert (place.work / "out.txt").exists()


async def test_tools_can_be_chosen_and_left_out(model):
    mock = model(say("a"), say("b"))
    await run("hi", core_tools=["read_file", "run_shell_command"])
    await run("hi", exclude_tools=["run_shell_command"])
    assert sorted(mock.tools(0)) == ["read_file", "run_shell_command"]
    assert "run_shell_command" not in mock.tools(1) and "read_file" in mock.tools(1)


async def test_system_prompts_reach_the_model(model):
    mock = model(say("a"), say("b"))
    await run("hi", system_prompt="Be a pirate.")
    await run("hi", append_system_prompt="Be polite.")
    assert "Be a pirate." in mock.system(0)
    assert "Be polite." in mock.system(1) and "Be a pirate." not in mock.system(1)


async def test_standard_error_reaches_the_callback(model):
    model(say("never"))
    said = []
    with pytest.raises((ProcessExitError, RuntimeError)):
        await run("go", resume=str(uuid.uuid4()), stderr=said.append)
    assert any("No conversation found" in line for line in said)


async def test_the_environment_of_the_options_reaches_commands(model):
    mock = model(say(call("run_shell_command", {"command": "echo $FLAVOUR"})), say("done"))
    await run("go", env={"FLAVOUR": "salty"}, permission_mode="yolo")
    assert "salty" in mock.results()[0]


async def test_a_request_outside_a_turn_gets_one_line(model, watched):
    model(say("one"), say("two"))
    first = asyncio.Event()

    async def prompts():
        yield user("1")
        await first.wait()
        yield user("2")

    options = {**chosen(), "path_to_qwen_executable": watched.path}
    async with query(prompts(), options) as running:
        async for message in running:
            if message["type"] == "result" and not first.is_set():
                await running.set_permission_mode("yolo")
                await running.set_model("second")
                await running.supported_commands()
                first.set()
    kinds = [line["type"] for line in watched.said()]
    assert kinds[0] == "control_response"
    between = kinds[kinds.index("result") + 1 :]
    assert between[:4] == ["control_response"] * 3 + ["system"]
