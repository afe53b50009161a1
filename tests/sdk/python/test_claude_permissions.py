"""Claude's Python SDK: which tools there are, which of them run, and who is asked."""

import pytest
from claude import calls, init, options, result, run, said, stream, tool_results, turn, user
from claude_agent_sdk import (
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ToolPermissionContext,
)
from claude_agent_sdk.types import PermissionRuleValue
from mock_model import call, say

pytestmark = pytest.mark.anyio

WRITE = call("write_file", {"file_path": "out.txt", "content": "written"}, id="call_w")
SHELL = call("run_shell_command", {"command": "python3 -c 'open(\"made.txt\", \"w\")'"}, id="call_s")


class Asked:
    """A permission callback that remembers what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.questions: list[tuple[str, dict, ToolPermissionContext]] = []

    async def __call__(self, tool, tool_input, context):
        self.questions.append((tool, tool_input, context))
        answer = self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer


async def ask(answer, *, prompt="go", **chosen):
    """One turn with a callback that answers so."""
    asked = Asked(answer)
    async with ClaudeSDKClient(options(can_use_tool=asked, **chosen)) as client:
        return await turn(client, prompt), asked.questions


async def test_an_allowed_call_runs(model, place):
    mock = model(say(WRITE), say("done"))
    messages, questions = await ask(PermissionResultAllow())
    assert (place.work / "out.txt").read_text() == "written"
    (tool, tool_input, context), = questions
    assert tool == calls(messages)[0].name
    assert tool_input == {**calls(messages)[0].input, "file_path": str(place.work / "out.txt")}
    assert context.tool_use_id == calls(messages)[0].id == "call_w"
    assert tool_results(messages)[0].is_error in (None, False)
    assert tool_results(messages)[0].tool_use_id == "call_w"
    assert result(messages).permission_denials == []
    assert mock.results()


async def test_the_question_suggests_a_rule_or_a_mode(model):
    model(say(WRITE), say("done"))
    _, questions = await ask(PermissionResultAllow())
    suggestions = questions[0][2].suggestions
    assert suggestions and all(isinstance(s, PermissionUpdate) for s in suggestions)
    assert questions[0][2].display_name and questions[0][2].description


async def test_a_denied_call_does_not_run_and_is_listed(model, place):
    mock = model(say(WRITE), say("a pity"))
    messages, _ = await ask(PermissionResultDeny(message="not today"))
    assert not (place.work / "out.txt").exists()
    assert tool_results(messages)[0].is_error is True
    assert "not today" in said(tool_results(messages)[0])
    assert "not today" in mock.results()[0]
    end = result(messages)
    assert end.result == "a pity"
    assert [d["tool_use_id"] for d in end.permission_denials] == ["call_w"]
    assert end.permission_denials[0]["tool_name"] == calls(messages)[0].name
    assert end.permission_denials[0]["tool_input"] == {**calls(messages)[0].input, "file_path": str(place.work / "out.txt")}


async def test_a_denial_can_end_the_turn(model, place):
    mock = model(say(WRITE), say("never said"), say("later"))
    asked = Asked(PermissionResultDeny(message="stop it", interrupt=True))
    async with ClaudeSDKClient(options(can_use_tool=asked)) as client:
        messages = await turn(client, "go")
        assert len(mock.requests()) == 1
        assert result(messages).subtype == "error_during_execution"
        assert result(messages).errors
        assert len(tool_results(messages)) == 1
        mock_end = result(await turn(client, "again"))
    assert mock_end.subtype == "success"
    assert not (place.work / "out.txt").exists()


async def test_the_call_runs_with_the_changed_input(model, place):
    mock = model(say(WRITE), say("done"))
    changed = {"file_path": str(place.work / "other.txt"), "content": "changed"}
    await ask(PermissionResultAllow(updated_input=changed))
    assert (place.work / "other.txt").read_text() == "changed"
    assert not (place.work / "out.txt").exists()
    assert len(mock.requests()) == 2


async def test_an_allowed_rule_is_not_asked_for_again(model, place):
    again = call("run_shell_command", {"command": "python3 -c 'open(\"more.txt\", \"w\")'"})
    model(say(SHELL), say(again), say("done"))
    rule = PermissionUpdate(
        type="addRules", rules=[PermissionRuleValue("Bash", "python3 *")], behavior="allow", destination="session"
    )
    _, questions = await ask(PermissionResultAllow(updated_permissions=[rule]))
    assert len(questions) == 1
    assert (place.work / "more.txt").exists()


async def test_an_answer_with_a_rule_that_cannot_be_read_denies(model, place):
    model(say(WRITE), say("a pity"))
    rule = PermissionUpdate(
        type="addRules", rules=[PermissionRuleValue("Bash", "(")], behavior="allow", destination="session"
    )
    mode = PermissionUpdate(type="setMode", mode="no such mode", destination="session")
    messages, _ = await ask(PermissionResultAllow(updated_permissions=[rule, mode]))
    assert not (place.work / "out.txt").exists()
    assert tool_results(messages)[0].is_error is True


async def test_an_added_directory_may_be_worked_in(model, place, tmp_path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    model(say(call("write_file", {"file_path": str(outside / "out.txt"), "content": "there"})), say("done"))
    more = PermissionUpdate(type="addDirectories", directories=[str(outside)], destination="session")
    _, questions = await ask(PermissionResultAllow(updated_permissions=[more]))
    assert len(questions) == 1
    assert (outside / "out.txt").read_text() == "there"


async def test_an_accepted_mode_holds_for_the_session(model, place):
    again = call("write_file", {"file_path": "more.txt", "content": "more"})
    model(say(WRITE), say(again), say("done"))
    mode = PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
    _, questions = await ask(PermissionResultAllow(updated_permissions=[mode]))
    assert len(questions) == 1
    assert (place.work / "more.txt").read_text() == "more"


async def test_a_callback_that_raises_denies(model, place):
    model(say(WRITE), say("a pity"))
    messages, _ = await ask(RuntimeError("the dialog broke"))
    assert not (place.work / "out.txt").exists()
    assert tool_results(messages)[0].is_error is True
    assert result(messages).subtype == "success"


async def test_reading_asks_nobody(model, place):
    (place.work / "notes.txt").write_text("buy milk")
    mock = model(say(call("read_file", {"file_path": "notes.txt"})), say("done"))
    _, questions = await ask(PermissionResultDeny(message="no"))
    assert questions == []
    assert "buy milk" in mock.results()[0]


async def test_without_a_callback_what_needs_permission_is_denied(model, place):
    mock = model(say(WRITE), say("a pity"))
    end = result(await run("go"))
    assert not (place.work / "out.txt").exists()
    assert [d["tool_use_id"] for d in end.permission_denials] == ["call_w"]
    assert "requires permission" in mock.results()[0]
    assert (end.subtype, end.is_error) == ("success", False)


@pytest.mark.parametrize(
    ("mode", "writes", "runs"),
    [
        ("default", False, False),
        ("acceptEdits", True, False),
        ("plan", False, False),
        ("bypassPermissions", True, True),
        ("dontAsk", False, False),
        ("auto", False, False),
    ],
)
async def test_a_mode_decides_what_runs_unasked(model, place, mode, writes, runs):
    model(say(WRITE, SHELL), say("done"))
    messages = await run("go", permission_mode=mode)
    assert init(messages)["permissionMode"] == mode
    assert (place.work / "out.txt").exists() is writes
    assert (place.work / "made.txt").exists() is runs
    assert len(tool_results(messages)) == 2


async def test_dont_ask_denies_without_a_question(model, place):
    model(say(WRITE), say("a pity"))
    _, questions = await ask(PermissionResultAllow(), permission_mode="dontAsk")
    assert questions == []
    assert not (place.work / "out.txt").exists()


async def test_allowed_tools_run_without_asking(model, place):
    model(say(WRITE), say("done"))
    messages = await run("go", allowed_tools=["Write"])
    assert (place.work / "out.txt").read_text() == "written"
    assert result(messages).permission_denials == []


async def test_disallowed_tools_are_not_offered_and_not_run(model, place):
    mock = model(say("plain"), say(SHELL), say("done"))
    await run("hi")
    messages = await run("go", disallowed_tools=["Bash"], permission_mode="bypassPermissions")
    assert set(mock.tools(0)) - set(mock.tools(1)) == {"Bash"}
    assert not (place.work / "made.txt").exists()
    assert tool_results(messages)[0].is_error is True


async def test_the_tools_option_narrows_what_is_offered(model):
    mock = model(say("one"), say("two"))
    opening = init(await run("hi", tools=["Read", "Grep"]))
    await run("hi", tools=[])
    assert sorted(mock.tools(0)) == ["Grep", "Read"]
    assert len(opening["tools"]) == 2
    assert mock.tools(1) == []


async def test_a_prompt_stream_can_be_asked_too(model, place):
    model(say(WRITE), say("done"))
    asked = Asked(PermissionResultAllow())
    await run(stream(user("go")), can_use_tool=asked)
    assert len(asked.questions) == 1
    assert (place.work / "out.txt").exists()
