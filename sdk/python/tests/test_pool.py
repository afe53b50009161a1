"""Sessions in a pool of workers, through `qwen hub`, and many sessions in one event loop."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest
from conftest import Options, Script, call, children, hold, write

from qwen_agent_sdk import (
    AssistantChunk,
    AsyncClient,
    ControlRequestError,
    NotConnectedError,
    QwenAgentOptions,
    ResultMessage,
    SessionNotFoundError,
    WorkerCrashedError,
    WorkerPool,
    WorkerPoolOptions,
    create_sdk_mcp_server,
    query,
    tool,
)

pytestmark = pytest.mark.anyio


async def test_a_pool_of_4_serves_20_sessions(script: Script) -> None:
    """Each session has two turns; the sessions run beside each other, the workers are never more than 4."""
    answers: dict[int, list[str]] = {}

    async def serve(pool: WorkerPool, number: int) -> None:
        # A worker that is needed elsewhere between two turns is replaced, and its script begins anew: answers go by the prompt.
        model = script(
            {"match": "One", "steps": [{"text": f"first of {number}"}]},
            {"match": "Two", "steps": [{"text": f"second of {number}"}]},
        )
        async with AsyncClient(QwenAgentOptions(model=model, worker_pool=pool)) as client:
            answers[number] = [(await client.ask("One")).text, (await client.ask("Two")).text]

    async with WorkerPool(WorkerPoolOptions(max_workers=4)) as pool:
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(serve, pool, number)
        status = await pool.status()
        assert status["machines"][0]["workers"]["max"] == 4
        (hub,) = children()
        assert len(children(hub)) <= 4
    assert answers == {n: [f"first of {n}", f"second of {n}"] for n in range(20)}


async def test_an_id_that_is_open_is_an_error_and_the_open_session_continues(script: Script) -> None:
    model = script({"match": "One", "steps": [{"text": "first"}]}, {"match": "Two", "steps": [{"text": "second"}]})
    async with WorkerPool() as pool:
        taken = QwenAgentOptions(model=model, worker_pool=pool, session_id="taken")
        async with AsyncClient(taken) as client:
            assert (await client.ask("One")).text == "first"
            with pytest.raises(ControlRequestError, match="'taken' is open already"):
                async with AsyncClient(taken):
                    pass
            assert (await client.ask("Two")).text == "second"


async def test_callbacks_work_in_a_pool(script: Script, place: Path) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with WorkerPool({"max_workers": 2}) as pool:
        opened = QwenAgentOptions(
            model=script(
                [write()], [call("mcp__calc__add", a=1, b=2)], [{"expect": {"contains": "3"}}, {"text": "Ok."}]
            ),
            worker_pool=pool,
            can_use_tool=lambda *_: True,
            mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
            cwd=place,
        )
        async with AsyncClient(opened) as client:
            result = await client.ask("Go")
            assert result.ok and result.text == "Ok."
            assert (place / "a.txt").exists()
            await client.set_permission_mode("plan")


async def test_a_client_can_have_a_pool_of_its_own(options: Options) -> None:
    opened = options("Hi.", worker_pool=WorkerPoolOptions(max_workers=1))
    result = [message async for message in query("Hello", options=opened)][-1]
    assert isinstance(result, ResultMessage) and result.text == "Hi."


async def test_sessions_of_a_pool_are_resumed_and_forked(script: Script) -> None:
    async with WorkerPool() as pool:

        def opened(*answers: str, **fields: object) -> QwenAgentOptions:
            return QwenAgentOptions(model=script(*answers), worker_pool=pool, **fields)  # type: ignore[arg-type]

        async with AsyncClient(opened("One.")) as client:
            await client.ask("1")
            session_id = client.session_id
        async with AsyncClient(opened("Two.", resume=session_id)) as client:
            assert client.session_id == session_id
            assert (await client.ask("2")).text == "Two."
            fork = await client.fork(model=script("Three."))
            async with fork:
                assert fork.session_id != session_id
                assert (await fork.ask("3")).text == "Three."
        with pytest.raises(SessionNotFoundError):
            await AsyncClient(opened("No.", resume="unknown")).connect()


async def test_a_worker_killed_in_a_pool_costs_its_turn_and_no_other_session(script: Script, place: Path) -> None:
    async with WorkerPool(WorkerPoolOptions(max_workers=4), include_partial_messages=True) as pool:

        def opened(*answers: object) -> QwenAgentOptions:
            return QwenAgentOptions(model=script(*answers), worker_pool=pool, include_partial_messages=True)

        hold = [{"text": "Working"}, {"wait_for_file": str(place / "never")}]
        async with AsyncClient(opened(hold)) as broken:
            await broken.query("Go")
            async for message in broken.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    (hub,) = children()
                    for worker in children(hub):
                        os.kill(worker, signal.SIGKILL)
            assert isinstance(message, ResultMessage) and message.is_error
            async with AsyncClient(opened("Fine.")) as other:
                assert (await other.ask("Hi")).text == "Fine."


async def test_every_session_of_a_killed_hub_ends_with_an_error(script: Script, place: Path) -> None:
    pool = await WorkerPool(WorkerPoolOptions(max_workers=4)).open()
    hold = [{"text": "Working"}, {"wait_for_file": str(place / "never")}]
    failed: list[str] = []

    async def work() -> None:
        client = await AsyncClient(QwenAgentOptions(model=script(hold), worker_pool=pool)).connect()
        await client.query("Go")
        ready.append(client.session_id)
        if len(ready) == 3:
            all_ready.set()
        try:
            async for _ in client.receive_response():
                pass
        except WorkerCrashedError:
            failed.append(client.session_id)
        await client.close()

    ready: list[str] = []
    all_ready = anyio.Event()
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(work)
        await all_ready.wait()
        os.kill(children().pop(), signal.SIGKILL)
    assert sorted(failed) == sorted(ready)
    await pool.close()


async def test_a_slow_session_loses_nothing_and_stops_no_other(script: Script) -> None:
    """The reader of the first session takes nothing until the second one is done."""
    count = 30_000
    async with WorkerPool(WorkerPoolOptions(max_workers=2), include_partial_messages=True) as pool:
        flood = QwenAgentOptions(
            model=script([{"repeat": count, "text": "piece "}]),
            worker_pool=pool,
            include_partial_messages=True,
            max_buffered_events=100,
        )
        async with AsyncClient(flood) as slow:
            await slow.query("Flood")
            quick = flood.replace(model=script("Quick."))
            async with AsyncClient(quick) as client:
                assert (await client.ask("Hi")).text == "Quick."
            pieces = 0
            async for message in slow.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    pieces += 1
                    assert slow._session is not None
                    assert len(slow._session._queue._events) < 2_000
            assert pieces == count
            assert isinstance(message, ResultMessage) and len(message.text) == count * len("piece ")


async def test_a_pool_writes_one_format(script: Script) -> None:
    async with WorkerPool() as pool:
        opened = QwenAgentOptions(model=script("Hi."), worker_pool=pool, include_partial_messages=True)
        with pytest.raises(ValueError, match="include_partial_messages"):
            await AsyncClient(opened).connect()


async def test_100_sessions_in_one_event_loop(script: Script) -> None:
    done: list[str] = []
    at_once = anyio.CapacityLimiter(100)

    async def one(number: int) -> None:
        async with at_once:
            messages = [m async for m in query("Hi", model=script(f"I am {number}."), include_partial_messages=True)]
            assert isinstance(messages[-1], ResultMessage)
            done.append(messages[-1].text)

    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(one, number)
    assert sorted(done) == sorted(f"I am {number}." for number in range(100))


async def test_a_pool_that_is_closed_cancels_its_turns_and_says_so(options: Options, place: Path) -> None:
    pool = await WorkerPool().open()
    async with AsyncClient(options(hold(place), worker_pool=pool)) as client:
        await client.query("Go")
        await pool.close()
        results = [message async for message in client.receive_response()]
        assert isinstance(results[-1], ResultMessage) and results[-1].status == "cancelled"
        with pytest.raises(NotConnectedError, match="the pool was closed"):
            await client.ask("More")


async def test_a_pool_that_was_closed_opens_again(options: Options) -> None:
    pool = WorkerPool()
    async with pool:
        pass
    with pytest.raises(NotConnectedError, match="the pool is not open"):
        await AsyncClient(options("Hi.", worker_pool=pool)).connect()
    async with pool, AsyncClient(options("Hi.", worker_pool=pool)) as client:
        assert (await client.ask("Hello")).text == "Hi."
