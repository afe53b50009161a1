"""A clean place for every test: a home and a workspace of its own, a scripted model, and no process left behind."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qwen_agent_sdk import QwenAgentOptions, ResultMessage, query

ROOT = Path(__file__).resolve().parents[3]
FOREIGN = ("OPENAI_", "ANTHROPIC_", "DASHSCOPE_", "QWEN_", "CLAUDE_", "OTEL_", "TRACE")
BINARY = os.environ.get("QWEN_BIN") or str(ROOT / "target" / "debug" / "qwen")
MOCK_MODEL = os.environ.get("MOCK_MODEL_BIN") or str(ROOT / "target" / "debug" / "mock-model")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home and workspace; the test works in the latter. No child of this process may be left at the end."""
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("QWEN_HOME", str(home / ".qwen"))
    monkeypatch.setenv("QWEN_BIN", BINARY)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(work)
    yield work
    assert children() == set(), "a worker was left behind"


def children(pid: int | None = None) -> set[int]:
    """The child processes of a process that run the binary under test."""
    parent = str(os.getpid() if pid is None else pid)
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit():
                continue
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if fields[1] == parent and fields[0] != "Z" and os.path.realpath(entry / "exe") == os.path.realpath(BINARY):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


def workers() -> set[int]:
    """The workers of the hub that this process started."""
    return {worker for hub in children() for worker in children(hub)}


Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a script for the model and returns the name of the model that follows it; an argument for each model call."""
    count = 0

    def write(*calls: Any) -> str:
        nonlocal count
        count += 1
        path = tmp_path / f"script-{count}.json"
        path.write_text(json.dumps([[{"text": call}] if isinstance(call, str) else call for call in calls]))
        return f"script:{path}"

    return write


Options = Callable[..., QwenAgentOptions]


@pytest.fixture
def options(script: Script) -> Options:
    """Options for a session whose model says these things."""

    def make(*calls: Any, **fields: Any) -> QwenAgentOptions:
        return QwenAgentOptions(model=script(*calls), **fields)

    return make


def call(name: str, id: str | None = None, **arguments: Any) -> dict[str, Any]:
    """A step of the script that calls a tool."""
    made: dict[str, Any] = {"name": name, "arguments": arguments}
    return {"tool_call": made if id is None else {**made, "id": id}}


def write(path: str = "a.txt", content: str = "x") -> dict[str, Any]:
    """A step that writes a file, which needs an answer in the default mode."""
    return call("write_file", file_path=path, content=content)


@pytest.fixture
def python_host(tmp_path: Path) -> Callable[[str], list[str]]:
    """The command line of a host program of its own, for tests in which the host dies."""

    def make(source: str) -> list[str]:
        path = tmp_path / "host.py"
        path.write_text(source)
        return [sys.executable, str(path)]

    return make


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
    """Runs one prompt and brings its result."""
    result = [message async for message in query("Go", **fields)][-1]
    assert isinstance(result, ResultMessage)
    return result


def hold(place: Path) -> list[dict[str, Any]]:
    """A model call that says something and then waits for ever."""
    return [{"text": "Working"}, {"wait_for_file": str(place / "never")}]
