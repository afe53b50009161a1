"""Host programs that die, exit or fork."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import call, children

HOST = """
import asyncio, json, os, sys
from qwen_agent_sdk import QwenAgentOptions, AsyncClient, AssistantChunk, ToolDisplay
options = QwenAgentOptions(model=MODEL, permission_mode="yolo", include_partial_messages=True)
async def main():
    async with AsyncClient(options) as client:
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


def sleeper(script: Any, seconds: int, before: str = "") -> str:
    return str(script([call("run_shell_command", command=f"{before}exec sleep {seconds}")], "Never."))


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
    # The tool is announced a moment before its process exists; that says through a named pipe that it runs.
    os.mkfifo("started")
    host = start_host(python_host, sleeper(script, nap, "echo > started; "))
    workers = children(host.pid)
    Path("started").read_bytes()
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
from qwen_agent_sdk import Client
client = Client(model={script("Hi.", "Ho.")!r})
print(client.chat(task="Hello").text, flush=True)
"""
    ended = subprocess.run(python_host(source), capture_output=True, text=True, timeout=20, env={**os.environ})
    assert (ended.stdout, ended.returncode) == ("Hi.\n", 0), ended.stderr


def test_after_fork_the_child_cannot_use_or_disturb_the_session(
    python_host: Callable[[str], list[str]], script: Any
) -> None:
    source = f"""
import asyncio, os, sys
from qwen_agent_sdk import Client, AsyncClient, NotConnectedError
async def main():
    async with AsyncClient(model={script("One.", "Two.")!r}) as client:
        print((await client.ask("1")).text, flush=True)
        pid = os.fork()
        if pid == 0:
            try:
                client._open._hub._transport._check_usable()
            except NotConnectedError as error:
                print("child:", error.code, flush=True)
            sys.exit(0)
        os.waitpid(pid, 0)
        print((await client.ask("2")).text, flush=True)
asyncio.run(main())
with Client(model={script("Three.", "Four.")!r}) as client:
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
