"""Claude's Python SDK: what the stream tells of hooks while they work, and what hooks have to say to people."""

import json

import pytest
from claude import options, run, turn
from claude_agent_sdk import ClaudeSDKClient, HookEventMessage, SystemMessage
from mock_model import call, say
from test_claude_hooks import Hook, hooks

pytestmark = pytest.mark.anyio

SHELL = call("run_shell_command", {"command": "echo hi"}, id="call_s")


def in_settings(event, command, **more):
    """Settings with one command as a hook."""
    return json.dumps({"hooks": {event: [{"hooks": [{"type": "command", "command": command, **more}]}]}})


def told(messages, subtype=None):
    """The lines about hooks, in their order."""
    lines = [m for m in messages if isinstance(m, HookEventMessage) and m.subtype == (subtype or m.subtype)]
    return [(m.subtype, m.data) for m in lines]


async def test_a_function_of_the_host_is_told_when_it_begins_and_how_it_went(model):
    model(say(SHELL), say("done"))
    hook = Hook({"continue": True})
    messages = await run(
        "go", hooks=hooks("PreToolUse", hook), include_hook_events=True, permission_mode="bypassPermissions"
    )
    (first, begun), (last, over) = told(messages)
    assert (first, last) == ("hook_started", "hook_response")
    assert begun["hook_id"] == over["hook_id"] and begun["uuid"] != over["uuid"]
    assert (begun["hook_event"], begun["hook_name"]) == ("PreToolUse", "PreToolUse:Bash")
    assert (over["outcome"], over["stdout"], over["stderr"]) == ("success", "", "")
    assert json.loads(over["output"]) == {"continue": True} and "exit_code" not in over


async def test_without_the_flag_only_the_start_of_a_session_is_told(model):
    model(say(SHELL), say("done"))
    chosen = {**hooks("PreToolUse", Hook()), **hooks("SessionStart", Hook())}
    messages = await run("go", hooks=chosen, permission_mode="bypassPermissions")
    assert [(kind, line["hook_event"]) for kind, line in told(messages)] == [
        ("hook_started", "SessionStart"),
        ("hook_response", "SessionStart"),
    ]


@pytest.mark.parametrize(
    ("command", "outcome", "code", "stdout", "stderr"),
    [
        ("echo out; echo err >&2", "success", 0, "out\n", "err\n"),
        ("echo no >&2; exit 2", "error", 2, "", "no\n"),
        ("exit 3", "error", 3, "", ""),
    ],
)
async def test_a_command_is_told_with_its_output_and_its_code(model, command, outcome, code, stdout, stderr):
    model(say(SHELL), say("done"))
    messages = await run(
        "go", settings=in_settings("PostToolUse", command), include_hook_events=True,
        permission_mode="bypassPermissions",
    )
    (_, line), = told(messages, "hook_response")
    assert (line["outcome"], line["exit_code"]) == (outcome, code)
    assert (line["stdout"], line["stderr"], line["output"]) == (stdout, stderr, stdout + stderr)


async def test_a_command_that_works_on_tells_what_it_wrote_so_far(model, place):
    model(say("done"))
    wait = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"
    chosen = options(settings=in_settings("UserPromptSubmit", wait), include_hook_events=True)
    async with ClaudeSDKClient(chosen) as client:
        await client.query("hi")
        lines = []
        async for message in client.receive_response():
            if isinstance(message, SystemMessage) and message.subtype.startswith("hook_"):
                lines.append((message.subtype, message.data.get("stdout")))
            if lines and lines[-1][0] == "hook_progress":
                (place.work / "go").touch()
    assert lines[0] == ("hook_started", None) and lines[1] == ("hook_progress", "begun\n")
    assert lines[-1] == ("hook_response", "begun\nended\n")


async def test_secrets_in_what_a_hook_wrote_are_not_told(model, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "very-hidden-words")
    model(say("done"))
    messages = await run("hi", settings=in_settings("UserPromptSubmit", 'echo "$SOME_SECRET"'), include_hook_events=True)
    (_, line), = told(messages, "hook_response")
    assert "very-hidden-words" not in json.dumps(line)


async def test_words_of_a_hook_for_people_are_informational_lines(model):
    model(say(SHELL), say("done"))
    loud, quiet = Hook({"systemMessage": "mind the gap"}), Hook({"systemMessage": "never", "suppressOutput": True})
    chosen = {**hooks("PreToolUse", loud), **hooks("PostToolUse", quiet)}
    async with ClaudeSDKClient(options(hooks=chosen, permission_mode="bypassPermissions")) as client:
        messages = await turn(client, "go")
    said = [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "informational"]
    assert [(line["content"], line["level"], line["tool_use_id"]) for line in said] == [
        ("mind the gap", "notice", "call_s")
    ]


async def test_a_hook_that_fails_is_a_warning(model):
    model(say("done"))
    messages = await run("hi", settings=in_settings("UserPromptSubmit", "exit 7"))
    said = [m.data for m in messages if isinstance(m, SystemMessage) and m.subtype == "informational"]
    assert [line["level"] for line in said] == ["warning"] and "exit code 7" in said[0]["content"]
