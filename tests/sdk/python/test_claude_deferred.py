"""Claude's Python SDK: calls that a hook puts off, and whoever decides about them later."""

import pytest
from claude import calls, options, result, run, said, text_of_users, tool_results, turn
from claude_agent_sdk import ClaudeSDKClient, PermissionResultAllow
from mock_model import call, say
from test_claude_hooks import WRITE, Asked, Hook, before, hooks

pytestmark = pytest.mark.anyio

CALL = {"id": "call_w", "name": "Write", "input": {"file_path": "out.txt", "content": "written"}}


def deferring(**more):
    """Options under which calls are put off."""
    return {"hooks": hooks("PreToolUse", Hook(before("defer"))), **more}


async def deferred():
    """A session whose last turn ended before a call."""
    end = result(await run("go", **deferring()))
    assert end.deferred_tool_use is not None
    return end.session_id


async def test_a_call_that_is_put_off_ends_the_turn_and_is_named(model, place):
    mock = model(say("I will write.", WRITE))
    asked = Asked(PermissionResultAllow())
    async with ClaudeSDKClient(options(**deferring(can_use_tool=asked))) as client:
        messages = await turn(client, "go")
    end = result(messages)
    assert (end.subtype, end.is_error, end.stop_reason) == ("success", False, "tool_deferred")
    assert vars(end.deferred_tool_use) == CALL
    assert end.result == "I will write." and end.permission_denials == []
    assert tool_results(messages) == [] and asked.count == 0
    assert not (place.work / "out.txt").exists() and len(mock.requests()) == 1


@pytest.mark.parametrize(
    ("decision", "written", "outcome"),
    [("allow", "written", "Wrote"), ("deny", None, "because")],
)
async def test_whoever_goes_on_with_the_session_decides(model, place, decision, written, outcome):
    mock = model(say(WRITE), say("done"))
    session = await deferred()
    hook = Hook(before(decision))
    messages = await run("and now?", resume=session, hooks=hooks("PreToolUse", hook))
    assert [told["tool_use_id"] for told, _ in hook.told] == ["call_w"]
    assert [block.id for block in calls(messages)] == ["call_w"]
    (block,) = tool_results(messages)
    assert block.tool_use_id == "call_w"
    if written:
        assert (place.work / "out.txt").read_text() == written
    else:
        assert outcome in said(block) and not (place.work / "out.txt").exists()
    assert result(messages).result == "done" and result(messages).deferred_tool_use is None
    roles = [message["role"] for message in mock.messages() if message["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "user"]
    assert text_of_users(mock.messages()) == ["go", "", "and now?"]


async def test_the_same_process_decides_with_the_next_prompt(model, place):
    model(say(WRITE), say("done"))
    hook = Hook(before("defer"))
    async with ClaudeSDKClient(options(hooks=hooks("PreToolUse", hook))) as client:
        assert result(await turn(client, "go")).deferred_tool_use is not None
        hook.answer = before("allow")
        assert result(await turn(client, "now")).result == "done"
    assert (place.work / "out.txt").exists()


async def test_it_runs_with_the_input_that_is_decided_on(model, place):
    model(say(WRITE), say("done"))
    session = await deferred()
    changed = {"file_path": "other.txt", "content": "decided"}
    await run("", resume=session, hooks=hooks("PreToolUse", Hook(before("allow", updatedInput=changed))))
    assert [path.name for path in place.work.iterdir()] == ["other.txt"]


async def test_nothing_needs_to_be_said_to_decide(model):
    mock = model(say(WRITE), say("done"))
    session = await deferred()
    messages = await run("", resume=session, hooks=hooks("PreToolUse", Hook(before("allow"))))
    assert result(messages).result == "done"
    assert [message["role"] for message in mock.messages()][-2:] == ["assistant", "tool"]


async def test_it_can_be_put_off_again_and_nothing_that_was_said_is_lost(model):
    mock = model(say(WRITE), say("done"))
    session = await deferred()
    assert result(await run("first", resume=session, **deferring())).deferred_tool_use is not None
    await run("second", resume=session, hooks=hooks("PreToolUse", Hook(before("deny"))))
    assert text_of_users(mock.messages()) == ["go", "", "first", "second"]


async def test_without_a_hook_the_rules_decide(model, place):
    model(say(WRITE), say("done"))
    session = await deferred()
    asked = Asked(PermissionResultAllow())
    async with ClaudeSDKClient(options(resume=session, can_use_tool=asked)) as client:
        await turn(client, "go on")
    assert asked.count == 1 and (place.work / "out.txt").exists()


async def test_one_of_several_calls_cannot_be_put_off(model, place):
    model(say(WRITE, call("list_directory", {"path": "."}, id="call_l")), say("done"))
    messages = await run("go", **deferring(permission_mode="acceptEdits"))
    assert result(messages).result == "done" and result(messages).deferred_tool_use is None
    assert (place.work / "out.txt").exists()
