"""What each option does, seen from outside: in what the model is sent, in files, in results."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from conftest import MOCK_MODEL, ROOT, Options, Script, call, write

from qwen_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    AsyncClient,
    Client,
    ControlCancel,
    ControlRequest,
    ControlRequestError,
    ControlResponse,
    ExitStatus,
    FatalErrorMessage,
    Heartbeat,
    Limits,
    Message,
    PermissionDenial,
    Prompt,
    QueryStream,
    QwenAgentOptions,
    QwenClient,
    QwenClientOptions,
    QwenSDKClient,
    QwenSDKError,
    ResultMessage,
    SdkMcpServer,
    SdkMcpTool,
    SessionStore,
    SettingsProfile,
    StdIOSubprocessTransport,
    TerminalOutput,
    Thought,
    TimeoutExpiredError,
    Timeouts,
    ToolCall,
    Transport,
    Usage,
    WorkerPoolOptions,
    __version__,
    create_sdk_mcp_server,
    parse_line,
    query,
    tool,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """A model server over HTTP that shows what it was sent."""
    monkeypatch.setenv("MOCK_MODEL_BIN", MOCK_MODEL)
    monkeypatch.syspath_prepend(str(ROOT / "tests/sdk/python"))
    sys.modules.pop("mock_model", None)
    import mock_model

    models = mock_model.MockModels(tmp_path, monkeypatch.setenv)
    yield lambda *replies: models.start([mock_model.say(r) if isinstance(r, str) else r for r in replies])
    models.close()


async def ask(opened: QwenAgentOptions | None = None, prompt: Prompt = "Go", **fields: Any) -> ResultMessage:
    result = [message async for message in query(prompt, options=opened, **fields)][-1]
    assert isinstance(result, ResultMessage)
    return result


async def test_a_prompt_is_text_or_parts(options: Options) -> None:
    prompts: list[Prompt] = ["Hi", [{"type": "text", "text": "Hi"}]]
    for prompt in prompts:
        assert (await ask(options("Hello."), prompt)).text == "Hello."


async def test_system_prompts_reach_the_model(server: Callable[..., Any]) -> None:
    model = server("Hi.", "Hi.")
    await ask(system_prompt="You are a heron.", append_system_prompt="You wade.")
    assert "You are a heron." in model.system() and "You wade." in model.system()
    await ask(append_system_prompt="You wade.")
    assert "You are a heron." not in model.system() and "You wade." in model.system()


async def test_the_policy_of_the_host_reaches_the_model(server: Callable[..., Any]) -> None:
    model = server("Hi.")
    await ask(policy_description="Deployments need a ticket.")
    assert "policy of the host: Deployments need a ticket." in model.situation()


async def test_effort_and_the_sampling_of_one_prompt_reach_the_model(server: Callable[..., Any]) -> None:
    model = server("Hi.", "Hi.")
    async with AsyncClient(effort="low") as client:
        await client.ask("One", options={"temperature": 0.25})
        await client.ask("Two")
    first, second = model.requests()
    assert first["temperature"] == 0.25 and "temperature" not in second
    assert "low" in json.dumps(first)


async def test_another_model_goes_on_when_the_first_one_fails(server: Callable[..., Any]) -> None:
    failing = {"steps": [{"status": 503, "body": {"error": {"message": "busy"}}}]}
    model = server(failing, "From the second.")
    result = await ask(fallback_models=["second"], settings={"model": {"maxRetries": 0}})
    assert result.text == "From the second."
    assert [request["model"] for request in model.requests()] == ["mock", "second"]


async def test_tools_are_narrowed_and_refused_by_rules(server: Callable[..., Any], options: Options) -> None:
    model = server("Hi.")
    await ask(core_tools=["read_file", "glob"])
    assert sorted(model.tools()) == ["glob", "read_file"]
    remove = call("run_shell_command", id="c", command="rm x")
    refused = await ask(options([remove], "Ok.", disallowed_tools=["Bash(rm *)"], permission_mode="yolo"))
    (denial,) = refused.permission_denials
    assert isinstance(denial, PermissionDenial) and refused.tool_call_count == 1
    assert (denial.tool_name, denial.tool_call_id, denial.arguments) == ("run_shell_command", "c", {"command": "rm x"})


async def test_further_directories_are_part_of_the_workspace(options: Options, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    opened = options([write(str(outside / "a.txt"))], "Ok.", add_dirs=[outside], permission_mode="auto-edit")
    assert (await ask(opened)).ok and (outside / "a.txt").exists()


async def test_the_sandbox_can_be_left(options: Options) -> None:
    opened = options([call("run_shell_command", command="echo in")], "Ok.", sandbox=False, permission_mode="yolo")
    messages = [message async for message in query("Go", options=opened)]
    assert any(isinstance(m, TerminalOutput) and m.text == "in\n" and m.source == "tool" for m in messages)


async def test_the_environment_of_the_session_reaches_commands(options: Options) -> None:
    opened = options(
        [call("run_shell_command", command="echo $HERON")], "Ok.", env={"HERON": "grey"}, permission_mode="yolo"
    )
    messages = [message async for message in query("Go", options=opened)]
    assert any(isinstance(m, TerminalOutput) and m.text == "grey\n" for m in messages)


async def test_the_id_of_a_session_can_be_chosen_and_nothing_is_kept_on_request(options: Options) -> None:
    result = await ask(options("Hi.", session_id="my-session"))
    home = Path(os.environ["QWEN_HOME"]) / "sessions"
    assert result.session_id == "my-session" and (home / "my-session.jsonl").exists()
    await ask(options("Hi.", session_id="forgotten", persist_session=False))
    assert not (home / "forgotten.jsonl").exists()


async def test_a_session_goes_on_from_an_earlier_prompt(options: Options, server: Callable[..., Any]) -> None:
    async with AsyncClient(options("One.", "Two.")) as client:
        first = await client.query("first")
        assert isinstance([m async for m in client.receive_response()][-1], ResultMessage)
        await client.ask("second")
        session_id = client.session_id
    model = server("Three.")
    result = await ask(prompt="third", resume=session_id, fork_session=True, resume_at=first)
    assert result.text == "Three."
    sent = json.dumps(model.messages())
    assert "first" in sent and "second" not in sent


async def test_a_trusted_workspace_brings_its_settings(script: Script, place: Path) -> None:
    (place / ".qwen").mkdir()
    (place / ".qwen/settings.json").write_text('{"permissions": {"allow": ["write_file"]}}')
    untrusted = await ask(model=script([write()], "Ok."), setting_sources=["project"])
    assert untrusted.outcome == "denied"
    trusted = await ask(model=script([write()], "Ok."), setting_sources=["project"], trust_workspace=True)
    assert trusted.ok


async def test_every_limit_ends_a_turn(script: Script) -> None:
    look = [call("list_directory", path=".")]
    cases = [
        (Limits(max_tool_calls=1), script(look, look, "Never."), "max_tool_calls"),
        (Limits(max_wall_time=0.2), script([{"delay_ms": 60_000}]), "max_wall_time"),
        (Limits(max_tokens_total=10), script(look, "Never."), "max_tokens"),
        (Limits(max_session_turns=1), script(look, "Never."), "max_turns"),
    ]
    for limits, model, status in cases:
        assert (await ask(model=model, limits=limits)).status == status, limits
    spent = {"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 1}}
    prices = {"model": {"prices": {"*": {"input": 1.0, "output": 1.0}}}}
    result = await ask(model=script([*look, spent], "Never."), limits=Limits(max_budget_usd=0.5), settings=prices)
    assert result.status == "budget" and result.error_message and result.error is not None


async def test_a_tree_of_thoughts_is_told_as_it_grows() -> None:
    messages = [m async for m in query("4 9 10 13", model="oracle:game24", agent="tot")]
    thoughts = [m for m in messages if isinstance(m, Thought)]
    assert thoughts and thoughts[0].subject.startswith("Expanding") and thoughts[0].description


async def test_heartbeats_are_messages_on_request(options: Options) -> None:
    opened = options(
        [{"delay_ms": 500}, {"text": "Ok."}], include_heartbeats=True, timeouts=Timeouts(heartbeat_interval=0.1)
    )
    assert any([isinstance(message, Heartbeat) async for message in query("Go", options=opened)])


async def test_the_handshake_is_there_to_be_looked_at(options: Options) -> None:
    async with AsyncClient(options("Hi.")) as client:
        assert client.handshake.protocol_version == "1.0" and "control" in client.handshake.capabilities
        assert client.handshake.worker_version.startswith("qwen-") and client.handshake.session_id == client.session_id


async def test_what_a_worker_does_not_know_is_a_control_request_error(options: Options) -> None:
    async with AsyncClient(options("Hi.")) as client:
        with pytest.raises(ControlRequestError, match="no_such_request") as caught:
            await client.control("no_such_request")
        assert caught.value.code == "unknown_subtype" and isinstance(caught.value, QwenSDKError)
        assert "totalTokens" in await client.context_usage()
        assert (await client.control("supported_commands"))["commands"]


async def test_servers_in_this_process_are_told_in_the_status(options: Options) -> None:
    @tool
    def heron() -> str:
        return "grey"

    assert isinstance(heron, SdkMcpTool)
    server = create_sdk_mcp_server("birds", tools=[heron])
    assert isinstance(server, SdkMcpServer)
    async with AsyncClient(
        options([call("mcp__birds__heron")], "Ok.", mcp_servers={"birds": server}, permission_mode="yolo")
    ) as client:
        await client.ask("Go")
        assert "birds" in json.dumps(await client.mcp_status())
    with pytest.raises(ValueError, match="same name"):
        create_sdk_mcp_server("birds", tools=[heron, heron])


async def test_a_tool_that_never_returns_is_an_error_result(options: Options) -> None:
    @tool
    async def wait() -> str:
        await anyio.sleep_forever()
        return ""

    opened = options(
        [call("mcp__t__wait")],
        [{"expect": {"contains": "did not return within"}}, {"text": "Ok."}],
        mcp_servers={"t": create_sdk_mcp_server("t", tools=[wait])},
        permission_mode="yolo",
        timeouts=Timeouts(tool=0.2),
    )
    assert (await ask(opened)).text == "Ok."


async def test_a_control_request_that_is_not_answered_is_a_named_time_out(options: Options) -> None:
    import signal

    from conftest import children

    async with AsyncClient(options("Hi.", timeouts=Timeouts(control=0.3, heartbeat_interval=0))) as client:
        (worker,) = children()
        os.kill(worker, signal.SIGSTOP)
        with pytest.raises(TimeoutExpiredError, match="control time-out"):
            await client.set_model("other")
        os.kill(worker, signal.SIGCONT)
        assert (await client.ask("Hi")).text == "Hi."
        await client.disconnect()


class ScriptedTransport:
    """A worker that is no process: answers lines in this program."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.waiting: list[str] = []
        self.wake = anyio.Event()
        self.is_closed = False

    def say(self, line: dict[str, Any]) -> None:
        self.waiting.append(json.dumps(line))
        self.wake.set()

    async def start(self) -> None:
        metadata = {"protocol_version": "1.0", "capabilities": ["control", "sessions"]}
        self.say({"object": "chat.completion", "session_id": "far", "choices": [], "metadata": metadata})

    async def send(self, line: str) -> None:
        request = json.loads(line)
        self.sent.append(request)
        if request.get("type") == "control_request":
            response = {"subtype": "success", "result": {}}
            self.say({"type": "control_response", "request_id": request["request_id"], "response": response})
        elif "input" in request:
            message = {"role": "assistant", "content": "From afar."}
            turn = {"status": "done", "permission_denials": [], "usage_by_model": {}}
            self.say(
                {
                    "object": "chat.completion",
                    "session_id": "far",
                    "prompt_id": request["prompt_id"],
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "metadata": {"turn": turn},
                }
            )

    async def receive(self) -> Sequence[str]:
        while not self.waiting and not self.is_closed:
            self.wake = anyio.Event()
            await self.wake.wait()
        lines, self.waiting = self.waiting, []
        return lines

    async def close(self, timeout: float) -> ExitStatus:
        self.kill()
        return ExitStatus(0)

    def kill(self) -> None:
        self.is_closed = True
        self.wake.set()


