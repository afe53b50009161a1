"""When workers, hosts and streams break."""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from conftest import BINARY, Options, call, children, write

from qwen_agent_sdk import (
    AssistantChunk,
    BinaryNotFoundError,
    HandshakeError,
    MalformedLine,
    NotConnectedError,
    ProcessError,
    ProtocolVersionError,
    QwenAgentOptions,
    QwenSDKClient,
    ResultMessage,
    SessionEvent,
    Timeouts,
    ToolDisplay,
    UnknownEvent,
    WorkerCrashedError,
    WorkerRestarted,
    WorkerUnresponsiveError,
    find_binary,
    query,
)

pytestmark = pytest.mark.anyio

HANDSHAKE = {
    "object": "chat.completion",
    "id": "chatcmpl-s",
    "created": 1,
    "model": "m",
    "session_id": "s",
    "choices": [],
    "system_fingerprint": "qwen-9.9.9",
    "metadata": {"protocol_version": "1.0", "capabilities": ["control", "sessions"], "session_id": "s"},
}
RESULT = {
    "object": "chat.completion",
    "session_id": "s",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
    "metadata": {"turn": {"status": "done", "permission_denials": [], "usage_by_model": {}}},
}


@pytest.fixture
def fake_worker(tmp_path: Path) -> Callable[..., str]:
    """A program that greets and then answers the first prompt with whatever a test wants to see survive."""

    def make(body: str = "", handshake: Any = HANDSHAKE) -> str:
        path = tmp_path / "fake-qwen"
        path.write_text(
            f"""#!/usr/bin/env python3
import json, os, sys, time
def say(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\\n")
    sys.stdout.flush()
RESULT = {RESULT!r}
say({handshake!r})
for line in sys.stdin:
    request = json.loads(line)
    if request.get("type") == "control_request":
        response = {{"subtype": "success", "result": {{}}}}
        say({{"type": "control_response", "request_id": request["request_id"], "response": response}})
    elif "input" in request:
        RESULT["prompt_id"] = request["prompt_id"]
{body or "        say(RESULT)"}
"""
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return make


async def last_of(**fields: Any) -> ResultMessage:
    result = [message async for message in query("Go", **fields)][-1]
    assert isinstance(result, ResultMessage)
    return result


# The worker


def hold(place: Path) -> list[dict[str, Any]]:
    """A model call that says something and then waits for ever."""
    return [{"text": "Working"}, {"wait_for_file": str(place / "never")}]


async def test_a_killed_worker_is_an_error_that_says_how_it_ended(options: Options, place: Path) -> None:
    async with QwenSDKClient(options("Good.", hold(place), include_partial_messages=True)) as client:
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


@pytest.mark.parametrize("recovery", ["resume", "retry", "fork"])
async def test_a_killed_worker_is_replaced_as_configured(
    recovery: str, options: Options, place: Path, tmp_path: Path
) -> None:
    """The script is kept per process, so the new worker begins it anew: the gate decides what its first call says."""
    gate = place / "gate"
    opened = options(
        [{"text": "Finished."}, {"wait_for_file": str(gate)}],
        "Next.",
        include_partial_messages=True,
        on_crash=recovery,
    )
    async with QwenSDKClient(opened) as client:
        before = client.session_id
        await client.query("Work")
        restarts = []
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text and not restarts:
                os.kill(children().pop(), signal.SIGKILL)
                gate.touch()
            if isinstance(message, WorkerRestarted):
                restarts.append((message.recovery, message.attempt, message.reason))
        assert restarts == [(recovery, 1, "was killed by SIGKILL")]
        assert isinstance(message, ResultMessage)
        assert (message.status, message.text) == ("done", "Finished.")
        assert (client.session_id == before) == (recovery != "fork")
        assert (await client.ask("And now?")).text == "Next."


async def test_restarts_are_limited(options: Options, place: Path) -> None:
    opened = options(hold(place), include_partial_messages=True, on_crash="retry", max_restarts=2)
    async with QwenSDKClient(opened) as client:
        await client.query("Work")
        restarts = 0
        with pytest.raises(WorkerCrashedError):
            async for message in client.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    os.kill(children().pop(), signal.SIGKILL)
                restarts += isinstance(message, WorkerRestarted)
        assert restarts == 2


async def test_a_worker_that_misses_its_heartbeats_is_killed(options: Options, place: Path) -> None:
    timeouts = Timeouts(heartbeat_interval=0.1, heartbeat=0.6)
    opened = options(hold(place), include_partial_messages=True, timeouts=timeouts)
    async with QwenSDKClient(opened) as client:
        await client.query("Work")
        with pytest.raises(WorkerUnresponsiveError, match="heartbeats"):
            async for message in client.receive_response():
                if isinstance(message, AssistantChunk) and message.text:
                    os.kill(children().pop(), signal.SIGSTOP)


async def test_a_quiet_worker_that_beats_is_left_alone(options: Options, place: Path) -> None:
    """A model call that lasts much longer than the time-out: heartbeats are the only sign of life."""
    timeouts = Timeouts(heartbeat_interval=0.1, heartbeat=0.5)
    opened = options([{"delay_ms": 1500}, {"text": "Slow."}], timeouts=timeouts)
    assert (await last_of(options=opened)).text == "Slow."


# The stream


async def test_a_slow_reader_loses_nothing_and_memory_stays_bounded(options: Options) -> None:
    """While the reader stops, the worker has to stop too: far fewer events are buffered than were written."""
    count = 60_000
    opened = options([{"repeat": count, "text": "piece "}], include_partial_messages=True, max_buffered_events=500)
    async with QwenSDKClient(opened) as client:
        await client.query("Flood")
        received, deepest = 0, 0
        async for message in client.receive_response():
            if isinstance(message, AssistantChunk) and message.text:
                received += 1
                if received == 1:
                    await anyio.sleep(0.5)
                if received % 1000 == 0:
                    await anyio.lowlevel.checkpoint()
                assert client._session is not None
                deepest = max(deepest, len(client._session._queue._events))
        assert received == count
        assert deepest < 5_000, "the queue is bounded by its limit and one read"
        assert isinstance(message, ResultMessage) and len(message.text) == count * len("piece ")


async def test_a_control_request_is_answered_while_the_reader_is_behind(options: Options) -> None:
    opened = options([{"repeat": 50_000, "text": "piece "}], include_partial_messages=True, max_buffered_events=100)
    async with QwenSDKClient(opened) as client:
        await client.query("Flood")
        await anyio.sleep(0.1)
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
    async with QwenSDKClient(binary_path=binary) as client:
        await client.ask("Die")
        with pytest.raises(WorkerCrashedError) as caught:
            async for _ in client.receive_messages():
                pass
        assert "complaint 39999" in caught.value.stderr_tail and caught.value.exit_code == 7
        assert len(caught.value.stderr_tail) <= 16 * 1024


async def test_a_stderr_callback_that_raises_is_ignored(options: Options) -> None:
    def raises(line: str) -> None:
        raise RuntimeError("no")

    assert (await last_of(options=options("Hi.", stderr=raises))).text == "Hi."


# The start


async def test_a_missing_binary_says_where_was_looked_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BinaryNotFoundError, match="QWEN_BIN") as caught:
        await last_of(binary_path="/no/such/qwen")
    assert caught.value.searched == ["binary_path: /no/such/qwen"]
    monkeypatch.delenv("QWEN_BIN")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BinaryNotFoundError, match="Install the wheel"):
        await last_of(model="demo")


