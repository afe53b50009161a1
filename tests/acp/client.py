"""`qwen --acp` through the official Python SDK, with a client that advertises nothing and one that advertises much."""

import asyncio
import importlib.metadata
import json
import os
import tempfile
from typing import Any

import acp
from acp import schema

QWEN = os.environ["QWEN_BIN"]
SCRIPT = [
    [{"text": "Let me look. "}, {"tool_call": {"name": "run_shell_command", "arguments": {"command": "touch made"}}}],
    [{"text": "Done."}],
    [{"text": "Second."}],
]
NOTHING: dict[str, Any] = {}
MUCH = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "_meta": {"terminal_output": True, "subagent-transcript": True},
}


class Editor(acp.Client):
    """Collects updates and answers permission requests with one option."""

    def __init__(self, option: str) -> None:
        self.option = option
        self.updates: list[Any] = []

    async def request_permission(self, *args: Any, **kwargs: Any) -> Any:
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.option)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    def kinds(self) -> set[str]:
        return {update.session_update for update in self.updates}

    def text(self) -> str:
        chunks = [update for update in self.updates if update.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)


async def drive(option: str, capabilities: dict[str, Any]) -> None:
    home, cwd = tempfile.mkdtemp(), os.path.realpath(tempfile.mkdtemp())
    script = os.path.join(home, "script.json")
    with open(script, "w", encoding="utf-8") as file:
        json.dump(SCRIPT, file)
    env = {"HOME": home, "PATH": os.environ["PATH"], "QWEN_HOME": os.path.join(home, ".qwen")}
    editor = Editor(option)
    started = acp.spawn_agent_process(editor, QWEN, "--acp", "--model", f"script:{script}", env=env, cwd=cwd)
    async with started as (agent, process):
        initialized = await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=schema.ClientCapabilities.model_validate(capabilities),
        )
        assert initialized.protocol_version == 1, initialized
        assert initialized.agent_capabilities.load_session
        assert initialized.auth_methods
        await agent.authenticate(method_id="model-key")
        session = await agent.new_session(cwd=cwd, mcp_servers=[])
        assert session.modes.current_mode_id == "default"
        block = schema.TextContentBlock(type="text", text="Go")
        result = await agent.prompt(session_id=session.session_id, prompt=[block])
        assert result.stop_reason == "end_turn", result
        assert editor.text() == "Let me look. Done.", editor.text()
        assert os.path.exists(os.path.join(cwd, "made")) == option.startswith("allow"), option
        assert {"tool_call", "tool_call_update", "available_commands_update"} <= editor.kinds(), editor.kinds()
        await agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        listed = await agent.list_sessions()
        assert [row.session_id for row in listed.sessions] == [session.session_id]
        editor.updates.clear()
        await agent.load_session(session_id=session.session_id, cwd=cwd, mcp_servers=[])
        assert editor.text() == "Let me look. Done.", editor.text()
        assert "user_message_chunk" in editor.kinds()
        again = await agent.prompt(session_id=session.session_id, prompt=[block])
        assert again.stop_reason == "end_turn"
        try:
            await agent.load_session(session_id="unknown", cwd=cwd, mcp_servers=[])
        except acp.RequestError as error:
            assert error.code == -32002, error
        else:
            raise AssertionError("an unknown session was loaded")
    assert process.returncode is not None


def main() -> None:
    options = ("allow_once", "allow_session", "allow_always", "reject_once", "reject_session")
    for capabilities in (NOTHING, MUCH):
        for option in options:
            asyncio.run(asyncio.wait_for(drive(option, capabilities), 60))
    print("agent-client-protocol", importlib.metadata.version("agent-client-protocol"), "ok: 10 runs")


main()
