"""When workers die or hang, and when their streams break."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from conftest import Options, children, hold, last_of, workers

from qwen_agent_sdk import (
    AssistantChunk,
    AsyncClient,
    MalformedLine,
    QwenClientOptions,
    ResultMessage,
    SessionEvent,
    Timeouts,
    ToolDisplay,
    UnknownEvent,
    WorkerCrashedError,
    query,
)

pytestmark = pytest.mark.anyio


async def test_a_killed_worker_ends_its_turn_and_the_session_continues(options: Options, place: Path) -> None:
    opened = options("Good.", hold(place), include_partial_messages=True)
    async with AsyncClient(opened) as client:
        good = await client.ask("One")
        await client.query("Two")
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text:
                os.kill(workers().pop(), signal.SIGKILL)
        assert isinstance(message, ResultMessage)
        assert (message.status, message.error_code, message.done) == ("interrupted", "worker_lost", False)
        assert "SIGKILL" in message.error_message or "signal" in message.error_message
        assert client.last_result is good
        # The script is kept per process: the new worker begins it anew.
        assert (await client.ask("Three")).text == "Good."


async def test_a_killed_hub_is_an_error_that_says_how_it_ended(options: Options, place: Path) -> None:
    async with AsyncClient(options("Good.", hold(place), include_partial_messages=True)) as client:
        good = await client.ask("One")
        await client.query("Two")
        with pytest.raises(WorkerCrashedError, match="SIGKILL") as caught:
            async for message in client.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    os.kill(children().pop(), signal.SIGKILL)
        assert caught.value.exit_code == -signal.SIGKILL
        assert caught.value.session_id == client.session_id
        assert caught.value.last_result is good is client.last_result
        with pytest.raises(WorkerCrashedError):
            await client.query("Three")
        with pytest.raises(WorkerCrashedError):
            await client.set_model("other")


async def test_a_worker_that_misses_its_heartbeats_is_killed(options: Options, place: Path) -> None:
    timeouts = Timeouts(heartbeat_interval=0.1, heartbeat=0.6)
    opened = options(hold(place), include_partial_messages=True, timeouts=timeouts)
    async with AsyncClient(opened) as client:
        await client.query("Work")
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text:
                os.kill(workers().pop(), signal.SIGSTOP)
        assert isinstance(message, ResultMessage)
        assert (message.status, message.error_code) == ("interrupted", "worker_lost")


async def test_a_quiet_worker_that_beats_is_left_alone(options: Options, place: Path) -> None:
    """A model call that lasts much longer than the time-out: heartbeats are the only sign of life."""
    timeouts = Timeouts(heartbeat_interval=0.2, heartbeat=3)
    opened = options([{"delay_ms": 5000}, {"text": "Slow."}], timeouts=timeouts)
    assert (await last_of(options=opened)).text == "Slow."


async def test_a_slow_reader_loses_nothing_and_memory_stays_bounded(options: Options) -> None:
    """While the reader stops, the worker has to stop too: far fewer events are buffered than were written."""
    count = 60_000
    opened = options([{"repeat": count, "text": "piece "}], include_partial_messages=True, max_buffered_events=500)
    async with AsyncClient(opened) as client:
        await client.query("Flood")
        received, deepest = 0, 0
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text:
                received += 1
                if received == 1:
                    # The reader stops until the worker has to wait for it.
                    await anyio.wait_all_tasks_blocked()
                if received % 1000 == 0:
                    await anyio.lowlevel.checkpoint()
                assert client._session is not None
                deepest = max(deepest, len(client._session._queue._events))
        assert received == count
        assert deepest < 5_000, "the queue is bounded by its limit and one read"
        assert isinstance(message, ResultMessage) and len(message.text) == count * len("piece ")


async def test_a_control_request_is_answered_while_the_reader_is_behind(options: Options) -> None:
    opened = options([{"repeat": 50_000, "text": "piece "}], include_partial_messages=True, max_buffered_events=100)
    async with AsyncClient(opened) as client:
        await client.query("Flood")
        await anyio.wait_all_tasks_blocked()
        assert await client.interrupt()
        last = [message async for message in client.receive_response()][-1]
        assert isinstance(last, ResultMessage) and last.status in ("cancelled", "done")


async def test_a_line_of_60_mb_is_read(fake_worker: Callable[..., str]) -> None:
    body = """        RESULT["choices"][0]["message"]["content"] = "x" * 60_000_000
        say(RESULT)"""
    assert len((await last_of(binary_path=fake_worker(body))).text) == 60_000_000


async def test_a_malformed_line_is_an_event_and_the_stream_goes_on(fake_worker: Callable[..., str]) -> None:
    body = """        say("this is no JSON")
        say("[1, 2]")
        say('{"half": ')
        sys.stdout.buffer.write(b"\\xff\\xfe\\n")
        sys.stdout.buffer.flush()
        say("")
        say("[" * 200000)
        say(RESULT)"""
    messages = [m async for m in query("Go", binary_path=fake_worker(body))]
    malformed = [m for m in messages if isinstance(m, MalformedLine)]
    assert [m.line[:15] for m in malformed[:3]] == ["this is no JSON", "[1, 2]", '{"half": ']
    assert len(malformed) == 5 and all(isinstance(m, UnknownEvent) for m in malformed)
    assert isinstance(messages[-1], ResultMessage)


async def test_an_unknown_event_is_kept_with_its_data(fake_worker: Callable[..., str]) -> None:
    body = """        say({"type": "x-qwen-from-the-future", "session_id": "s", "what": {"is": "new"}})
        say({"type": "x-qwen-session-event", "event": "Finished", "message": "", "shiny": 7})
        say({"object": "video.completion"})
        say({"type": 5})
        say({"type": "x-qwen-tool-display", "status": ["not", "a", "text"]})
        say(RESULT)"""
    messages = [m async for m in query("Go", binary_path=fake_worker(body))]
    assert type(messages[0]) is UnknownEvent and messages[0].raw["what"] == {"is": "new"}
    assert isinstance(messages[1], SessionEvent) and messages[1].raw["shiny"] == 7
    model = messages[1].model()
    assert model is not None and model.model_extra == {"shiny": 7}
    assert type(messages[2]) is UnknownEvent and type(messages[3]) is UnknownEvent
    assert isinstance(messages[4], ToolDisplay) and messages[4].status == "" and messages[4].model() is None


async def test_a_flood_on_stderr_stops_nothing_and_its_tail_is_kept(fake_worker: Callable[..., str]) -> None:
    body = """        for n in range(40000):
            sys.stderr.write(f"complaint {n} " + "x" * 100 + "\\n")
        sys.stderr.flush()
        say(RESULT)
        if request["input"]["parts"][0]["text"] == "Die":
            sys.exit(7)"""
    lines: list[str] = []
    binary = fake_worker(body)
    assert (await last_of(binary_path=binary, stderr=lines.append)).text == "Done."
    assert len(lines) == 40000 and lines[0].startswith("complaint 0 ")
    async with AsyncClient(binary_path=binary) as client:
        await client.ask("Die")
        with pytest.raises(WorkerCrashedError) as caught:
            async for _ in client.receive_messages():
                pass
        assert "complaint 39999" in caught.value.stderr_tail and caught.value.exit_code == 7
        assert len(caught.value.stderr_tail) <= 16 * 1024


async def test_standard_error_can_be_copied_to_a_file(fake_worker: Callable[..., str]) -> None:
    body = """        print("first\\nsecond", file=sys.stderr, flush=True)
        say(RESULT)"""
    copy, lines = io.StringIO(), []
    opened = QwenClientOptions(binary_path=fake_worker(body), debug_stderr=copy, stderr=lines.append)
    assert (await last_of(options=opened)).ok
    assert copy.getvalue() == "first\nsecond\n" and lines == ["first", "second"]


async def test_a_stderr_callback_that_raises_is_ignored(options: Options) -> None:
    def raises(line: str) -> None:
        raise RuntimeError("no")

    assert (await last_of(options=options("Hi.", stderr=raises))).text == "Hi."


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_worker_that_ended_before_a_prompt_is_an_error_that_says_how(
    moment: str, fake_worker: Callable[..., str]
) -> None:
    """The broken pipe is seen before the exit, whose code must not be lost with it."""
    leave = "        say(RESULT); sys.stderr.write('the last words'); sys.stderr.flush(); os._exit(7)"
    client = AsyncClient(binary_path=fake_worker(leave))
    await client.connect()
    assert (await client.ask("One")).ok
    if moment == "after":
        with pytest.raises(WorkerCrashedError):
            async for _ in client.receive_messages():
                pass
    with pytest.raises(WorkerCrashedError, match="exited with code 7") as caught:
        await client.ask("Two")
    assert (caught.value.exit_code, caught.value.stderr_tail) == (7, "the last words")
    await client.close()
