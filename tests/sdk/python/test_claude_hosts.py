"""Claude's Python SDK: options by which a host says who speaks, who decides, and where a session comes from."""

import json
import shutil

import pytest
from claude import init, options, result, run, stream, text_of_users, turn, user
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    InMemorySessionStore,
    PermissionResultAllow,
    TaskStartedMessage,
    create_sdk_mcp_server,
    fork_session,
    get_session_info,
    get_session_messages,
    rename_session,
    tag_session,
    tool,
)
from mock_model import call, gate, say

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("prompt", ["what is in @secret.txt", "@secret.txt", "/help me", "/clear"])
async def test_words_that_nobody_typed_are_words_and_nothing_else(model, place, prompt):
    (place.work / "secret.txt").write_text("the secret")
    mock = model(say("fine"), loop=True)
    await run(prompt, verbatim_prompts=True)
    assert text_of_users(mock.messages()) == [prompt]
    assert "the secret" not in json.dumps(mock.requests())


async def test_the_host_may_mark_a_single_line(model, place):
    (place.work / "notes.txt").write_text("the notes")
    mock = model(say("fine"), loop=True)
    await run(stream({**user("see @notes.txt"), "client_composed": True}))
    assert "the notes" not in json.dumps(mock.messages())
    await run(stream({**user("see @notes.txt"), "client_composed": False}))
    assert "the notes" in json.dumps(mock.messages())


async def test_the_models_server_hears_which_program_asks(model):
    mock = model(say("fine"), loop=True)
    await run("hi", client_app="my-app/1.0.0")
    assert "my-app/1.0.0" in mock.headers()["user-agent"]


async def test_a_system_prompt_can_be_the_same_everywhere(model, place):
    (place.work / "AGENTS.md").write_text("Speak softly.")
    mock = model(say("fine"), loop=True)
    preset = {"type": "preset", "preset": "claude_code", "append": "Be kind.", "exclude_dynamic_sections": True}
    await run("hi", system_prompt=preset)
    assert str(place.work) not in mock.system() and "Speak softly." not in mock.system()
    assert mock.system().endswith("Be kind.")
    said = json.dumps([m for m in mock.messages() if m["role"] == "user"])
    assert str(place.work) in said and "Speak softly." in said


async def test_only_the_skills_that_are_named_are_there(model, place):
    for name in ("alpha", "beta"):
        folder = place.home / ".qwen" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: The skill {name}.\n---\nDo {name}.")
    mock = model(say("fine"), loop=True)
    assert init(await run("hi"))["skills"] == ["alpha", "beta"]
    assert init(await run("hi", skills=["beta"]))["skills"] == ["beta"]
    asked = json.dumps(mock.requests()[-1])
    assert "The skill beta." in asked and "The skill alpha." not in asked
    assert init(await run("hi", skills=[]))["skills"] == []


def judge(answer):
    """A server whose one tool answers permission questions, and what it was asked."""
    asked = []

    @tool("judge", "Decides.", {"tool_name": str, "input": dict})
    async def decide(question):
        asked.append(question)
        said = answer(question)
        return {"content": [{"type": "text", "text": said if isinstance(said, str) else json.dumps(said)}]}

    return create_sdk_mcp_server("court", tools=[decide]), asked


def writing(place):
    return say(call("Write", {"file_path": str(place.work / "made"), "content": "text"}, "w1"))


async def test_a_tool_may_answer_the_questions(model, place):
    server, asked = judge(
        lambda question: {"behavior": "allow", "updatedInput": {**question["input"], "content": "changed"}}
    )
    model(writing(place), say("done"))
    messages = await run(
        stream(user("hi")), mcp_servers={"court": server}, permission_prompt_tool_name="mcp__court__judge"
    )
    assert result(messages).result == "done"
    assert (place.work / "made").read_text() == "changed"
    assert [(q["tool_name"], q["input"]["content"]) for q in asked] == [("Write", "text")]


@pytest.mark.parametrize(
    ("answer", "told"),
    [({"behavior": "deny", "message": "not today"}, "not today"), ("perhaps", "the host could not decide")],
)
async def test_a_tool_that_does_not_allow_is_a_refusal(model, place, answer, told):
    server, _ = judge(lambda _: answer)
    mock = model(writing(place), say("done"))
    messages = await run(
        stream(user("hi")), mcp_servers={"court": server}, permission_prompt_tool_name="mcp__court__judge"
    )
    assert not (place.work / "made").exists() and told in mock.results()[0]
    assert [d["tool_use_id"] for d in result(messages).permission_denials] == ["w1"]