def test_the_names_of_the_specification_are_aliases() -> None:
    assert QwenSDKClient is AsyncClient and QwenClient is Client and QwenClientOptions is QwenAgentOptions


async def test_a_transport_of_the_host_takes_the_place_of_the_process() -> None:
    transport = ScriptedTransport()
    assert isinstance(transport, Transport)
    assert (await ask(transport=transport)).text == "From afar."
    assert transport.is_closed and [line["subtype"] for line in transport.sent[:2]] == ["open", "initialize"]


async def test_the_process_transport_can_be_used_alone(script: Script) -> None:
    flags = ["--dialect", "qwen", "--input-format", "stream-json", "--model", script("Hi.")]
    transport = StdIOSubprocessTransport([os.environ["QWEN_BIN"], *flags])
    await transport.start()
    assert transport.pid
    await transport.send(json.dumps({"input": {"parts": [{"text": "Hello"}]}}))
    seen: list[Message] = []
    while not any(isinstance(message, ResultMessage) for message in seen):
        seen += [parse_line(line) for line in await transport.receive()]
    status = await transport.close(5)
    assert status == ExitStatus(0) and status.describe() == "exited with code 0"


async def test_a_query_can_be_steered_through_its_client(options: Options, place: Path) -> None:
    hold = [{"text": "Hi"}, {"wait_for_file": str(place / "never")}]
    stream = query("Go", options=options(hold, include_partial_messages=True))
    assert isinstance(stream, QueryStream)
    begun = anyio.Event()
    async with anyio.create_task_group() as group:

        async def stop() -> None:
            await begun.wait()
            await stream.client.interrupt()

        group.start_soon(stop)
        async for message in stream:  # noqa: B007
            begun.set()
    assert isinstance(message, ResultMessage) and message.status == "cancelled"
    await stream.aclose()


