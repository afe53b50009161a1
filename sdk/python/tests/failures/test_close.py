"""Closing at every point, by anybody."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from conftest import Options, call, children, hold, workers, write

from qwen_agent_sdk import (
    AssistantChunk,
    AsyncClient,
    NotConnectedError,
    QwenSDKError,
    ResultMessage,
    Timeouts,
    ToolDisplay,
    query,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("point", ["connected", "sent", "streaming", "asked", "tool", "done", "twice", "never"])
async def test_close_at_every_point_of_a_turn_returns_within_its_time_out(
    point: str, options: Options, place: Path
) -> None:
    reached = anyio.Event()

    async def can_use_tool(*_: Any) -> bool:
        if point == "asked":
            reached.set()
            await anyio.sleep_forever()
        return True

    steps: list[Any] = {
        "streaming": [hold(place)],
        "asked": [[write()], "Never."],
        "tool": [[call("run_shell_command", command="sleep 4321")], "Never."],
    }.get(point, ["Done."])
    opened = options(*steps, include_partial_messages=True, can_use_tool=can_use_tool)
    client = AsyncClient(opened)
    if point == "never":
        await client.close()
        return
    await client.connect()
    if point in ("sent", "streaming", "asked", "tool", "done"):
        await client.query("Go")
    if point == "asked":
        await reached.wait()
    elif point in ("streaming", "tool", "done"):
        async for message in client.receive_messages():
            if point == "streaming" and isinstance(message, AssistantChunk) and message.text:
                break
            if point == "tool" and isinstance(message, ToolDisplay) and message.status == "executing":
                break
            if point == "done" and isinstance(message, ResultMessage):
                break
    with anyio.fail_after(15):
        await client.close()
        await client.close()
    assert children() == set()
    with pytest.raises(NotConnectedError):
        await client.query("More")


async def test_any_task_may_close_and_the_reader_hears_of_it(options: Options, place: Path) -> None:
    client = await AsyncClient(options(hold(place), include_partial_messages=True)).connect()
    await client.query("Go")
    streaming = anyio.Event()
    outcome: list[str] = []

    async def read() -> None:
        try:
            async for message in client.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    streaming.set()
                if isinstance(message, ResultMessage):
                    outcome.append(message.status)
        except NotConnectedError:
            outcome.append("closed")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await streaming.wait()
        group.start_soon(client.close)
    assert outcome in (["cancelled"], ["closed"]), "the iterator ends: with a result, or with an error that says why"


async def test_a_cancelled_caller_leaves_no_worker(options: Options, place: Path) -> None:
    opened = options(hold(place), include_partial_messages=True)
    with anyio.move_on_after(10) as scope:
        async with AsyncClient(opened) as client:
            await client.query("Go")
            async for message in client.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    scope.cancel()
    assert scope.cancelled_caught
    assert children() == set()


async def test_a_query_that_is_left_early_leaves_no_worker(options: Options, place: Path) -> None:
    async with query("Go", options=options(hold(place), include_partial_messages=True)) as messages:
        async for message in messages:
            if isinstance(message, AssistantChunk) and message.text:
                break
    assert children() == set()
    async for message in query("Go", options=options(hold(place), include_partial_messages=True)):
        if isinstance(message, AssistantChunk) and message.text:
            break
    assert children() == set(), "without 'async with' the collector ends it"


async def test_a_worker_that_ignores_everything_is_killed_at_the_close_time_out(
    fake_worker: Callable[..., str],
) -> None:
    body = """        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(RESULT)
        while True:
            time.sleep(1)"""
    client = AsyncClient(binary_path=fake_worker(body), timeouts=Timeouts(close=0.5))
    await client.connect()
    assert (await client.ask("Go")).ok
    with anyio.fail_after(10):
        await client.close()


async def test_two_readers_of_one_session_are_told_so(options: Options, place: Path) -> None:
    async with AsyncClient(options(hold(place))) as client:
        await client.query("Go")
        async with anyio.create_task_group() as group:

            async def read() -> None:
                async for _ in client.receive_messages():
                    pass

            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(RuntimeError, match="two tasks"):
                async for _ in client.receive_messages():
                    pass
            group.cancel_scope.cancel()


def pipes() -> int:
    """How many ends of pipes this process holds."""
    return sum(
        os.path.islink(link) and os.readlink(link).startswith("pipe:") for link in Path("/proc/self/fd").iterdir()
    )


async def pipes_fall_to(expected: int) -> None:
    with anyio.fail_after(30):
        while pipes() > expected:
            await anyio.lowlevel.checkpoint()


async def test_sessions_that_nobody_closes_leave_no_descriptor(options: Options, place: Path) -> None:
    before = pipes()
    async for _ in query("Go", options=options("Hi.")):
        break
    client = await AsyncClient(options("Hi.")).connect()
    del client
    gc.collect()
    await pipes_fall_to(before)


async def test_a_worker_that_is_replaced_leaves_no_descriptor(options: Options) -> None:
    async with AsyncClient(options("Hi.", on_crash="resume")) as client:
        await client.ask("One")
        before = pipes()
        for _ in range(2):
            (worker,) = workers()
            os.kill(worker, signal.SIGKILL)
            assert (await client.ask("More")).text == "Hi."
        await pipes_fall_to(before)


async def test_a_client_that_was_closed_connects_again(options: Options) -> None:
    client = AsyncClient(options("Hi."))
    async with client:
        first = client.session_id
        await client.ask("Hello")
    async with client:
        assert (await client.ask("Hello")).text == "Hi."
        assert client.session_id != first


def test_a_client_whose_loop_is_gone_is_an_error_to_use_and_can_be_closed(options: Options, place: Path) -> None:
    before = pipes()
    client = AsyncClient(options(hold(place), include_partial_messages=True))

    async def leave_open() -> None:
        await client.connect()
        await client.query("Go")
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text:
                return

    asyncio.run(leave_open())
    with pytest.raises(QwenSDKError):
        asyncio.run(client.interrupt())
    asyncio.run(client.close())
    assert (children(), pipes()) == (set(), before)
