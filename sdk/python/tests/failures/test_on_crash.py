"""What becomes of a turn whose worker dies: moments × policies. No tool runs twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import MOCK_MODEL, call, workers

from qwen_agent_sdk import AssistantChunk, AsyncClient, QwenAgentOptions, ResultMessage, SessionEvent, ToolDisplay

pytestmark = pytest.mark.anyio

POLICIES = ["error", "resume", "retry", "fork"]
MOMENTS = ["between turns", "before a tool", "in a tool", "after a tool"]
COUNT = call("run_shell_command", command="echo run >> runs.txt")


def continues(policy: str, moment: str) -> bool:
    """True if the turn must end as done in spite of the crash."""
    if moment == "between turns":
        return True
    return policy in ("resume", "fork") or (policy == "retry" and moment == "before a tool")


@pytest.fixture
def model(place: Path) -> Iterator[Callable[..., dict[str, str]]]:
    """Serves these replies one after the other, whichever worker asks; returns the variables that lead to it."""
    served: list[subprocess.Popen[str]] = []

    def serve(*replies: list[dict[str, Any]]) -> dict[str, str]:
        script = place / "replies.json"
        script.write_text(json.dumps({"replies": [{"steps": reply} for reply in replies]}))
        run = [MOCK_MODEL, "--script", str(script)]
        served.append(subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert served[0].stdout is not None
        return {"OPENAI_BASE_URL": json.loads(served[0].stdout.readline())["base_url"], "OPENAI_API_KEY": "test"}

    yield serve
    for each in served:
        each.communicate()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_turn_whose_worker_dies_ends_as_its_policy_says(
    policy: Any, moment: str, place: Path, model: Callable[..., dict[str, str]]
) -> None:
    nap = call("run_shell_command", command="echo run >> runs.txt; sleep 4343")
    held = [{"text": "Thinking."}, {"gate": "never"}]
    replies: list[Any] = {
        "between turns": [[{"text": "First."}]],
        "before a tool": [held],
        "in a tool": [[nap]],
        "after a tool": [[COUNT], held],
    }[moment]
    opened = QwenAgentOptions(
        model="m",
        env=model(*replies, [{"text": "Done."}]),
        include_partial_messages=True,
        permission_mode="yolo",
        on_crash=policy,
    )
    async with AsyncClient(opened) as client:
        before = client.session_id
        if moment == "between turns":
            await client.ask("Go")
            os.kill(workers().pop(), signal.SIGKILL)
            assert (await client.ask("Again")).status == "done"
            return
        prompt_id = await client.query("Go")
        killed = False
        notices = []
        async for message in client.receive_response():
            is_text = isinstance(message, AssistantChunk) and bool(message.text)
            is_running = isinstance(message, ToolDisplay) and message.status == "executing"
            due = {"before a tool": is_text, "in a tool": is_running, "after a tool": is_text}[moment]
            if due and not killed:
                killed = True
                if moment == "in a tool":
                    while not (place / "runs.txt").exists():
                        pass
                os.kill(workers().pop(), signal.SIGKILL)
            if isinstance(message, SessionEvent) and message.worker_restarted:
                notices.append(message.worker_restarted["on_crash"])
        assert isinstance(message, ResultMessage) and message.prompt_id == prompt_id
        expected = ("done", [policy]) if continues(policy, moment) else ("interrupted", [])
        assert (message.status, notices) == expected, message.error
        forked = policy == "fork"
        assert (client.session_id != before) == forked
        runs = (place / "runs.txt").read_text().count("run") if (place / "runs.txt").exists() else 0
        assert runs == (0 if moment == "before a tool" else 1), "no tool runs twice"