def test_the_synchronous_client_shows_its_sessions(options: Options) -> None:
    with Client(options("Hi.")) as client:
        result = client.chat("Hello")
        assert client.session().session_id == result.session_id
        assert result.duration_ms >= 0


async def test_a_profile_has_all_layers(script: Script) -> None:
    profile = SettingsProfile(
        system_defaults={"permissions": {"defaultMode": "plan"}}, system={"permissions": {"defaultMode": "yolo"}}
    )
    assert (await ask(model=script([write()], "Ok."), settings_profile=profile)).ok


def test_what_is_written_for_the_worker_is_complete() -> None:
    agent = AgentDefinition("d", "p", tools=["Read"], disallowed_tools=["Bash"], model="m", background=True)
    assert agent.to_wire() == {
        "description": "d", "prompt": "p", "tools": ["Read"], "disallowedTools": ["Bash"], "model": "m", "background": True
    }  # fmt: skip
    pool = WorkerPoolOptions(
        min_workers=5, max_workers=50, idle_timeout=1800, max_sessions_per_worker=100, health_check_interval=60
    )
    assert pool.to_wire() == {
        "min_workers": 5,
        "max_workers": 50,
        "idle_timeout": 1800,
        "max_sessions_per_worker": 100,
        "health_check_interval": 60,
    }, "the keys of the specification"


