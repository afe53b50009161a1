"""Permissions, hooks and tools that the host runs."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from conftest import Options, call, write
from pydantic import BaseModel

from qwen_agent_sdk import (
    AsyncClient,
    HookContext,
    HookMatcher,
    HookResult,
    PermissionResult,
    PermissionUpdate,
    ResultMessage,
    Timeouts,
    ToolError,
    ToolPermissionContext,
    create_sdk_mcp_server,
    hook,
    query,
    tool,
)

pytestmark = pytest.mark.anyio


async def ask(opened: Any) -> ResultMessage:
    """Runs one prompt, given as a string, and brings its result."""
    last = [message async for message in query("Go", options=opened)][-1]
    assert isinstance(last, ResultMessage)
    return last


async def test_every_question_reaches_the_callback_and_allow_runs_the_call(options: Options, place: Path) -> None:
    asked: list[tuple[str, dict[str, Any], ToolPermissionContext]] = []

    async def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        asked.append((name, arguments, context))
        return PermissionResult.allow()

    result = await ask(options([write("a.txt")], [write("b.txt")], "Done.", can_use_tool=can_use_tool))
    assert result.ok
    assert (place / "a.txt").exists() and (place / "b.txt").exists()
    assert [name for name, _, _ in asked] == ["write_file", "write_file"]
    _, arguments, context = asked[0]
    assert arguments == {"file_path": "a.txt", "content": "x"}
    assert context.reason and context.tool_call_id and context.confirmation
    assert context.confirmation["type"] == "edit"


async def test_deny_refuses_and_is_in_the_result(options: Options, place: Path) -> None:
    async def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        return PermissionResult.deny("not in this house")

    seen_by_model = {"expect": {"contains": "not in this house"}}
    result = await ask(options([write()], [seen_by_model, {"text": "Fine."}], can_use_tool=can_use_tool))
    assert not (place / "a.txt").exists()
    assert (result.status, result.outcome, result.ok) == ("done", "denied", False)
    (denial,) = result.permission_denials
    assert (denial.tool_name, denial.reason) == ("write_file", "not in this house"), (
        "the reason given, and nothing else"
    )


async def test_deny_with_interrupt_ends_the_turn(options: Options) -> None:
    result = await ask(
        options([write()], "Never.", can_use_tool=lambda *_: PermissionResult.deny("stop", interrupt=True))
    )
    assert result.is_error and result.model_calls == 1


async def test_ask_without_anybody_to_ask_is_a_denial(options: Options, place: Path) -> None:
    result = await ask(options([write()], "Fine.", can_use_tool=lambda *_: PermissionResult.ask()))
    assert result.outcome == "denied"
    assert not (place / "a.txt").exists()


async def test_without_a_callback_a_question_is_a_denial(options: Options, place: Path) -> None:
    result = await ask(options([write()], "Fine."))
    assert result.outcome == "denied" and len(result.permission_denials) == 1
    assert not (place / "a.txt").exists()


async def test_the_call_runs_with_the_input_that_the_callback_returned(options: Options, place: Path) -> None:
    def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        return PermissionResult.allow({**arguments, "content": "changed"})

    assert (await ask(options([write()], "Done.", can_use_tool=can_use_tool))).ok
    assert (place / "a.txt").read_text() == "changed"


async def test_an_answer_can_change_the_rules_of_the_session(options: Options, place: Path) -> None:
    asked = []

    def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        asked.append(name)
        return PermissionResult.allow(updated_permissions=[PermissionUpdate("setMode", mode="auto-edit")])

    result = await ask(options([write("a.txt")], [write("b.txt")], "Done.", can_use_tool=can_use_tool))
    assert result.ok and asked == ["write_file"], "the second write was not asked about"


async def test_a_plain_function_may_block_and_a_bool_is_an_answer(options: Options, place: Path) -> None:
    threads = []

    def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> bool:
        threads.append(threading.current_thread())
        return True

    assert (await ask(options([write()], "Done.", can_use_tool=can_use_tool))).ok
    assert threads[0] is not threading.main_thread()


async def test_a_hook_blocks_a_call_and_the_model_is_told_why(options: Options, place: Path) -> None:
    heard: list[dict[str, Any]] = []

    @hook("PreToolUse", matcher="write_file")
    async def no_writes(given: dict[str, Any], context: HookContext) -> HookResult:
        heard.append(given)
        return HookResult.block("writing is forbidden")

    told = {"expect": {"contains": "writing is forbidden"}}
    opened = options([write()], [told, {"text": "Fine."}], hooks=[no_writes], permission_mode="yolo")
    result = await ask(opened)
    assert result.text == "Fine." and not (place / "a.txt").exists()
    assert heard[0]["hook_event_name"] == "PreToolUse" and heard[0]["tool_name"] == "write_file"


async def test_a_session_end_hook_runs_when_the_session_is_closed(options: Options, place: Path) -> None:
    heard: list[str] = []

    @hook("SessionEnd")
    async def goodbye(given: dict[str, Any], context: HookContext) -> None:
        heard.append(given["hook_event_name"])

    async with AsyncClient(options("Done.", hooks=[goodbye])) as client:
        assert (await client.ask("Go")).ok
        assert heard == []
    assert heard == ["SessionEnd"]


async def test_a_hook_changes_the_input_of_a_call(options: Options, place: Path) -> None:
    async def change(given: dict[str, Any], context: HookContext) -> HookResult:
        return HookResult.modify({**given["tool_input"], "content": "from the hook"})

    hooks = {"PreToolUse": [HookMatcher([change], matcher="write_file")]}
    assert (await ask(options([write()], "Done.", hooks=hooks, permission_mode="yolo"))).ok
    assert (place / "a.txt").read_text() == "from the hook"


async def test_hooks_add_context_replace_output_and_stop(options: Options) -> None:
    @hook("UserPromptSubmit")
    def context(given: dict[str, Any], _: HookContext) -> HookResult:
        return HookResult.add_context("The user likes tea.")

    @hook("PostToolUse", matcher="list_directory")
    def replaced(given: dict[str, Any], _: HookContext) -> HookResult:
        return HookResult.replace_output("nothing to see")

    first = [{"expect": {"contains": "likes tea"}}, call("list_directory", path=".")]
    opened = options(first, [{"expect": {"contains": "nothing to see"}}, {"text": "Ok."}], hooks=[context, replaced])
    assert (await ask(opened)).text == "Ok."

    @hook("PreToolUse")
    def stop(given: dict[str, Any], _: HookContext) -> HookResult:
        return HookResult.stop("enough")

    result = await ask(options([call("list_directory", path=".")], "Never.", hooks=[stop]))
    assert result.text != "Never."

    @hook("PreToolUse")
    def deny(given: dict[str, Any], _: HookContext) -> HookResult:
        return HookResult.decide("deny", "no lists")

    denied = await ask(options([call("list_directory", path=".")], "Ok.", hooks=[deny]))
    assert denied.outcome == "denied"


async def test_a_function_of_the_host_is_a_tool(options: Options) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    server = create_sdk_mcp_server("calc", tools=[add])
    opened = options(
        [call("mcp__calc__add", a=2, b=3)],
        [{"expect": {"contains": "5"}}, {"text": "Five."}],
        mcp_servers={"calc": server},
        allowed_tools=["mcp__calc__add"],
    )
    result = await ask(opened)
    assert result.ok and result.text == "Five."
    assert await add(1, 1) == 2, "the function itself stays callable"


async def test_wrong_arguments_and_exceptions_are_error_results_for_the_model(options: Options) -> None:
    @tool("fail", "Fails.", {"how": str})
    def fail(arguments: dict[str, Any]) -> str:
        raise ToolError(f"{arguments['how']} is not a plan")

    @tool
    def double(n: int) -> int:
        return n * 2

    opened = options(
        [call("mcp__t__fail", how="design")],
        [{"expect": {"contains": "design is not a plan"}}, call("mcp__t__double", n="not a number")],
        [{"expect": {"contains": "integer"}}, {"text": "Ok."}],
        mcp_servers={"t": [fail, double]},
        permission_mode="yolo",
    )
    assert (await ask(opened)).text == "Ok."


async def test_the_text_of_an_exception_is_logged_and_never_sent_to_the_model(
    options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def leak() -> str:
        raise ValueError("the password is hunter2")

    def can_use_tool(*_: Any) -> bool:
        raise RuntimeError("the dialog knows hunter2")

    @hook("PostToolUse", matcher="list_directory")
    def after(*_: Any) -> None:
        raise RuntimeError("the hook knows hunter2")

    opened = options(
        [call("mcp__t__leak")],
        [{"expect": {"contains": "The tool leak failed"}}, write()],
        [{"expect": {"contains": "the host could not decide"}}, call("list_directory", path=".")],
        "Ok.",
        mcp_servers={"t": [leak]},
        allowed_tools=["mcp__t__leak"],
        can_use_tool=can_use_tool,
        hooks=[after],
    )
    messages = [message async for message in query("Go", options=opened)]
    assert isinstance(messages[-1], ResultMessage) and messages[-1].text == "Ok."
    assert not any("hunter2" in str(message.raw) for message in messages)
    logged = [json.loads(record.getMessage()) for record in caplog.records if record.levelname == "ERROR"]
    assert [entry["event"] for entry in logged] == ["tool_failed", "callback_failed", "callback_failed"]
    assert all("Traceback" in entry["traceback"] and "hunter2" in entry["traceback"] for entry in logged)


async def test_a_value_that_is_no_server_is_refused_with_what_would_be_one(options: Options) -> None:
    with pytest.raises(TypeError, match=r"mcp_servers\['t'\] is .*; it must be a list of functions with @tool"):
        options("Hi.", mcp_servers={"t": [lambda: 1]})


async def test_tools_of_one_message_run_in_the_order_that_the_model_wrote(options: Options) -> None:
    order: list[str] = []

    @tool
    async def work(task: str) -> str:
        order.append(f"{task} begins")
        await anyio.lowlevel.checkpoint()
        order.append(f"{task} ends")
        return task

    opened = options(
        [call("mcp__m__work", task="one"), call("mcp__m__work", task="two")],
        "Both.",
        mcp_servers={"m": [work]},
        permission_mode="yolo",
    )
    assert (await ask(opened)).text == "Both."
    assert order == ["one begins", "one ends", "two begins", "two ends"]


async def test_a_server_of_the_mcp_package_works_in_process(options: Options) -> None:
    try:
        from mcp.server.mcpserver import MCPServer as HighLevelServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP as HighLevelServer
    server = HighLevelServer("calc")

    @server.tool()
    def multiply(a: int, b: int) -> int:
        """Multiplies."""
        return a * b

    opened = options(
        [call("mcp__calc__multiply", a=6, b=7)],
        [{"expect": {"contains": "42"}}, {"text": "42."}],
        mcp_servers={"calc": create_sdk_mcp_server("calc", instance=server)},
        permission_mode="yolo",
    )
    assert (await ask(opened)).text == "42."


async def test_a_callback_that_raises_is_a_denial_and_the_turn_goes_on(options: Options, place: Path) -> None:
    async def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        raise RuntimeError("the dialog crashed")

    result = await ask(options([write()], "Fine.", can_use_tool=can_use_tool))
    assert result.outcome == "denied" and not (place / "a.txt").exists()
    assert "can_use_tool callback failed" in result.control_errors[0]["message"]
    assert result.done and not result.ok, "the turn completed, and a call was refused in it"


async def test_a_callback_that_answers_nonsense_is_a_denial(options: Options, caplog: pytest.LogCaptureFixture) -> None:
    result = await ask(options([write()], "Fine.", can_use_tool=lambda *_: "yes please"))  # type: ignore[arg-type,return-value]
    assert result.outcome == "denied" and "callback failed" in result.control_errors[0]["message"]
    assert "yes please" in caplog.text


async def test_a_callback_that_never_returns_is_a_denial_at_its_deadline(options: Options, place: Path) -> None:
    cancelled = anyio.Event()

    async def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return PermissionResult.allow()

    result = await ask(options([write()], "Fine.", can_use_tool=can_use_tool, timeouts=Timeouts(callback=0.2)))
    assert result.outcome == "denied" and not (place / "a.txt").exists()
    assert "did not return within" in result.control_errors[0]["message"]
    await cancelled.wait()


async def test_a_blocking_callback_that_never_returns_is_a_denial_too(options: Options, place: Path) -> None:
    release = threading.Event()

    def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> bool:
        release.wait()
        return True

    result = await ask(options([write()], "Fine.", can_use_tool=can_use_tool, timeouts=Timeouts(callback=0.2)))
    release.set()
    assert result.outcome == "denied" and not (place / "a.txt").exists()


async def test_a_late_answer_changes_nothing_and_answers_only_its_own_question(options: Options, place: Path) -> None:
    """The first question times out; its thread answers yes while the second question is open, which stays a no."""
    first_may_answer, second_is_asked = threading.Event(), threading.Event()
    questions = []

    def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> bool:
        questions.append(arguments["file_path"])
        if len(questions) == 1:
            first_may_answer.wait()
            return True
        first_may_answer.set()
        second_is_asked.set()
        return False

    result = await ask(
        options(
            [write("a.txt")],
            [write("b.txt")],
            "Fine.",
            can_use_tool=can_use_tool,
            timeouts=Timeouts(callback=0.3),
        )
    )
    assert questions == ["a.txt", "b.txt"]
    assert len(result.permission_denials) == 2
    assert not (place / "a.txt").exists() and not (place / "b.txt").exists()


async def test_a_question_that_the_worker_takes_back_cancels_its_callback(options: Options) -> None:
    asked, cancelled = anyio.Event(), anyio.Event()

    async def can_use_tool(name: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return PermissionResult.allow()

    async with AsyncClient(options([write()], "Never.", can_use_tool=can_use_tool)) as client:
        await client.query("Go")
        await asked.wait()
        assert await client.interrupt()
        await cancelled.wait()
        last = [message async for message in client.receive_response()][-1]
        assert isinstance(last, ResultMessage) and last.status == "cancelled"


async def test_callbacks_work_to_the_end_of_a_query_given_as_one_string(options: Options, place: Path) -> None:
    """Standard input stays open after the prompt: a question in the last of many model calls is still answered."""
    steps = [[call("list_directory", path=".")] for _ in range(5)]
    result = await ask(options(*steps, [write()], "Done.", can_use_tool=lambda *_: True))
    assert result.ok and (place / "a.txt").exists()


async def test_a_plain_callback_that_exits_is_a_denial_and_not_the_end_of_the_host(
    options: Options, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def leave(*_: Any) -> bool:
        sys.exit(3)

    result = await ask(options([write()], "Fine.", can_use_tool=leave))
    assert not result.ok and not (place / "a.txt").exists()
    assert "SystemExit" in caplog.text


async def test_a_method_of_an_object_can_be_a_hook(options: Options, place: Path) -> None:
    class Guard:
        def __init__(self) -> None:
            self.seen: list[str] = []

        @hook("PreToolUse")
        async def refuse(self, given: dict[str, Any], context: HookContext) -> HookResult:
            self.seen.append(given["tool_name"])
            return HookResult.block("no")

    guard = Guard()
    await ask(options([write()], "Fine.", permission_mode="yolo", hooks=[guard.refuse]))
    assert guard.seen == ["write_file"] and not (place / "a.txt").exists()


async def test_a_hook_that_could_not_be_called_is_refused_at_the_start(options: Options) -> None:
    async def of_another_sdk(given: Any, tool_use_id: Any, context: Any) -> None:
        return None

    async def ours(given: Any, context: Any) -> None:
        return None

    mistakes: list[tuple[Any, str]] = [
        ({"PreToolUse": [HookMatcher([of_another_sdk])]}, "takes .input, context.; .* context.tool_use_id"),
        ({"PreToolUse": [HookMatcher(["not a function"])]}, "is not a function"),
        ({"PreToolUse": [ours]}, "it must be a HookMatcher"),
        ({"PreTool": [HookMatcher([ours])]}, "'PreTool', which the worker does not know"),
    ]
    for hooks, words in mistakes:
        with pytest.raises((TypeError, ValueError), match=words):
            await ask(options("Fine.", hooks=hooks))


async def test_what_a_tool_returns_reaches_the_model_as_json(options: Options) -> None:
    class Point(BaseModel):
        x: int

    @dataclass
    class Pair:
        left: Point
        right: Point

    class Shapes:
        def points(self) -> list[Any]:
            return [Point(x=1), Pair(Point(x=2), Point(x=3)), Path("/p")]

    with pytest.raises(TypeError, match="make a tool of the bound one"):
        tool(Shapes.points)
    server = create_sdk_mcp_server("shapes", tools=[tool(Shapes().points)])
    seen = {"expect": {"contains": '[{"x":1},{"left":{"x":2},"right":{"x":3}},"/p"]'}}
    calls = ([call("mcp__shapes__points")], [seen, {"text": "Fine."}])
    result = await ask(options(*calls, mcp_servers={"shapes": server}, allowed_tools=["mcp__shapes"]))
    assert result.text == "Fine.", result.error_message
