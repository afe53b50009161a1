"""Sessions over several processes: resume, fork, rewind, profiles, stores."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from conftest import Options, Script, call, write
from pydantic import BaseModel, field_validator

from qwen_agent_sdk import (
    AsyncClient,
    DirectorySessionStore,
    InMemorySessionStore,
    QwenAgentOptions,
    ResultMessage,
    SessionNotFoundError,
    SettingsProfile,
    StructuredOutputError,
    Timeouts,
    query,
)

pytestmark = pytest.mark.anyio


async def test_a_session_goes_on_in_a_new_process(options: Options) -> None:
    async with AsyncClient(options("Noted.")) as client:
        await client.ask("My name is Ada.")
        session_id = client.session_id
    remembered = options([{"text": "You are Ada."}], resume=session_id)
    async with AsyncClient(remembered) as client:
        assert client.session_id == session_id
        result = await client.ask("Who am I?")
        assert result.session_id == session_id
        assert result.usage.prompt_tokens > 0


async def test_a_session_that_was_just_left_can_be_resumed_at_once(options: Options) -> None:
    """What was acknowledged is on disk: the client is closed with the very result in hand."""
    client = AsyncClient(options("Noted."))
    await client.connect()
    await client.query("Remember this")
    async for message in client.receive_response():
        if isinstance(message, ResultMessage):
            break
    session_id = client.session_id
    await client.close()
    result = [m async for m in query("And now?", options=options("Go on.", resume=session_id))][-1]
    assert isinstance(result, ResultMessage) and result.ok


async def test_an_unknown_session_is_an_error_and_not_an_empty_session(options: Options) -> None:
    with pytest.raises(SessionNotFoundError, match="no-such-session") as caught:
        await AsyncClient(options("Hi.", resume="no-such-session")).connect()
    assert caught.value.code == "unknown_session"
    with pytest.raises(SessionNotFoundError):
        async for _ in query("Hi", options=options("Hi.", resume="no-such-session")):
            pass


async def test_sessions_are_found_whatever_the_working_directory(options: Options, tmp_path: Path) -> None:
    async with AsyncClient(options("Noted.")) as client:
        await client.ask("One")
        session_id = client.session_id
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with AsyncClient(options("Two.", resume=session_id, cwd=elsewhere)) as client:
        assert (await client.ask("Two")).ok


async def test_a_fork_has_the_history_and_leaves_the_original_as_it_is(options: Options) -> None:
    async with AsyncClient(options("Noted.", "Original.")) as client:
        first = await client.query("One")
        assert isinstance([m async for m in client.receive_response()][-1], ResultMessage)
        fork = await client.fork(model=options([{"text": "Forked."}]).model)
        async with fork:
            assert fork.session_id != client.session_id
            assert (await fork.ask("Two")).text == "Forked."
        assert (await client.ask("Three")).text == "Original."
        home = Path(os.environ["QWEN_HOME"]) / "sessions"
        forked = (home / f"{fork.session_id}.jsonl").read_text()
        assert first in forked and "Forked." in forked
        assert "Forked." not in (home / f"{client.session_id}.jsonl").read_text()
        again = await client.fork(at=first, model=options("From the first.").model)
        async with again:
            assert (await again.ask("Four")).text == "From the first."


async def test_continue_takes_the_latest_session_of_the_directory(options: Options) -> None:
    async with AsyncClient(options("Noted.")) as client:
        await client.ask("One")
        session_id = client.session_id
    async with AsyncClient(options("Two.", continue_session=True)) as client:
        assert client.session_id == session_id
        assert (await client.ask("Two")).ok


async def test_resume_reconnects_a_client(options: Options) -> None:
    opened = options("One.", permission_mode="plan")
    client = AsyncClient(opened)
    await client.connect()
    await client.ask("One")
    session_id = client.session_id
    await client.resume()
    assert client.session_id == session_id
    await client.close()


async def test_rewind_puts_files_back(options: Options, place: Path) -> None:
    (place / "a.txt").write_text("before")
    edit = call("edit", file_path="a.txt", old_string="before", new_string="after")
    opened = options([call("read_file", file_path="a.txt")], [edit], "Edited.", permission_mode="yolo")
    async with AsyncClient(opened) as client:
        prompt_id = await client.query("Edit")
        assert isinstance([m async for m in client.receive_response()][-1], ResultMessage)
        assert (place / "a.txt").read_text() == "after"
        planned = await client.rewind(prompt_id, dry_run=True)
        assert len(planned["filesChanged"]) == 1 and (place / "a.txt").read_text() == "after"
        await client.rewind(prompt_id)
        assert (place / "a.txt").read_text() == "before"


async def test_a_profile_takes_the_place_of_all_settings_and_is_removed(
    script: Script, place: Path, tmp_path: Path
) -> None:
    home = Path(os.environ["QWEN_HOME"])
    home.mkdir(parents=True)
    (home / "settings.json").write_text('{"permissions": {"defaultMode": "plan"}}')
    profile = SettingsProfile(
        user={"permissions": {"defaultMode": "default"}}, overrides={"permissions.defaultMode": "yolo"}
    )
    opened = QwenAgentOptions(model=script([write()], "Written."), settings_profile=profile, setting_sources=["user"])
    async with AsyncClient(opened) as client:
        private = list(tmp_path.glob("qwen-sdk-*"))
        assert len(private) == 1 and private[0].stat().st_mode & 0o777 == 0o700
        assert (private[0] / "profile.json").stat().st_mode & 0o777 == 0o600
        assert (await client.ask("Write")).ok
    assert (place / "a.txt").exists()
    assert not list(tmp_path.glob("qwen-sdk-*")), "the temporary files are gone"


async def test_settings_files_count_only_when_they_are_asked_for(script: Script, place: Path) -> None:
    home = Path(os.environ["QWEN_HOME"])
    home.mkdir(parents=True)
    (home / "settings.json").write_text('{"permissions": {"defaultMode": "yolo"}}')
    without = [m async for m in query("Go", model=script([write()], "Fine."))][-1]
    assert isinstance(without, ResultMessage) and without.outcome == "denied"
    opened = QwenAgentOptions(model=script([write()], "Fine."), setting_sources=["user"])
    result = [m async for m in query("Go", options=opened)][-1]
    assert isinstance(result, ResultMessage) and result.ok


@pytest.mark.parametrize("kind", ["memory", "directory"])
async def test_a_store_of_the_host_gets_every_turn_and_brings_a_session_back(
    kind: str, options: Options, tmp_path: Path
) -> None:
    store = InMemorySessionStore() if kind == "memory" else DirectorySessionStore(tmp_path / "store")
    async with AsyncClient(options("Noted.", session_store=store)) as client:
        await client.ask("My name is Ada.")
        session_id = client.session_id
    assert not (Path(os.environ["QWEN_HOME"]) / "sessions").exists(), "nothing is left on the local disk"
    kept = await store.load(session_id)
    assert kept is not None and b"Ada" in kept and kept.endswith(b"\n")
    async with AsyncClient(options("Ada.", session_store=store, resume=session_id)) as client:
        assert (await client.ask("Who am I?")).ok
    longer = await store.load(session_id)
    assert longer is not None and longer.startswith(kept) and b"Who am I?" in longer
    with pytest.raises(SessionNotFoundError):
        await AsyncClient(options("Hi.", session_store=store, resume="unknown")).connect()


class Review(BaseModel):
    """What a review says."""

    verdict: str
    problems: list[str] = []

    @field_validator("verdict")
    @classmethod
    def known(cls, value: str) -> str:
        if value not in ("good", "bad"):
            raise ValueError("the verdict must be good or bad")
        return value


async def test_structured_output_is_a_validated_instance(options: Options) -> None:
    given = call("structured_output", verdict="good", problems=["none"])
    result = [m async for m in query("Review", options=options([given], output_schema=Review))][-1]
    assert isinstance(result, ResultMessage)
    assert result.output == Review(verdict="good", problems=["none"])
    assert result.structured_output == {"verdict": "good", "problems": ["none"]}


async def test_structured_output_that_does_not_fit_is_an_error(options: Options) -> None:
    """The schema is held by the worker, the model's own validators by the SDK: neither lets anything through."""
    unfit = call("structured_output", verdict="so-so")
    result = [m async for m in query("Review", options=options([unfit], output_schema=Review))][-1]
    assert isinstance(result, ResultMessage)
    with pytest.raises(StructuredOutputError, match="good or bad") as caught:
        _ = result.output
    assert caught.value.raw == {"verdict": "so-so"}
    bad = [[call("structured_output", verdict="good", problems=[1])] for _ in range(12)]
    result = [m async for m in query("Review", options=options(*bad, output_schema=Review))][-1]
    assert isinstance(result, ResultMessage)
    assert result.is_error and result.error_code == "max_structured_output_retries"
    with pytest.raises(StructuredOutputError):
        _ = result.output