async def test_a_tool_that_is_not_there_allows_nothing(model, place):
    mock = model(writing(place), say("done"))
    await run(stream(user("hi")), permission_prompt_tool_name="mcp__court__judge")
    assert not (place.work / "made").exists() and "the host could not decide" in mock.results()[0]


async def test_commands_in_a_sandbox_need_no_answer_unless_it_is_wanted(model, place):
    write = say(call("Bash", {"command": "echo text > made; cat made"}))
    mock = model(write, say("done"), write, say("done"))
    await run("hi", sandbox={"enabled": True})
    assert mock.results() == ["text\n"]
    (place.work / "made").unlink()
    await run("hi", sandbox={"enabled": True, "autoAllowBashIfSandboxed": False})
    assert not (place.work / "made").exists()


async def test_what_of_a_sandbox_means_nothing_here_is_named(model):
    model(say("fine"))
    errors: list[str] = []
    await run("hi", sandbox={"enabled": True, "excludedCommands": ["docker"]}, stderr=errors.append)
    assert any("sandbox.excludedCommands" in line for line in errors), errors


async def test_a_session_that_only_the_hosts_store_has_goes_on(model, place):
    mock = model(say(call("Read", {"file_path": "a.txt"}, "r1")), say("read it"), say("you are Bob"), say("still Bob"))
    (place.work / "a.txt").write_text("words")
    store = InMemorySessionStore()
    first = result(await run("my name is Bob", session_store=store)).session_id
    shutil.rmtree(place.home / ".qwen")
    shutil.rmtree(place.home / ".claude", ignore_errors=True)
    second = result(await run("who am I", session_store=store, resume=first))
    assert (second.session_id, second.result) == (first, "you are Bob")
    told = mock.messages()
    assert [m["role"] for m in told] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert told[3]["tool_call_id"] == told[2]["tool_calls"][0]["id"] == "r1"
    await run("and now", resume=first)
    assert text_of_users(mock.messages())[-3:] == ["who am I", "you are Bob", "and now"]


async def test_what_was_said_on_another_machine_meanwhile_is_known(model, place):
    mock = model(say("one"), say("two"), say("three"))
    store, own = InMemorySessionStore(), place.home / ".qwen"
    session = result(await run("first", session_store=store)).session_id
    own.rename(place.home / "here")
    await run("second", session_store=store, resume=session)
    shutil.rmtree(own)
    (place.home / "here").rename(own)
    await run("third", session_store=store, resume=session)
    assert text_of_users(mock.messages()) == ["first", "one", "second", "two", "third"]


async def test_a_title_and_a_tag_break_no_session(model, place):
    model(say("one"), say("two"))
    session = result(await run("first")).session_id
    rename_session(session, "A title", str(place.work))
    tag_session(session, "kept", str(place.work))
    await run("second", resume=session)
    assert len(get_session_messages(session, str(place.work))) == 4
    assert get_session_info(session, str(place.work)).custom_title == "A title"


async def test_a_plan_that_is_agreed_to_is_left_by_whatever_name(model, place):
    async def agree(name, given, context):
        return PermissionResultAllow()

    model(say(call("ExitPlanMode", {"plan": "Write it."})), writing(place), say("done"))
    messages = await run(stream(user("hi")), permission_mode="plan", can_use_tool=agree)
    assert result(messages).result == "done" and (place.work / "made").exists()


async def test_a_copy_that_the_sdk_itself_made_goes_on(model, place):
    mock = model(say("one"), say("two"), say("three"))
    session = result(await run("first")).session_id
    await run("second", resume=session)
    first_answer = get_session_messages(session, str(place.work))[1]
    copy = fork_session(session, str(place.work), up_to_message_id=first_answer.uuid).session_id
    assert result(await run("third", resume=copy)).session_id == copy
    assert text_of_users(mock.messages()) == ["first", "one", "third"]


async def test_an_agent_may_always_work_in_the_background(model):
    digger = AgentDefinition(description="Digs.", prompt="Dig!", background=True)
    dig = {"description": "dig", "prompt": "Dig here.", "subagent_type": "digger"}
    mock = model(
        say(call("agent", dig), match="go"), say(gate("dug"), "gold", match="Dig here."), say("It digs.", match="go")
    )
    async with ClaudeSDKClient(options(agents={"digger": digger})) as client:
        messages = await turn(client, "go")
        assert result(messages).result == "It digs."
        started = [m for m in messages if isinstance(m, TaskStartedMessage)]
        assert [m.data["is_backgrounded"] for m in started] == [True]
        await mock.reached("dug")
