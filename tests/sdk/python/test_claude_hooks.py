"""Claude's Python SDK: functions of the host that may refuse, change and add."""

import asyncio
import json
from pathlib import Path

import pytest
from claude import options, result, run, tool_results, turn
from claude_agent_sdk import ClaudeSDKClient, HookMatcher, PermissionResultAllow, PermissionResultDeny
from mock_model import call, say, text_of

pytestmark = pytest.mark.anyio

WRITE = call("write_file", {"file_path": "out.txt", "content": "written"}, id="call_w")


class Hook:
    """A hook that remembers what it was told."""

    def __init__(self, answer=None):
        self.answer = answer or {}
        self.told = []

    async def __call__(self, told, tool_use_id, context):
        self.told.append((told, tool_use_id))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def before(decision, reason="because", **more):
    """What a hook answers before a call."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
            **more,
        }
    }


def hooks(event, hook, matcher=None, **more):
    """One hook for one event."""
    return {event: [HookMatcher(matcher=matcher, hooks=[hook], **more)]}


class Asked:
    """A permission callback that counts."""

    def __init__(self, answer):
        self.answer, self.count = answer, 0

    async def __call__(self, tool, tool_input, context):
        self.count += 1
        return self.answer


async def test_a_hook_is_told_what_is_about_to_run(model, place):
    model(say(WRITE), say("done"))
    hook = Hook()
    end = result(await run("go", hooks=hooks("PreToolUse", hook), permission_mode="acceptEdits"))
    (told, tool_use_id), = hook.told
    assert tool_use_id == told["tool_use_id"] == "call_w"
    assert told["hook_event_name"] == "PreToolUse"
    assert told["session_id"] == end.session_id
    assert told["cwd"] == str(place.work)
    assert told["permission_mode"] == "acceptEdits"
    assert told["prompt_id"]
    entries = [json.loads(line) for line in Path(told["transcript_path"]).read_text().splitlines()]
    assert [entry["type"] for entry in entries][:2] == ["user", "assistant"] and entries[0]["message"]["content"] == "go"
    assert told["tool_input"]["content"] == "written" and told["tool_name"]
    assert (place.work / "out.txt").exists()


async def test_a_hook_that_allows_spares_the_question(model, place):
    model(say(WRITE), say("done"))
    asked = Asked(PermissionResultDeny(message="no"))
    async with ClaudeSDKClient(options(hooks=hooks("PreToolUse", Hook(before("allow"))), can_use_tool=asked)) as client:
        await turn(client, "go")
    assert asked.count == 0
    assert (place.work / "out.txt").read_text() == "written"


async def test_a_hook_that_denies_is_obeyed_in_every_mode(model, place):
    mock = model(say(WRITE), say("a pity"))
    hook = Hook(before("deny", "the folder is frozen"))
    messages = await run("go", hooks=hooks("PreToolUse", hook), permission_mode="bypassPermissions")
    assert not (place.work / "out.txt").exists()
    assert tool_results(messages)[0].is_error is True
    assert "the folder is frozen" in mock.results()[0]
    assert result(messages).result == "a pity"


async def test_a_hook_that_asks_forces_the_question(model, place):
    model(say(WRITE), say("done"))
    asked = Asked(PermissionResultAllow())
    chosen = options(
        hooks=hooks("PreToolUse", Hook(before("ask"))), can_use_tool=asked, permission_mode="acceptEdits"
    )
    async with ClaudeSDKClient(chosen) as client:
        await turn(client, "go")
    assert asked.count == 1
    assert (place.work / "out.txt").exists()


async def test_a_hook_may_change_the_input(model, place):
    model(say(WRITE), say("done"))
    changed = {"file_path": str(place.work / "other.txt"), "content": "changed"}
    hook = Hook(before("allow", updatedInput=changed))
    await run("go", hooks=hooks("PreToolUse", hook))
    assert (place.work / "other.txt").read_text() == "changed"
    assert not (place.work / "out.txt").exists()


async def test_a_hook_after_a_call_sees_the_result_and_adds_to_it(model, place):
    (place.work / "notes.txt").write_text("buy milk")
    mock = model(say(call("read_file", {"file_path": "notes.txt"}, id="call_r")), say("done"))
    hook = Hook({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "and bread"}})
    await run("go", hooks=hooks("PostToolUse", hook))
    (told, _), = hook.told
    assert told["tool_use_id"] == "call_r" and "buy milk" in str(told["tool_response"])
    assert "and bread" in "".join(text_of(m) for m in mock.messages() if m["role"] != "system")


async def test_a_hook_may_block_a_prompt(model):
    mock = model(say("never"), say("fine"))
    hook = Hook({"decision": "block", "reason": "no swearing"})
    async with ClaudeSDKClient(options(hooks=hooks("UserPromptSubmit", hook))) as client:
        messages = await turn(client, "damn")
        assert mock.requests() == []
        assert "no swearing" in str(messages)
        hook.answer = {}
        assert result(await turn(client, "please")).result == "never"
    assert hook.told[0][0]["prompt"] == "damn"
    assert not any("damn" in text_of(m) for m in mock.messages())


async def test_a_hook_may_add_to_a_prompt(model):
    mock = model(say("ok"))
    hook = Hook({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Monday."}})
    await run("Which day?", hooks=hooks("UserPromptSubmit", hook))
    assert "It is Monday." in "".join(text_of(m) for m in mock.messages() if m["role"] != "system")


async def test_a_hook_may_send_the_agent_on_when_it_stops(model):
    mock = model(say("done?"), say("really done"))
    hook = Hook({"decision": "block", "reason": "Run the tests too."})
    inner = hook.__call__

    async def once(told, tool_use_id, context):
        answer = await inner(told, tool_use_id, context)
        return answer if len(hook.told) == 1 else {}

    end = result(await run("go", hooks=hooks("Stop", once)))
    assert end.result == "really done"
    assert [told["stop_hook_active"] for told, _ in hook.told] == [False, True]
    assert hook.told[0][0]["last_assistant_message"] == "done?"
    assert "Run the tests too." in "".join(text_of(m) for m in mock.messages() if m["role"] != "system")


@pytest.mark.parametrize(
    ("matcher", "called"),
    [(None, True), ("Write", True), ("Write|Edit", True), ("write_file", True), (".*", True), ("Bash", False)],
)
async def test_a_matcher_chooses_the_tools(model, matcher, called):
    model(say(WRITE), say("done"))
    hook = Hook()
    await run("go", hooks=hooks("PreToolUse", hook, matcher), permission_mode="acceptEdits")
    assert bool(hook.told) is called


async def test_a_hook_that_fails_stops_nothing(model, place):
    model(say(WRITE), say("done"))
    hook = Hook(RuntimeError("a bug in the hook"))
    messages = await run("go", hooks=hooks("PreToolUse", hook), permission_mode="acceptEdits")
    assert (place.work / "out.txt").exists()
    assert result(messages).result == "done"


async def test_a_hook_that_fails_blocks_where_it_is_said_so(model, place):
    model(say(WRITE), say("a pity"))
    hook = Hook(RuntimeError("a bug in the hook"))
    chosen = hooks("PreToolUse", hook, on_failure="block")
    messages = await run("go", hooks=chosen, permission_mode="acceptEdits")
    assert not (place.work / "out.txt").exists()
    assert tool_results(messages)[0].is_error is True


async def test_a_hook_that_takes_too_long_is_given_up(model, place):
    model(say(WRITE), say("done"))

    async def slow(told, tool_use_id, context):
        await asyncio.Event().wait()

    chosen = hooks("PreToolUse", slow, timeout=0.2)
    messages = await run("go", hooks=chosen, permission_mode="acceptEdits")
    assert result(messages).result == "done"
    assert (place.work / "out.txt").exists()


async def test_a_hook_may_end_the_run(model, place):
    mock = model(say(WRITE), say("never"))
    hook = Hook({"continue_": False, "stopReason": "enough for today"})
    async with ClaudeSDKClient(options(hooks=hooks("PreToolUse", hook), permission_mode="acceptEdits")) as client:
        messages = await turn(client, "go")
    assert len(mock.requests()) == 1
    assert "enough for today" in str(messages)
    assert [block.tool_use_id for block in tool_results(messages)] == ["call_w"]
    assert result(messages).subtype == "error_during_execution"
    assert not (place.work / "out.txt").exists()