async def test_tenants_of_a_pool_have_sessions_of_their_own(script: Script) -> None:
    from qwen_agent_sdk import WorkerPool

    async with WorkerPool() as pool:
        for tenant in ("ada", "bob"):
            assert (await ask(model=script(f"Hi {tenant}."), worker_pool=pool, tenant=tenant)).text == f"Hi {tenant}."
        assert (await pool.status())["machines"]


async def test_messages_have_typed_parts(options: Options) -> None:
    from qwen_agent_sdk import CancelResult, CommandHint

    messages = [m async for m in query("Go", options=options([call("list_directory", id="c", path=".")], "Ok."))]
    first = next(m for m in messages if isinstance(m, AssistantMessage))
    assert first.tool_calls == [ToolCall("c", "list_directory", {"path": "."}, first.tool_calls[0].raw_arguments)]
    assert isinstance(first.usage, Usage) and first.finish_reason == "tool_calls"
    lines = {
        '{"error": {"message": "m", "code": "c"}}': FatalErrorMessage,
        '{"type": "control_request", "request_id": "r", "subtype": "s"}': ControlRequest,
        '{"type": "control_response", "request_id": "r", "response": {}}': ControlResponse,
        '{"type": "control_cancel_request", "request_id": "r"}': ControlCancel,
        '{"type": "result/cancel", "status": "ok"}': CancelResult,
        '{"type": "result/command_hint", "suggestions": []}': CommandHint,
    }
    for line, kind in lines.items():
        assert type(parse_line(line)) is kind


def test_the_version_is_that_of_the_binary() -> None:
    assert __version__.count(".") == 2
    assert f'version = "{__version__}"' in (ROOT / "Cargo.toml").read_text()


def test_a_store_is_anything_with_load_and_append() -> None:
    class Store:
        async def load(self, session_id: str) -> bytes | None:
            return None

        async def append(self, session_id: str, offset: int, data: bytes) -> None:
            return None

    assert isinstance(Store(), SessionStore)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"allowed_tools": "Bash"}, r"allowed_tools is 'Bash'; it must be a list, such as \['Bash'\]"),
        ({"disallowed_tools": "Bash"}, "it must be a list"),
        ({"core_tools": "Bash"}, "it must be a list"),
        ({"add_dirs": Path("/tmp")}, "it must be a list"),
        ({"extra_args": "--debug"}, "it must be a list"),
        ({"setting_sources": "user"}, "it must be a list"),
        ({"add_dirs": ["/a,b"]}, "a path with a comma"),
        ({"limits": {"max_turns": 1}}, r"it must be a Limits\("),
        ({"timeouts": 5}, r"it must be a Timeouts\("),
        ({"mcp_servers": []}, "mcp_servers .* must be a mapping"),
        ({"max_turns": 3}, r"there is no option max_turns; use limits=Limits\(max_turns=\.\.\.\)"),
        ({"cli_path": "/bin/qwen"}, "use binary_path"),
        ({"continue_conversation": True}, "use continue_session"),
        ({"env": {"PORT": 80}}, "80 for 'PORT'; the value of a variable must be a string"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_in_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        QwenAgentOptions(**fields)
    with pytest.raises((TypeError, ValueError), match=words):
        query("Go", **fields)
    assert "model" in inspect.signature(QwenAgentOptions).parameters


async def test_an_agent_may_be_given_as_a_mapping(options: Options) -> None:
    scout = {"description": "Looks around.", "prompt": "You look around."}
    async with AsyncClient(options("Hi.", agents={"scout": scout})) as client:
        assert "scout" in [agent["name"] for agent in client.server_info["agents"]]
