"""The asynchronous client."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Union

from .._internal.runtime import current_runtime
from .._internal.session.session import Query, ends_prompt, rejection_of
from ..errors import NotConnectedError
from ..events import AssistantChunk, CommandResult, Event, ResultMessage, SessionEvent, SessionStarted
from ..options import QwenAgentOptions
from .pool import WorkerPool

__all__ = ["AsyncClient", "Prompt", "QwenSDKClient"]

Prompt = Union[str, Sequence[Mapping[str, Any]]]
"""Text, or a list of parts such as `{"type": "text", "text": …}` and `{"inline_data": {"mime_type": …, "data": …}}`."""


class AsyncClient:
    """A session with several turns, under asyncio or trio.

        async with AsyncClient(QwenAgentOptions(model="qwen3-coder-plus")) as client:
            await client.query("Look at main.py")
            async for message in client.receive_response():
                print(message)

    Any task may call any method, `close` included; one task at a time reads messages. `QwenSDKClient` is the same class.
    """

    def __init__(self, options: QwenAgentOptions | None = None, **overrides: Any) -> None:
        base = options if options is not None else QwenAgentOptions()
        self.options = base.replace(**overrides) if overrides else base
        self._session: Query | None = None
        self._own_pool: WorkerPool | None = None

    # Opening and closing

    async def connect(self) -> AsyncClient:
        """Opens the session, in the pool of the options or in a hub of its own. `async with` does this.

        A client that was closed can be connected again, to a new session.
        """
        if self._session is not None and not self._session.is_closed:
            raise RuntimeError("the client is connected already")
        pool = self.options.worker_pool
        if isinstance(pool, WorkerPool):
            hub = pool.connection_for(self.options)
        else:
            self._own_pool = WorkerPool(pool, options=self.options)
            hub = await self._own_pool.start()
        own = self._own_pool
        self._session = Query(self.options, current_runtime(), hub, own.kill if own is not None else None)
        try:
            await self._session.start()
        except BaseException:
            self._session = None
            await self._close_own_pool(0)
            raise
        return self

    async def close(self, timeout: float | None = None) -> None:
        """Ends the session, whatever it is doing: prompts that wait are withdrawn, and nothing reaches the model any more.

        Within `timeout` seconds (default `Timeouts.close`) its worker is gone.
        """
        try:
            if self._session is not None:
                await self._session.close(timeout)
        finally:
            await self._close_own_pool(timeout)

    async def _close_own_pool(self, timeout: float | None) -> None:
        if self._own_pool is not None:
            pool, self._own_pool = self._own_pool, None
            await pool.close(timeout)

    disconnect = close

    async def __aenter__(self) -> AsyncClient:
        is_connected = self._session is not None and not self._session.is_closed
        return self if is_connected else await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.abandon()

    @property
    def _open(self) -> Query:
        if self._session is None:
            raise NotConnectedError("the client is not connected; use 'async with' or await connect()")
        return self._session

    @property
    def session_id(self) -> str:
        """The id of the session, for `QwenAgentOptions(resume=…)`."""
        return self._open.session_id

    @property
    def server_info(self) -> Mapping[str, Any]:
        """What the worker said at `initialize`: commands, agents, models, capabilities."""
        return self._open.server_info

    @property
    def handshake(self) -> SessionStarted:
        """The first line of the worker, with its protocol version and capabilities."""
        return self._open.handshake

    @property
    def last_result(self) -> ResultMessage | None:
        """The last good result of the session."""
        return self._open.last_result

    # Prompts and messages

    async def query(self, prompt: Prompt | AsyncIterable[Prompt], *, options: Mapping[str, Any] | None = None) -> str:
        """Sends a prompt, or every prompt of an async iterable; returns the (last) prompt id.

        Prompts that come while a turn runs wait for its end. `options` are overrides for this prompt (`temperature`,
        `tool_overrides`, `model`, …).
        """
        if isinstance(prompt, AsyncIterable):
            last = ""
            async for one in prompt:
                last, _ = await self._open.prompt(one, options=options)
            return last
        return (await self._open.prompt(prompt, options=options))[0]

    async def command(self, *path: str, args: str = "") -> str:
        """Runs a slash command, such as `command("help")`; its `CommandResult` comes with the messages."""
        return (await self._open.prompt("", command={"kind": "slash", "path": list(path), "args": args}))[0]

    async def steer(self, prompt: Prompt) -> str:
        """Adds to the running turn: the model sees it before its next call. Without a running turn it is a prompt."""
        return (await self._open.prompt(prompt, delivery="steer"))[0]

    async def receive_messages(self) -> AsyncIterator[Event]:
        """All messages until the session ends."""
        session = self._open
        while True:
            event = await session.next_of(None)
            if event is None:
                return
            if ends_prompt(event) or rejection_of(event) is not None:
                session.received(event)
            yield event

    async def receive_response(self) -> AsyncIterator[Event]:
        """The messages of one prompt, the oldest whose response was not received: until its result, or the result of its command.

        Raises `PromptRejectedError` if the worker refuses the prompt. After a loop that was left early the next call continues
        with the rest of the same prompt's messages.
        """
        session = self._open
        target: str | None = None
        while True:
            target = target or session.oldest_unread()
            event = session.take_event(target) or await session.next_of(target)
            if type(event) is AssistantChunk:
                yield event
                continue
            if event is None:
                raise NotConnectedError("the session was closed before the turn ended")
            is_joined = isinstance(event, SessionEvent) and event.event == "Steered" and event.prompt_id == target
            rejection = rejection_of(event)
            is_end = ends_prompt(event) or is_joined
            if is_end or rejection is not None:
                session.received(event)
            if rejection is not None:
                raise rejection
            yield event
            if is_end:
                return

    async def ask(self, prompt: Prompt, *, options: Mapping[str, Any] | None = None) -> ResultMessage:
        """Sends a prompt and waits for its result; messages before it are not kept.

        Several tasks may ask at once, also while another one reads the messages of a `query`; the prompts run one after the other.
        If the caller is cancelled, the turn is ended and its result is dropped.
        """
        outcome = await self._open.ask(prompt, options)
        return _result_of_command(outcome) if isinstance(outcome, CommandResult) else outcome

    # Control

    async def interrupt(self, prompt_id: str | None = None) -> bool:
        """Ends the running turn, or withdraws a queued prompt. Its result comes with the status `cancelled`.

        Returns False if there was nothing to end. The session continues.
        """
        answer = await self._open.cancel(prompt_id)
        return answer.get("status") == "ok"

    async def set_model(self, model: str | None) -> None:
        """Another model from the next model call on; None for the configured one."""
        await self._open.request("set_model", {"model": model})

    async def set_permission_mode(self, mode: str) -> None:
        """Another permission mode from now on."""
        await self._open.request("set_permission_mode", {"mode": mode})

    async def rewind(self, prompt_id: str, *, dry_run: bool = False) -> Mapping[str, Any]:
        """Puts files back to where they were before this prompt; `filesChanged` lists them. The conversation stays."""
        return await self._open.request("rewind_files", {"user_message_id": prompt_id, "dry_run": dry_run})

    async def context_usage(self) -> Mapping[str, Any]:
        """How full the model's context is."""
        return await self._open.request("get_context_usage")

    async def mcp_status(self) -> Mapping[str, Any]:
        """The MCP servers and how they are."""
        return await self._open.request("mcp_status")

    async def command_hints(self, text: str, *, cursor: int | None = None) -> list[dict[str, Any]]:
        """Suggestions for `/…` and `@…` that is being typed."""
        trigger = "at" if "@" in text and not text.startswith("/") else "slash"
        position = len(text) if cursor is None else cursor
        return (await self._open.hint(trigger, text, position, None)).suggestions

    async def control(self, subtype: str, **fields: Any) -> Mapping[str, Any]:
        """Any other control request of the protocol."""
        return await self._open.request(subtype, fields)

    # Other sessions

    async def fork(self, *, at: str | None = None, **overrides: Any) -> AsyncClient:
        """A connected client for a new session with the history of this one, up to the prompt `at` if that is given."""
        changes: dict[str, Any] = {"resume": self.session_id, "fork_session": True, "session_id": None}
        changes.update({"continue_session": False, "resume_at": at, **overrides})
        return await AsyncClient(self.options.replace(**changes)).connect()

    async def resume(self, session_id: str | None = None) -> None:
        """Continues with another session, or with this one in a new worker."""
        target = session_id if session_id is not None else self.session_id
        await self.close()
        self.options = self.options.replace(
            resume=target, session_id=None, fork_session=False, continue_session=False, resume_at=None
        )
        self._session = None
        await self.connect()


def _result_of_command(command: CommandResult) -> ResultMessage:
    """A command's result in the form of a turn's, for callers that want one object."""
    status = "error" if command.is_error else "done"
    result = ResultMessage(
        {
            "object": "chat.completion",
            "session_id": command.session_id,
            "prompt_id": command.prompt_id,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": command.text}}],
            "metadata": {"turn": {"status": status}},
        }
    )
    if command.is_error:
        result.raw["metadata"]["error"] = {"message": command.text, "code": "command_failed"}
    return result


QwenSDKClient = AsyncClient
"""`AsyncClient` under the name of the specification."""
