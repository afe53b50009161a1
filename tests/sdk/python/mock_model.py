"""The scripted model server, as a process beside the test: what it says is data, what it was asked can be looked at."""

import asyncio
import json
import os
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

BINARY = os.environ["MOCK_MODEL_BIN"]


def say(*steps: dict[str, Any] | str, match: str | None = None) -> dict[str, Any]:
    """One reply of the model; a bare string is a piece of text."""
    reply: dict[str, Any] = {"steps": [{"text": s} if isinstance(s, str) else s for s in steps]}
    return reply if match is None else {"match": match, **reply}


def call(name: str, arguments: Any = None, id: str | None = None) -> dict[str, Any]:
    """A step that calls a tool."""
    made: dict[str, Any] = {"name": name, "arguments": {} if arguments is None else arguments}
    return {"tool_call": made if id is None else {**made, "id": id}}


def gate(name: str) -> dict[str, Any]:
    """A step that holds until the test opens this gate."""
    return {"gate": name}


def fail(status: int, message: str) -> dict[str, Any]:
    """A reply that is an error of the server."""
    return {"steps": [{"status": status, "body": {"error": {"message": message}}}]}


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk of the OpenAI wire."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "mock", "choices": [choice]}


def raw(*chunks: dict[str, Any]) -> dict[str, Any]:
    """A reply made of these chunks of the OpenAI wire, each a write of its own."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return {"steps": [{"raw": line} for line in [*lines, "data: [DONE]\n\n"]]}


class MockModel:
    """A running server. Replies are used once each, in their order."""

    def __init__(self, folder: Path, replies: list[dict[str, Any]], *, loop: bool = False) -> None:
        script = folder / "mock-script.json"
        script.write_text(json.dumps({"loop": loop, "replies": replies}))
        self._process = subprocess.Popen(
            [BINARY, "--script", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        announced = json.loads(self._process.stdout.readline())
        self.base_url: str = announced["base_url"]
        self._control = announced["origin"] + "/control/"

    def env(self) -> dict[str, str]:
        """What points the program at this server."""
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "mock"}

    def _ask(self, path: str, method: str) -> Any:
        request = urllib.request.Request(self._control + path, method=method)
        with urllib.request.urlopen(request, timeout=40) as answer:
            return json.load(answer)

    def open(self, name: str) -> None:
        """Opens a gate."""
        self._ask(f"open/{name}", "POST")

    async def reached(self, name: str) -> None:
        """Waits until a reply stands at this gate."""
        await asyncio.to_thread(self._ask, f"reached/{name}", "GET")

    async def gone(self, number: int) -> None:
        """Waits until the connection of this request is closed by the program."""
        await asyncio.to_thread(self._ask, f"gone/{number}", "GET")

    def requests(self) -> list[dict[str, Any]]:
        """The bodies of all requests so far."""
        return [request["body"] for request in self._ask("requests", "GET")]

    def headers(self, number: int = -1) -> dict[str, str]:
        """The headers of one request, by name."""
        return self._ask("requests", "GET")[number]["headers"]

    def messages(self, number: int = -1) -> list[dict[str, Any]]:
        """The conversation as one request carried it."""
        return self.requests()[number]["messages"]

    def tools(self, number: int = -1) -> list[str]:
        """The names of the tools that one request offered."""
        return [tool["function"]["name"] for tool in self.requests()[number].get("tools", [])]

    def situation(self, number: int = -1) -> str:
        """What the model was told about its situation in one request, with the user's messages."""
        messages = self._ask("requests", "GET")[number]["full_body"]["messages"]
        return "\n".join(text_of(message) for message in messages if message["role"] == "user")

    def system(self, number: int = -1) -> str:
        """The system prompt of one request."""
        return "".join(text_of(m) for m in self.messages(number) if m["role"] == "system")

    def results(self, number: int = -1) -> list[str]:
        """The texts of the tool results in one request."""
        return [text_of(m) for m in self.messages(number) if m["role"] == "tool"]

    def close(self) -> None:
        """Ends the server; it serves as long as its standard input is open."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)


class MockModels:
    """The servers of one test. The environment points the program at the one started last."""

    def __init__(self, folder: Path, setenv: Callable[[str, str], None]) -> None:
        self._folder, self._setenv = folder, setenv
        self._started: list[MockModel] = []

    def start(self, replies: list[dict[str, Any]], *, loop: bool = False) -> MockModel:
        """Starts a server that gives these replies."""
        mock = MockModel(self._folder, replies, loop=loop)
        self._started.append(mock)
        for name, value in mock.env().items():
            self._setenv(name, value)
        return mock

    def close(self) -> None:
        """Ends all servers."""
        for mock in self._started:
            mock.close()


def text_of(message: dict[str, Any]) -> str:
    """A message's text; its text parts joined."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])