def test_the_binary_is_looked_up_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("option", "environment", "path"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "qwen").write_text("#!/bin/sh\n")
        (tmp_path / name / "qwen").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("QWEN_BIN", str(tmp_path / "environment" / "qwen"))
    assert find_binary(tmp_path / "option" / "qwen") == str(tmp_path / "option" / "qwen")
    assert find_binary() == str(tmp_path / "environment" / "qwen")
    monkeypatch.delenv("QWEN_BIN")
    bundled = Path(find_binary.__code__.co_filename).parent / "bin" / "qwen"
    expected = str(bundled) if bundled.exists() else str(tmp_path / "path" / "qwen")
    assert find_binary() == expected
    assert find_binary("qwen") == str(tmp_path / "path" / "qwen")


@pytest.mark.parametrize("program", ["#!/bin/sh\necho hello\ncat >/dev/null\n", "#!/bin/sh\nexit 3\n"])
async def test_a_program_that_is_no_worker_is_an_error(program: str, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text(program)
    path.chmod(0o755)
    with pytest.raises(HandshakeError, match="qwen"):
        await last_of(binary_path=path)


async def test_a_program_that_says_nothing_is_an_error_at_the_start_time_out(tmp_path: Path) -> None:
    path = tmp_path / "silent"
    path.write_text("#!/bin/sh\nexec cat >/dev/null\n")
    path.chmod(0o755)
    with pytest.raises(HandshakeError, match="start time-out") as caught:
        await last_of(binary_path=path, timeouts=Timeouts(start=0.2))
    assert caught.value.code == "start_timeout"


async def test_another_protocol_version_is_an_error_that_names_both(fake_worker: Callable[..., str]) -> None:
    other = json.loads(json.dumps(HANDSHAKE))
    other["metadata"]["protocol_version"] = "2.0"
    with pytest.raises(ProtocolVersionError, match=r"speaks protocol 2\.0, this SDK speaks 1\.0"):
        await last_of(binary_path=fake_worker(handshake=other))
    other["metadata"] = {"protocol_version": "1.7", "capabilities": ["sessions"]}
    with pytest.raises(ProtocolVersionError, match="control"):
        await last_of(binary_path=fake_worker(handshake=other))


async def test_a_bad_flag_is_an_error_in_the_worker_s_own_words(options: Options) -> None:
    with pytest.raises(ProcessError, match="no-such-flag") as caught:
        await last_of(options=options("Hi.", extra_args=["--no-such-flag"]))
    assert caught.value.exit_code == 2


async def test_a_missing_directory_is_an_error(options: Options) -> None:
    with pytest.raises(ProcessError, match="does not exist"):
        await last_of(options=options("Hi.", cwd="/no/such/place"))


# The host

HOST = """
import asyncio, json, os, sys
from qwen_agent_sdk import QwenAgentOptions, QwenSDKClient, AssistantChunk, ToolDisplay
options = QwenAgentOptions(model=MODEL, permission_mode="yolo", include_partial_messages=True)
async def main():
    async with QwenSDKClient(options) as client:
        await client.query("Go")
        async for message in client.receive_response():
            if isinstance(message, ToolDisplay) and message.status == "executing":
                print("ready", flush=True)
                AFTER
asyncio.run(main())
"""


def start_host(python_host: Callable[[str], list[str]], model: str, after: str = "pass") -> subprocess.Popen[str]:
    source = HOST.replace("MODEL", repr(model)).replace("AFTER", after)
    host = subprocess.Popen(
        python_host(source), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert host.stdout is not None
    line = host.stdout.readline()
    assert line == "ready\n", line + (host.communicate()[1])
    return host


def sleeper(script: Any, seconds: int) -> str:
    return str(script([call("run_shell_command", command=f"sleep {seconds}")], "Never."))


def sleeping(seconds: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"sleep\0%d\0" % seconds:
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def gone_within(workers: set[int], naps: Callable[[], set[int]], seconds: float) -> bool:
    """Waits until the processes are gone, at most so long."""
    until = time.monotonic() + seconds
    for pid in workers | naps():
        try:
            ended = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([ended], [], [], max(0, until - time.monotonic()))[0]:
                return False
        finally:
            os.close(ended)
    return not naps()


@pytest.mark.parametrize("end", ["kill", "interrupt"])
def test_no_child_outlives_a_host_that_is_killed_or_interrupted(
    end: str, python_host: Callable[[str], list[str]], script: Any
) -> None:
    nap = 50_000 + os.getpid() % 10_000 + (1 if end == "kill" else 0)
    host = start_host(python_host, sleeper(script, nap))
    workers = children(host.pid)
    # The tool is announced a moment before its process exists.
    while not sleeping(nap):
        assert host.poll() is None
        time.sleep(0.01)
    assert workers
    host.send_signal(signal.SIGKILL if end == "kill" else signal.SIGINT)
    host.communicate()
    assert gone_within(workers, lambda: sleeping(nap), 2.0)
    if end == "interrupt":
        assert host.returncode in (-signal.SIGINT, 130, 1), "KeyboardInterrupt reaches the host"


@pytest.mark.parametrize("after", ["sys.exit(0)", "os._exit(0)", "raise RuntimeError('host')"])
def test_a_host_that_exits_with_an_open_session_leaves_no_child_and_does_not_hang(
    after: str, python_host: Callable[[str], list[str]], script: Any
) -> None:
    nap = 60_000 + os.getpid() % 10_000 + len(after)
    host = start_host(python_host, sleeper(script, nap), after)
    workers = children(host.pid)
    host.communicate(timeout=20)
    assert gone_within(workers, lambda: sleeping(nap), 2.0)


def test_a_synchronous_host_that_exits_without_closing_does_not_hang(
    python_host: Callable[[str], list[str]], script: Any
) -> None:
    source = f"""
from qwen_agent_sdk import QwenClient
client = QwenClient(model={script("Hi.", "Ho.")!r})
print(client.chat(task="Hello").text, flush=True)
"""
    ended = subprocess.run(python_host(source), capture_output=True, text=True, timeout=20, env={**os.environ})
    assert (ended.stdout, ended.returncode) == ("Hi.\n", 0), ended.stderr


def test_after_fork_the_child_cannot_use_or_disturb_the_session(
    python_host: Callable[[str], list[str]], script: Any
) -> None:
    source = f"""
import asyncio, os, sys
from qwen_agent_sdk import QwenClient, QwenSDKClient, NotConnectedError
async def main():
    async with QwenSDKClient(model={script("One.", "Two.")!r}) as client:
        print((await client.ask("1")).text, flush=True)
        pid = os.fork()
        if pid == 0:
            try:
                client._open._channel.transport._check_usable()
            except NotConnectedError as error:
                print("child:", error.code, flush=True)
            sys.exit(0)
        os.waitpid(pid, 0)
        print((await client.ask("2")).text, flush=True)
asyncio.run(main())
with QwenClient(model={script("Three.", "Four.")!r}) as client:
    print(client.chat(task="3").text, flush=True)
    pid = os.fork()
    if pid == 0:
        try:
            client.chat(task="x")
        except NotConnectedError as error:
            print("child:", error.code, flush=True)
        sys.exit(0)
    os.waitpid(pid, 0)
    print(client.chat(task="4").text, flush=True)
"""
    ended = subprocess.run(python_host(source), capture_output=True, text=True, timeout=30, env={**os.environ})
    said = ended.stdout.split("\n")[:-1]
    expected = ["One.", "child: used_after_fork", "Two.", "Three.", "child: used_after_fork", "Four."]
    assert said == expected, ended.stderr


# Closing


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
    client = QwenSDKClient(opened)
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
    client = await QwenSDKClient(options(hold(place), include_partial_messages=True)).connect()
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
        async with QwenSDKClient(opened) as client:
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
    client = QwenSDKClient(binary_path=fake_worker(body), timeouts=Timeouts(close=0.5))
    await client.connect()
    assert (await client.ask("Go")).ok
    with anyio.fail_after(10):
        await client.close()


async def test_two_readers_of_one_session_are_told_so(options: Options, place: Path) -> None:
    async with QwenSDKClient(options(hold(place))) as client:
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


def test_the_binary_under_test_is_the_one_that_runs() -> None:
    assert Path(BINARY).exists()
    assert QwenAgentOptions().binary_path is None
