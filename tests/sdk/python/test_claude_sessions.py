"""Claude's Python SDK: conversations that outlive the process."""

import uuid

import pytest
from claude import init, result, run, text_of_users
from claude_agent_sdk import AssistantMessage, ResultError, get_session_messages, list_sessions
from mock_model import say

pytestmark = pytest.mark.anyio


async def test_the_session_has_the_id_that_was_asked_for(model):
    model(say("hi"))
    wanted = str(uuid.uuid4())
    messages = await run("hi", session_id=wanted)
    assert init(messages)["session_id"] == result(messages).session_id == wanted


async def test_a_resumed_session_remembers_and_keeps_its_id(model):
    mock = model(say("I will."), say("42"))
    first = result(await run("Remember 42."))
    second = result(await run("Which number?", resume=first.session_id))
    assert second.session_id == first.session_id
    assert text_of_users(mock.messages()) == ["Remember 42.", "I will.", "Which number?"]


async def test_continue_takes_the_latest_session_of_the_directory(model):
    mock = model(say("a"), say("b"), say("c"))
    await run("old")
    latest = result(await run("new"))
    again = result(await run("more", continue_conversation=True))
    assert again.session_id == latest.session_id
    assert text_of_users(mock.messages()) == ["new", "b", "more"]


async def test_a_fork_leaves_the_old_session_as_it_was(model):
    mock = model(say("one"), say("two"), say("three"))
    first = result(await run("a"))
    fork = result(await run("b", resume=first.session_id, fork_session=True))
    assert fork.session_id != first.session_id
    await run("c", resume=first.session_id)
    assert text_of_users(mock.messages(1)) == ["a", "one", "b"]
    assert text_of_users(mock.messages(2)) == ["a", "one", "c"]


@pytest.mark.parametrize("fork", [False, True])
async def test_a_session_goes_on_from_the_assistants_message_that_the_sdk_names(model, fork):
    mock = model(say("one"), say("two"), say("three"))
    first = await run("a")
    point = next(message.uuid for message in first if isinstance(message, AssistantMessage))
    session = result(first).session_id
    await run("b", resume=session)
    again = await run("c", resume=session, fork_session=fork, resume_session_at=point)
    assert text_of_users(mock.messages(2)) == ["a", "one", "c"]
    assert (result(again).session_id != session) == fork


async def test_a_session_nobody_knows_is_an_error_result_and_exit_1(model):
    mock = model(say("never"))
    unknown = str(uuid.uuid4())
    with pytest.raises(ResultError) as raised:
        await run("hi", resume=unknown)
    assert raised.value.exit_code == 1
    assert raised.value.subtype == "error_during_execution"
    assert raised.value.errors == [f"No conversation found with session ID: {unknown}"]
    assert mock.requests() == []


async def test_the_sdk_lists_our_sessions(model, place):
    model(say("Hello."))
    end = result(await run("A first prompt"))
    listed = list_sessions(directory=str(place.work))
    assert [entry.session_id for entry in listed] == [end.session_id]
    assert listed[0].first_prompt == "A first prompt"


async def test_the_sdk_reads_the_messages_of_our_sessions(model, place):
    model(say("Hello."))
    end = result(await run("A first prompt"))
    kept = get_session_messages(end.session_id, directory=str(place.work))
    assert [message.type for message in kept] == ["user", "assistant"]


async def test_a_session_that_shall_not_be_kept_is_not(model, place):
    model(say("Hello."))
    end = result(await run("secret", extra_args={"no-session-persistence": None}))
    assert not list((place.home / ".qwen").rglob(f"*{end.session_id}*"))
    assert not list((place.home / ".claude").rglob(f"*{end.session_id}*"))


async def test_a_copy_for_the_sdk_goes_on_where_it_ended_and_forks_with_its_past(model, place):
    model(say("one"), say("two"), say("three"))
    first = result(await run("a")).session_id
    await run("b", resume=first)
    fork = result(await run("c", resume=first, fork_session=True)).session_id

    def told(session):
        return [
            (m.type, m.message["content"] if m.type == "user" else m.message["content"][0]["text"])
            for m in get_session_messages(session, directory=str(place.work))
        ]

    past = [("user", "a"), ("assistant", "one"), ("user", "b"), ("assistant", "two")]
    assert told(first) == past
    assert told(fork) == [*past, ("user", "c"), ("assistant", "three")]


async def test_the_copy_names_messages_as_the_stream_did(model, place):
    model(say("one"))
    messages = await run("a", include_partial_messages=True)
    streamed = [m.uuid for m in messages if isinstance(m, AssistantMessage)]
    kept = get_session_messages(result(messages).session_id, directory=str(place.work))
    assert [m.uuid for m in kept if m.type == "assistant"] == streamed
