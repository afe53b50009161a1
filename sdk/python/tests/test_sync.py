"""The synchronous client."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import BINARY, MOCK_MODEL, Options, Script, call, children, hold, write

from qwen_agent_sdk import (
    AssistantChunk,
    BinaryNotFoundError,
    Client,
    NotConnectedError,
    ResultMessage,
    SessionNotFoundError,
    WorkerCrashedError,
    WorkerPool,
    create_sdk_mcp_server,
    tool,
)


def test_the_quick_start_of_the_specification_works(script: Script, place: Path) -> None:
    with Client(binary_path=os.environ["QWEN_BIN"], model=script("I fixed it.")) as client:
        result = client.chat(task="Scan main.py for bugs and fix them", workspace=str(place))
        assert result.summary == "I fixed it."


def test_chats_of_one_workspace_are_one_session(options: Options, place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with Client(options("One.", "Two.")) as client:
        first = client.chat("1", place)
        second = client.chat("2", place)
        elsewhere = client.chat("1", other)
        assert (first.text, second.text, elsewhere.text) == ("One.", "Two.", "One.")
        assert first.session_id == second.session_id != elsewhere.session_id


def test_stream_yields_messages_as_they_come(options: Options) -> None:
    opened = options([{"text": "a b c", "split": "word"}], "Next.", include_partial_messages=True)
    with Client(opened) as client:
        messages = list(client.stream("Go"))
        assert "".join(m.text for m in messages if isinstance(m, AssistantChunk)) == "a b c"
        assert isinstance(messages[-1], ResultMessage) and messages[-1].text == "a b c"
        assert client.chat("More").text == "Next."


def test_a_stream_that_is_left_early_ends_its_turn(options: Options, place: Path) -> None:
    hold = [{"text": "Working"}, {"wait_for_file": str(place / "never")}]
    with Client(options(hold, "Next.", include_partial_messages=True)) as client:
        for message in client.stream("Go"):
            if isinstance(message, AssistantChunk) and message.text:
                break
        assert client.chat("More").text == "Next."


def test_callbacks_and_tools_work_while_the_caller_waits(options: Options, place: Path) -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    opened = options(
        [write()],
        [call("mcp__calc__add", a=20, b=22)],
        [{"expect": {"contains": "42"}}, {"text": "42."}],
        can_use_tool=lambda *_: True,
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
    )
    with Client(opened) as client:
        assert client.chat("Go").text == "42."
    assert (place / "a.txt").exists()


def test_another_thread_may_interrupt(options: Options, place: Path) -> None:
    hold = [{"text": "Working"}, {"wait_for_file": str(place / "never")}]
    with Client(options(hold, "Next.", include_partial_messages=True)) as client:
        statuses = []
        for message in client.stream("Go"):
            if isinstance(message, AssistantChunk) and message.text:
                threading.Thread(target=client.interrupt).start()
            if isinstance(message, ResultMessage):
                statuses.append(message.status)
        assert statuses == ["cancelled"]
        assert client.chat("More").text == "Next."


def test_model_and_mode_change(options: Options, place: Path) -> None:
    with Client(options([write()], "Written.", "Other.")) as client:
        client.set_permission_mode("yolo")
        assert client.chat("Write").ok
        client.set_model("other")
        assert "other" in client.chat("Who?").usage_by_model


def test_errors_reach_the_caller(options: Options) -> None:
    with Client(binary_path="/no/such/qwen") as client, pytest.raises(BinaryNotFoundError):
        client.chat("Hi")
    with Client(options("Hi.", resume="unknown")) as client, pytest.raises(SessionNotFoundError):
        client.chat("Hi")
    closed = Client(options("Hi."))
    closed.close()
    with pytest.raises(NotConnectedError):
        closed.chat("Hi")


def test_ctrl_c_ends_the_turn_and_the_session_can_go_on(
    python_host: Callable[[str], list[str]], script: Script, place: Path
) -> None:
    hold = [{"text": "Working"}, {"wait_for_file": str(place / "never")}]
    source = f"""