async def test_structured_output_survives_a_list_of_tools(options: Options) -> None:
    given = call("structured_output", verdict="bad")
    opened = options([given], output_schema=Review, core_tools=["read_file"], allowed_tools=["read_file"])
    result = [m async for m in query("Review", options=opened)][-1]
    assert isinstance(result, ResultMessage) and result.output.verdict == "bad"


async def test_structured_output_of_a_plain_json_schema_is_plain_data(options: Options) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    result = [m async for m in query("N?", options=options([call("structured_output", n=3)], output_schema=schema))][-1]
    assert isinstance(result, ResultMessage) and result.output == {"n": 3}


async def test_without_a_schema_there_is_no_output(options: Options) -> None:
    result = [m async for m in query("Hi", options=options("Hello."))][-1]
    assert isinstance(result, ResultMessage) and result.structured_output is None
    with pytest.raises(StructuredOutputError):
        _ = result.output


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="exclude"):
        QwenAgentOptions(resume="a", continue_session=True)
    with pytest.raises(ValueError, match="nothing to fork"):
        QwenAgentOptions(fork_session=True)
    with pytest.raises(ValueError, match="on_crash"):
        QwenAgentOptions(on_crash="pray")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="setting_sources"):
        QwenAgentOptions(setting_sources=["moon"])  # type: ignore[list-item]


async def test_the_end_of_a_session_waits_for_its_store(options: Options) -> None:
    class SlowStore(InMemorySessionStore):
        async def append(self, session_id: str, offset: int, data: bytes) -> None:
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            await super().append(session_id, offset, data)

    store = SlowStore()
    result = [message async for message in query("Go", options=options("Hi.", session_store=store))][-1]
    again = AsyncClient(options("Again.", session_store=store, resume=result.session_id))
    async with again:
        assert (await again.ask("More")).text == "Again."
    assert result.session_id is not None
    assert store.logs[result.session_id].count(b"Again.") > 0


async def test_a_store_that_never_answers_does_not_hold_up_the_end(options: Options) -> None:
    class StuckStore(InMemorySessionStore):
        async def append(self, session_id: str, offset: int, data: bytes) -> None:
            await anyio.sleep_forever()

    with anyio.fail_after(30):
        async with AsyncClient(options("Hi.", session_store=StuckStore(), timeouts=Timeouts(close=0.5))) as client:
            assert (await client.ask("Hello")).text == "Hi."
