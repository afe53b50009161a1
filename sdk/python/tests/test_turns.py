"""Prompts, messages and results."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from conftest import Options, Script, call, hold, write

from qwen_agent_sdk import (
    AgentUsage,
    AssistantChunk,
    AssistantMessage,
    AsyncClient,
    CommandResult,
    ErrorMessage,
    Limits,
    PromptRejectedError,
    QwenAgentOptions,
    ResultMessage,
    SessionEvent,
    TerminalOutput,
    ToolCallReader,
    ToolDisplay,
    query,
)

pytestmark = pytest.mark.anyio


async def test_query_yields_messages_and_ends_with_the_result(options: Options) -> None:
    messages = [message async for message in query("Hi", options("Hello there."))]
    result = messages[-1]
    assert isinstance(result, ResultMessage)
    assert (result.text, result.summary, result.status, result.ok) == ("Hello there.", "Hello there.", "done", True)
    assert result.usage.total_tokens > 0
    assert result.session_id and result.prompt_id


async def test_chunks_joined_are_the_result_s_text(options: Options) -> None:
    text = "one two three four"
    opened = options([{"text": text, "split": "word"}], include_partial_messages=True)
    pieces = []
    async for message in query("Count", options=opened):
        if isinstance(message, AssistantChunk):
            pieces.append(message.text)
    assert isinstance(message, ResultMessage)
    assert "".join(pieces) == text == message.text
    assert len([piece for piece in pieces if piece]) == 4


@pytest.mark.parametrize("partial", [False, True])
async def test_the_final_answer_is_a_message_before_the_result(partial: bool, options: Options) -> None:
    calls = ([{"text": "Looking."}, call("list_directory", path=".")], "Found it.")
    opened = options(*calls, include_partial_messages=partial)
    messages = [m async for m in query("Look", options=opened)]
    whole = [m for m in messages if isinstance(m, AssistantMessage)]
    assert [(m.text, len(m.tool_calls)) for m in whole] == [("Looking.", 1), ("Found it.", 0)]
    assert messages[-2] is whole[-1] and isinstance(messages[-1], ResultMessage)
    assert [m.prompt_id for m in whole] == [messages[-1].prompt_id] * 2
    assert all(m.model() is not None for m in whole)
    assert not any(isinstance(m, TerminalOutput) for m in messages), "no empty output event ends the turn"


async def test_tool_calls_are_objects_in_both_formats(options: Options) -> None:
    calls = ([call("list_directory", id="c1", path=".")], "Done.")
    whole = [m async for m in query("Look", options=options(*calls)) if isinstance(m, AssistantMessage)]
    (from_message,) = whole[0].tool_calls
    reader = ToolCallReader()
    pieced = []
    async for message in query("Look", options=options(*calls, include_partial_messages=True)):
        if isinstance(message, AssistantChunk):
            pieced += reader.read(message)
    assert pieced == [from_message]
    assert (from_message.id, from_message.name, from_message.arguments) == ("c1", "list_directory", {"path": "."})


async def test_several_turns_share_one_conversation(options: Options) -> None:
    opened = options("First.", [{"expect": {"contains": "second question"}}, {"text": "Second."}])
    async with AsyncClient(opened) as client:
        assert (await client.ask("first question")).text == "First."
        second = await client.ask("second question")
        assert second.text == "Second."
        assert second.usage.prompt_tokens > 0
        assert client.last_result is second


async def test_prompts_from_an_async_iterable_get_a_result_each(options: Options) -> None:
    async def prompts() -> AsyncIterator[str]:
        yield "one"
        yield "two"
        yield "three"

    results = [m async for m in query(prompts(), options=options("1", "2", "3")) if isinstance(m, ResultMessage)]
    assert [result.text for result in results] == ["1", "2", "3"]


async def test_an_input_that_waits_for_results_goes_on(options: Options) -> None:
    """The input yields its second prompt only when the first one has its result, and ends after the second result."""
    import anyio

    seen = anyio.Event()

    async def prompts() -> AsyncIterator[str]:
        yield "one"
        await seen.wait()
        yield "two"

    results = []
    async for message in query(prompts(), options=options("1", "2")):
        if isinstance(message, ResultMessage):
            results.append(message.text)
            seen.set()
    assert results == ["1", "2"]


async def test_an_input_that_raises_ends_the_query_with_its_exception(options: Options) -> None:
    async def prompts() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match="the source broke"):
        async for _ in query(prompts(), options=options("1")):
            pass


async def test_steer_joins_the_running_turn(options: Options, place: Path) -> None:
    gate = place / "gate"
    opened = options(
        [call("run_shell_command", command="until [ -e gate ]; do sleep 0.02; done")],
        [{"expect": {"contains": "another thing"}}, {"text": "Done both."}],
        "Next.",
        permission_mode="yolo",
    )
    async with AsyncClient(opened) as client:
        await client.query("Do one thing")
        steered = False
        async for message in client.receive_response():
            if isinstance(message, ToolDisplay) and message.status == "executing":
                await client.steer("Do another thing too")
                # The worker has read the prompt before it answers this.
                await client.mcp_status()
                gate.touch()
            if isinstance(message, SessionEvent) and message.event == "Steered":
                steered = True
        assert steered
        assert isinstance(message, ResultMessage)
        assert message.text == "Done both."
        assert (await client.ask("And now?")).text == "Next.", "the steering prompt has no result of its own"


async def test_a_command_gives_its_result_and_asks_no_model(options: Options) -> None:
    async with AsyncClient(options("never said")) as client:
        await client.query("/help")
        messages = [message async for message in client.receive_response()]
        assert isinstance(messages[-1], CommandResult)
        assert "Commands" in messages[-1].text
        unknown = await client.ask("/no-such-command")
        assert unknown.is_error and "no-such-command" in unknown.summary
        await client.command("help")
        assert isinstance([m async for m in client.receive_response()][-1], CommandResult)
        hints = await client.command_hints("/he")
        assert any(hint["value"] == "help" for hint in hints)


async def test_interrupt_ends_the_turn_and_the_session_goes_on(options: Options, place: Path) -> None:
    opened = options(
        [{"text": "Working"}, {"wait_for_file": str(place / "never")}], "Again.", include_partial_messages=True
    )
    async with AsyncClient(opened) as client:
        await client.query("Work")
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text:
                assert await client.interrupt()
        assert isinstance(message, ResultMessage)
        assert (message.status, message.text, message.is_error) == ("cancelled", "Working", True)
        assert message.usage.total_tokens > 0, "usage is there on abort too"
        assert not await client.interrupt(), "nothing runs any more"
        assert (await client.ask("Go on")).text == "Again."


async def test_a_queued_prompt_can_be_withdrawn(options: Options, place: Path) -> None:
    gate = place / "gate"
    async with AsyncClient(options([{"wait_for_file": str(gate)}, {"text": "First."}], "Never.")) as client:
        await client.query("one")
        second = await client.query("two")
        assert await client.interrupt(second)
        gate.touch()
        results = {}
        while len(results) < 2:
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    results[message.prompt_id] = message.status
        assert sorted(results.values()) == ["cancelled", "done"]
        assert results[second] == "cancelled"


async def test_model_and_mode_change_within_a_session(options: Options, place: Path) -> None:
    async with AsyncClient(options([write()], "Written.", "Other.")) as client:
        await client.set_permission_mode("yolo")
        assert (await client.ask("Write")).ok
        assert (place / "a.txt").read_text() == "x"
        await client.set_model("other-model")
        assert "other-model" in (await client.ask("Who?")).usage_by_model
        with pytest.raises(Exception, match="permission mode"):
            await client.set_permission_mode("no-such-mode")


async def test_a_limit_ends_the_turn_with_its_cause(options: Options) -> None:
    opened = options([{"text": "Looking."}, call("list_directory", path=".")], "Never.", limits=Limits(max_turns=1))
    messages = [m async for m in query("Look", options=opened)]
    result = messages[-1]
    assert isinstance(result, ResultMessage)
    assert (result.status, result.is_error) == ("max_turns", True)
    assert result.text == "Looking."
    assert result.usage.total_tokens > 0


async def test_usage_is_told_by_model_on_failure_too(options: Options) -> None:
    opened = options([{"text": "Half an"}, {"break": True}])
    messages = [m async for m in query("Go", options=opened)]
    result = messages[-1]
    assert isinstance(result, ResultMessage)
    assert (result.status, result.text) == ("error", "Half an")
    assert result.error_code == "stream_broken"
    assert result.usage_by_model["script"].calls == 1
    assert result.usage.calls == 1


async def test_what_each_sub_agent_spent_is_told_by_name(options: Options) -> None:
    start = {"description": "look", "prompt": "Look", "subagent_type": "explore"}
    opened = options([call("agent", **start)], "Seen.", "Done.")
    result = [m async for m in query("Go", options=opened)][-1]
    assert isinstance(result, ResultMessage)
    spent = result.usage_by_agent["explore"]
    assert isinstance(spent, AgentUsage)
    assert (spent.runs, spent.calls, spent.tool_calls) == (1, 1, 0)
    assert 0 < spent.total_tokens < result.usage.total_tokens


async def test_the_price_is_known_where_prices_are(options: Options) -> None:
    usage = {"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}}
    prices = {"model": {"prices": {"script": {"input": 1.0, "output": 5.0}}}}
    opened = options([{"text": "Hi."}, usage], settings=prices)
    result = [m async for m in query("Go", options=opened)][-1]
    assert isinstance(result, ResultMessage)
    assert result.cost_usd == pytest.approx(6.0)


async def test_an_empty_prompt_is_refused_before_it_is_sent(options: Options) -> None:
    async with AsyncClient(options("Hi.")) as client:
        with pytest.raises(PromptRejectedError):
            await client.query("")
        assert (await client.ask("Hello")).text == "Hi."


async def test_a_prompt_that_the_worker_refuses_is_an_error_and_not_a_hang(options: Options) -> None:
    async with AsyncClient(options("Hi.")) as client:
        await client.query([{"type": "no-such-part"}])
        with pytest.raises(PromptRejectedError):
            async for _ in client.receive_response():
                pass
        assert (await client.ask("Hello")).text == "Hi."


async def test_a_refused_prompt_is_told_apart_from_the_running_turn(options: Options, place: Path) -> None:
    gate = place / "gate"
    opened = options([{"text": "One."}, {"wait_for_file": str(gate)}], "Two.", include_partial_messages=True)
    async with AsyncClient(opened) as client:
        first = await client.query("one")
        rejected = False
        async for message in client.receive_messages():
            if isinstance(message, AssistantChunk) and message.text:
                await client.query([{"type": "no-such-part"}])
            elif isinstance(message, ErrorMessage):
                rejected = message.prompt_id != first
                gate.touch()
            elif isinstance(message, ResultMessage):
                break
        assert rejected and (message.prompt_id, message.status) == (first, "done")
        assert (await client.ask("two")).text == "Two."


async def test_prompts_and_system_prompts_of_any_size_go_through_stdin(script: Script) -> None:
    opened = QwenAgentOptions(
        model=script([{"expect": {"contains": "x" * 300_000}}, {"text": "Read."}]), system_prompt="y" * 300_000
    )
    async with AsyncClient(opened) as client:
        result = await client.ask("x" * 300_000)
        assert result.text == "Read."
        assert result.usage.prompt_tokens > 100_000, "the system prompt arrived as well"


async def test_images_and_files_are_parts_of_a_prompt(options: Options, place: Path) -> None:
    (place / "notes.txt").write_text("milk")
    async with AsyncClient(options([{"expect": {"contains": "milk"}}, {"text": "Seen."}])) as client:
        part = {"file_data": {"file_uri": (place / "notes.txt").as_uri(), "mime_type": "text/plain"}}
        assert (await client.ask([{"text": "What is this?"}, part])).text == "Seen."


async def test_sub_agents_of_the_host_work_and_count(options: Options) -> None:
    from qwen_agent_sdk import AgentDefinition

    start = call("agent", description="Look", prompt="Look around", subagent_type="scout")
    opened = options(
        [start],
        "Nothing here.",
        "The scout found nothing.",
        agents={"scout": AgentDefinition("Looks around.", "You look around.", tools=["list_directory"])},
        permission_mode="yolo",
    )
    async with AsyncClient(opened) as client:
        assert "scout" in [agent["name"] for agent in client.server_info["agents"]]
        result = await client.ask("Explore")
        assert result.text == "The scout found nothing."
        assert result.model_calls == 3, "the sub-agent's call counts for the turn"


async def test_ask_brings_the_result_of_its_own_prompt_after_a_loop_that_was_left(options: Options) -> None:
    async with AsyncClient(options("One.", "Two.", "Three.")) as client:
        await client.query("one")
        async for _ in client.receive_response():
            break
        assert (await client.ask("two")).text == "Two."
        assert (await client.ask("three")).text == "Three."


async def test_a_cancelled_ask_ends_its_turn_and_the_next_has_its_own_result(options: Options, place: Path) -> None:
    # A turn that is cancelled before its model call leaves that call in the script, so calls go by their prompt.
    calls = ({"match": "one", "steps": hold(place)}, {"match": "two", "steps": [{"text": "Two."}]})
    async with AsyncClient(options(*calls)) as client:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def cancel_when_sent() -> None:
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()

                group.start_soon(cancel_when_sent)
                await client.ask("one")
        assert scope.cancelled_caught
        with anyio.fail_after(30):
            assert (await client.ask("two")).text == "Two."


async def test_asks_of_several_tasks_run_one_after_the_other(script: Script) -> None:
    answers: dict[str, str] = {}
    model = script(*({"match": name, "steps": [{"text": name.upper()}]} for name in ("one", "two", "three")))
    async with AsyncClient(model=model) as client, anyio.create_task_group() as group:

        async def ask(name: str) -> None:
            answers[name] = (await client.ask(name)).text

        for name in ("one", "two", "three"):
            group.start_soon(ask, name)
    assert answers == {"one": "ONE", "two": "TWO", "three": "THREE"}


@pytest.mark.parametrize("prompt", [None, 7, b"Go", ["Go"], {"type": "text", "text": "Go"}])
async def test_what_is_no_prompt_is_refused_in_words_and_the_session_goes_on(prompt: Any, options: Options) -> None:
    async with AsyncClient(options("Hi.")) as client:
        with pytest.raises(TypeError, match="a prompt is a text, or a list of parts"):
            await client.ask(prompt)
        assert (await client.ask("Hello")).text == "Hi."