from qwen_agent_sdk import Client, AssistantChunk
with Client(model={script(hold, "Next.")!r}, include_partial_messages=True) as client:
    try:
        for message in client.stream("Go"):
            if isinstance(message, AssistantChunk) and message.text:
                print("ready", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(client.chat("More").text, flush=True)
"""
    host = subprocess.Popen(
        python_host(source), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    host.send_signal(signal.SIGINT)
    out, err = host.communicate(timeout=30)
    assert out == "interrupted\nNext.\n", err
    assert children(host.pid) == set()


QUICK_START = """
from qwen_agent_sdk import QwenClient

with QwenClient(binary_path="qwen", model="qwen3-coder-plus") as client:
    result = client.chat(
        task="扫描并修复 main.py 中的潜在 bug",
        workspace="/repos/demo"
    )
    print(result.summary)
"""


def test_the_quick_start_of_the_specification_works_as_printed(place: Path, tmp_path: Path) -> None:
    """Only the workspace is another one; `qwen` is found in PATH, and the model is reached over HTTP."""
    script = tmp_path / "replies.json"
    script.write_text(json.dumps({"replies": [{"steps": [{"text": "main.py 没有问题。"}]}]}))
    command = [MOCK_MODEL, "--script", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as model:
        assert model.stdin is not None and model.stdout is not None
        url = json.loads(model.stdout.readline())["base_url"]
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "qwen").symlink_to(BINARY)
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-test"}
        source = QUICK_START.replace("/repos/demo", str(place))
        run = [sys.executable, "-c", source]
        ended = subprocess.run(run, capture_output=True, text=True, timeout=50, check=False, env=environment)
        model.stdin.close()
    assert (ended.stdout, ended.returncode) == ("main.py 没有问题。\n", 0), ended.stderr


def test_a_client_continues_its_session_after_its_hub_died(options: Options, place: Path) -> None:
    with Client(options("One.", hold(place), include_partial_messages=True)) as client:
        session_id = client.chat("one").session_id
        with pytest.raises(WorkerCrashedError):
            for message in client.stream("two"):
                if isinstance(message, AssistantChunk) and message.text:
                    (hub,) = children()
                    os.kill(hub, signal.SIGKILL)
        result = client.chat("three")
        assert (result.text, result.session_id) == ("One.", session_id), (
            "the worker of the new hub reads its script anew"
        )


def test_chats_of_several_threads_in_one_workspace_take_turns(script: Script) -> None:
    names = ("one", "two", "three")
    model = script(*({"match": name, "steps": [{"text": name.upper()}]} for name in names))
    with Client(model=model) as client, ThreadPoolExecutor(3) as threads:
        assert [result.text for result in threads.map(client.chat, names)] == ["ONE", "TWO", "THREE"]


def test_a_client_that_is_collected_leaves_no_worker_and_no_thread(options: Options) -> None:
    client = Client(options("Hi."))
    client.chat("Hello")
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "qwen-client"]
    del client
    gc.collect()
    thread.join(30)
    assert not thread.is_alive() and children() == set()


def test_the_workspaces_of_a_client_share_one_pool(options: Options, place: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Client(options("Hi.", worker_pool={"max_workers": 1})) as client:
        for workspace in (place, tmp_path / "other"):
            assert client.chat("Hello", workspace=workspace).text == "Hi."
        assert len(children()) == 1, "one hub"


def test_a_pool_of_another_event_loop_is_an_error(options: Options) -> None:
    async def use_elsewhere() -> None:
        async with WorkerPool() as pool:
            with (
                Client(options("Hi.", worker_pool=pool)) as client,
                pytest.raises(NotConnectedError, match="another event loop"),
            ):
                client.chat("Hello")

    asyncio.run(use_elsewhere())
