"""One question, one answer."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator
from types import TracebackType
from typing import Any

from .._internal.runtime import TaskHandle, current_runtime
from .._internal.session.session import Query, ends_prompt, rejection_of
from ..events import AssistantChunk, Event
from ..options import QwenAgentOptions
from .asynchronous import AsyncClient, Prompt

__all__ = ["QueryStream", "query"]


def query(
    prompt: Prompt | AsyncIterable[Prompt], options: QwenAgentOptions | None = None, **overrides: Any
) -> QueryStream:
    """Runs one prompt, or a stream of prompts, and yields messages until all of them have their result.

        async for message in query("What does main.py do?", model="qwen3-coder-plus"):
            if isinstance(message, ResultMessage):
                print(message.text)

    Keyword arguments are fields of `QwenAgentOptions`. The worker starts with the first message and is gone when the iteration ends,
    however it ends; `async with query(...) as messages` makes that prompt where the loop is left early.
    """
    return QueryStream(prompt, AsyncClient(options, **overrides))


class QueryStream(AsyncIterator[Event]):
    """The messages of `query`. Standard input stays open until the end, so callbacks work for the whole turn."""

    def __init__(self, prompt: Prompt | AsyncIterable[Prompt], client: AsyncClient) -> None:
        self._prompt = prompt
        self._client = client
        self._session: Query | None = None
        self._is_started = False
        self._is_over = False
        self._pending: set[str | None] = set()
        self._input: TaskHandle | None = None
        self._input_is_open = False
        self._input_failure: BaseException | None = None

    @property
    def client(self) -> AsyncClient:
        """The client behind the stream, for `interrupt` and the like."""
        return self._client

    def __aiter__(self) -> QueryStream:
        return self

    async def __anext__(self) -> Event:
        event = None
        if self._session is not None:
            # Chunks end nothing, so they need none of the rest.
            event = self._session.take_event(self._session.oldest_unread())
            if type(event) is AssistantChunk:
                return event
        if self._is_over:
            raise StopAsyncIteration
        try:
            if not self._is_started:
                await self._start()
            if event is None:
                event = await self._client._open.next_of(None)
        except BaseException:
            await self.aclose()
            raise
        if event is None or self._input_failure is not None:
            await self.aclose()
            if self._input_failure is not None:
                raise self._input_failure
            raise StopAsyncIteration
        rejection = rejection_of(event)
        if rejection is not None:
            await self.aclose()
            raise rejection
        if ends_prompt(event):
            self._client._open.received(event)
            self._pending.discard(event.prompt_id)
            if not self._input_is_open and not self._pending:
                await self.aclose()
        return event

    async def _start(self) -> None:
        self._is_started = True
        await self._client.connect()
        self._session = self._client._open
        if isinstance(self._prompt, AsyncIterable):
            self._input_is_open = True
            self._input = current_runtime().spawn(self._feed, "qwen-prompts")
        else:
            self._pending.add(await self._client.query(self._prompt))

    async def _feed(self) -> None:
        assert isinstance(self._prompt, AsyncIterable)
        session = self._client._open
        try:
            async for one in self._prompt:
                self._pending.add((await session.prompt(one))[0])
        except Exception as error:
            self._input_failure = error
        finally:
            self._input_is_open = False
            if self._input_failure is not None or not self._pending:
                # All results were given out before the input ended: nothing else would wake the reader.
                session.end_events()

    async def aclose(self) -> None:
        """Ends the worker. Called by the stream itself at its end."""
        self._is_over = True
        self._session = None
        if self._input is not None:
            self._input.cancel()
        with contextlib.suppress(ProcessLookupError):
            await self._client.close()

    async def __aenter__(self) -> QueryStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
