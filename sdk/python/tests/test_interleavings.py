"""Random schedules of ask, query, cancel, interrupt, steer and close: every result belongs to its prompt."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from conftest import MOCK_MODEL

from qwen_agent_sdk import AsyncClient, NotConnectedError, ResultMessage, SessionEvent

pytestmark = pytest.mark.anyio

SCHEDULES = 200
PER_TEST = 20
MODEL = r"""
import http.server, json, re, sys, threading
class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = [json.dumps(m["content"]) for m in body["messages"] if m["role"] == "user"]
        name = re.findall(r"prompt-[0-9a-z-]+", said[-1])[-1]
        print(name, flush=True)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        chunk = lambda delta, end=None: self.wfile.write(b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk",
            "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}).encode() + b"\n\n")
        try:
            chunk({"role": "assistant", "content": "Re: "})
            self.wfile.flush()
            chunk({"content": name})
            chunk({}, "stop")
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
"""


class EchoModel:
    """A model that answers each prompt with its name, and keeps the names that reached it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def mark(self, name: str) -> None:
        """Sends a prompt of the test itself, as a mark in the order of arrival."""
        body = json.dumps({"messages": [{"role": "user", "content": name}]}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", body, timeout=30) as answer:
            answer.read()

    def end(self) -> list[str]:
        """Ends the model; the names of the prompts that reached it."""
        names, _ = self.process.communicate()
        return names.split()


@pytest.fixture
def echo() -> Iterator[EchoModel]:
    model = EchoModel()
    yield model
    if model.process.poll() is None:
        model.end()


class Schedule:
    """One random program against one session."""

    def __init__(self, seed: int, client: AsyncClient) -> None:
        self.random = random.Random(seed)
        self.client = client
        self.seed = seed
        self.count = 0
        self.queried: list[tuple[str, str]] = []
        self.steered: set[str] = set()

    def name(self) -> str:
        self.count += 1
        return f"prompt-{self.seed}-{self.count}"

    def check(self, result: ResultMessage, name: str) -> None:
        answer = f"Re: {name}"
        if result.status == "done":
            steered = [other for other in self.steered if result.text == f"Re: {other}"]
            assert result.text == answer or steered, f"{name} has the result of another prompt: {result.text}"
        else:
            assert (result.status == "cancelled" and answer.startswith(result.text)) or result.text == answer, result

    async def ask(self) -> None:
        name = self.name()
        self.check(await self.client.ask(name), name)

    async def cancelled_ask(self) -> None:
        """An ask whose caller is cancelled at some point: its result must never reach another caller."""
        with anyio.move_on_after(self.random.choice([0, 0.001, 0.01])):
            await self.ask()

    async def query(self) -> None:
        name = self.name()
        self.queried.append((await self.client.query(name), name))

    async def withdraw(self) -> None:
        if self.queried:
            await self.client.interrupt(self.random.choice(self.queried)[0])

    async def interrupt(self) -> None:
        await self.client.interrupt()

    async def steer(self) -> None:
        name = self.name()
        self.steered.add(name)
        self.queried.append((await self.client.steer(name), name))

    async def receive(self) -> None:
        """Every response of the queried prompts, in their order; a steering prompt that joined a turn has none."""
        while self.queried:
            prompt_id, name = self.queried[0]
            if prompt_id not in self.client._open._prompts.unread:
                assert name in self.steered, f"{name} has no response"
                self.queried.pop(0)
                continue
            async for message in self.client.receive_response():
                if isinstance(message, ResultMessage):
                    assert message.prompt_id == prompt_id
                    self.check(message, name)
                elif isinstance(message, SessionEvent) and message.event == "Steered":
                    assert any(message.prompt_id == other for other, _ in self.queried)
            self.queried.pop(0)

    async def run(self) -> None:
        steps = [self.ask, self.cancelled_ask, self.query, self.query, self.withdraw, self.interrupt, self.steer]
        for _ in range(self.random.randrange(2, 8)):
            await self.random.choice([*steps, self.receive])()
        if self.random.random() < 0.7:
            await self.receive()
            last = self.name()
            self.check(await self.client.ask(last), last)


@pytest.mark.parametrize("block", range(SCHEDULES // PER_TEST))
async def test_every_result_belongs_to_its_prompt_and_nothing_runs_after_close(
    block: int, echo: EchoModel, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    if anyio_backend == "trio" and block % 5:
        pytest.skip("every fifth block runs under trio, too")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{echo.port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    for seed in range(block * PER_TEST, (block + 1) * PER_TEST):
        async with AsyncClient(model="m") as client:
            await Schedule(seed, client).run()
        echo.mark(f"prompt-closed-{seed}")
        with pytest.raises(NotConnectedError):
            await client.query(f"prompt-{seed}-late")
    closed: set[str] = set()
    for name in echo.end():
        kind, seed_text = name.split("-")[1:3]
        if kind == "closed":
            closed.add(seed_text)
        else:
            assert kind not in closed, f"{name} reached the model after close()"
    assert len(closed) == PER_TEST


async def test_close_withdraws_the_prompts_that_wait(place: Path) -> None:
    script = place / "script.json"
    held = {"steps": [{"text": "Working"}, {"gate": "never"}]}
    script.write_text(json.dumps({"replies": [held, {"steps": [{"text": "must not run"}]}]}))
    run = [MOCK_MODEL, "--script", str(script)]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as model:
        assert model.stdout is not None and model.stdin is not None
        served = json.loads(model.stdout.readline())
        env = {"OPENAI_BASE_URL": served["base_url"], "OPENAI_API_KEY": "test"}
        client = await AsyncClient(model="m", env=env, include_partial_messages=True).connect()
        await client.query("one")
        async for message in client.receive_response():
            if getattr(message, "text", ""):
                break
        await client.query("two")
        await client.query("three")
        with anyio.fail_after(10):
            await client.close()
        with urllib.request.urlopen(f"{served['origin']}/control/requests", timeout=30) as answer:
            requests = json.load(answer)
        model.stdin.close()
    assert len(requests) == 1, "the prompts that waited reached the model"


async def test_the_result_of_a_cancelled_ask_is_not_the_next_one_s(
    echo: EchoModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{echo.port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    async with AsyncClient(model="m") as client:
        with anyio.move_on_after(0):
            await client.ask("prompt-1-1")
        for number in (2, 3):
            await client.query(f"prompt-1-{number}")
            results = [m async for m in client.receive_response() if isinstance(m, ResultMessage)]
            assert [result.text for result in results] == [f"Re: prompt-1-{number}"]
        assert (await client.ask("prompt-1-4")).text == "Re: prompt-1-4"
