"""Claude's Python SDK: the other events that hooks hear of, and the rest of what they may answer."""

from pathlib import Path

import pytest
from claude import options, result, run, said, tool_results, turn
from claude_agent_sdk import ClaudeSDKClient, PermissionResultAllow, PermissionResultDeny
from mock_model import call, say
from test_claude_hooks import WRITE, Asked, Hook, before, hooks

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        ("other words", "other words"),
        ([{"type": "text", "text": "as blocks"}], "as blocks"),
        ({"stdout": "as an object"}, '{"stdout":"as an object"}'),
    ],
)
@pytest.mark.parametrize("key", ["updatedToolOutput", "updatedMCPToolOutput"])
async def test_a_hook_may_put_another_output_in_the_place_of_the_tools(model, key, output, seen):
    mock = model(say(call("run_shell_command", {"command": "echo hi"})), say("done"))
    hook = Hook({"hookSpecificOutput": {"hookEventName": "PostToolUse", key: output}})
    messages = await run("go", hooks=hooks("PostToolUse", hook), permission_mode="bypassPermissions")
    assert mock.results() == [seen]
    assert said(tool_results(messages)[0]) == seen


async def test_a_hook_hears_of_a_call_that_fails(model):
    model(say(call("read_file", {"file_path": "nowhere.txt"}, id="call_r")), say("done"))
    hook = Hook()
    await run("go", hooks=hooks("PostToolUseFailure", hook))
    (told, tool_use_id), = hook.told
    assert tool_use_id == "call_r" and told["hook_event_name"] == "PostToolUseFailure"
    assert "nowhere.txt" in told["error"]


@pytest.mark.parametrize(
    ("decision", "written"),
    [
        ({"behavior": "allow"}, "out.txt"),
        ({"behavior": "allow", "updatedInput": {"file_path": "other.txt", "content": "x"}}, "other.txt"),
        ({"behavior": "deny", "message": "not this one"}, None),
    ],
)
async def test_a_hook_may_answer_in_the_place_of_the_callback(model, place, decision, written):
    mock = model(say(WRITE), say("done"))
    asked = Asked(PermissionResultDeny(message="no"))
    hook = Hook({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}})
    async with ClaudeSDKClient(options(hooks=hooks("PermissionRequest", hook), can_use_tool=asked)) as client:
        await turn(client, "go")
    assert asked.count == 0
    assert hook.told[0][0]["tool_input"]["content"] == "written"
    assert [path.name for path in place.work.iterdir()] == ([written] if written else [])
    assert written or "not this one" in mock.results()[0]


async def test_a_hook_hears_that_somebody_is_asked(model):
    model(say(WRITE), say("done"))
    hook, asked = Hook(), Asked(PermissionResultAllow())
    async with ClaudeSDKClient(options(hooks=hooks("Notification", hook), can_use_tool=asked)) as client:
        await turn(client, "go")
    (told, _), = hook.told
    assert told["notification_type"] == "permission_prompt" and "Write" in told["message"]


async def test_hooks_hear_of_a_sub_agent_and_know_its_calls(model):
    start = call("agent", {"description": "look", "prompt": "Look", "subagent_type": "explore"}, id="call_a")
    model(say(start), say(call("list_directory", {"path": "."}, id="call_l")), say("nothing here"), say("done"))
    begun, over, before_calls = Hook(), Hook(), Hook()
    chosen = {**hooks("SubagentStart", begun), **hooks("SubagentStop", over), **hooks("PreToolUse", before_calls)}
    await run("go", hooks=chosen)
    (first, _), = begun.told
    (last, _), = over.told
    assert (first["agent_id"], first["agent_type"]) == (last["agent_id"], last["agent_type"]) == ("call_a", "explore")
    assert last["last_assistant_message"] == "nothing here" and last["stop_hook_active"] is False
    transcript = Path(last["agent_transcript_path"])
    assert transcript.name == "agent-call_a.jsonl" and "nothing here" in transcript.read_text()
    who = [(told["tool_use_id"], told.get("agent_id"), told.get("agent_type")) for told, _ in before_calls.told]
    assert who == [("call_a", None, None), ("call_l", "call_a", "explore")]


async def test_a_hook_hears_that_the_conversation_is_summed_up(model):
    model(*[say("words " * 50)] * 4, say("A summary."))
    hook = Hook()
    async with ClaudeSDKClient(options(hooks=hooks("PreCompact", hook))) as client:
        for prompt in ("one", "two", "three", "four"):
            await turn(client, prompt * 50)
        await turn(client, "/compress keep the numbers")
    (told, _), = hook.told
    assert (told["trigger"], told["custom_instructions"]) == ("manual", "keep the numbers")


async def test_a_hook_that_works_on_by_itself_holds_nothing_up(model, place):
    model(say(WRITE), say("done"))
    hook = Hook({"async_": True, "asyncTimeout": 1000})
    messages = await run("go", hooks=hooks("PreToolUse", hook), permission_mode="acceptEdits")
    assert result(messages).result == "done" and (place.work / "out.txt").exists()


async def test_a_word_for_people_disturbs_nothing(model, place):
    model(say(WRITE), say("done"))
    hook = Hook({"systemMessage": "mind the gap", "suppressOutput": True})
    messages = await run("go", hooks=hooks("PreToolUse", hook), permission_mode="acceptEdits")
    assert result(messages).result == "done" and (place.work / "out.txt").exists()
