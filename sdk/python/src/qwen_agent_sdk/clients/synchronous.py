"""The synchronous client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

from ..errors import NotConnectedError
from ..events import Event, ResultMessage
from ..options import QwenAgentOptions, StrPath
from .asynchronous import AsyncClient, Prompt
from .pool import WorkerPool

__all__ = ["Client", "QwenClient"]

T = TypeVar("T")


class Client:
    """A client for programs without an event loop.

        with Client(model="qwen3-coder-plus") as client:
            result = client.chat(task="Find the bug in main.py", workspace="/repos/demo")
            print(result.summary)

    There is one session for each workspace, which later chats continue. Methods may be called from any thread; chats of one
    workspace run one after the other. A loop in its own thread serves callbacks, so they work while the caller waits. All sessions
    share one hub. `QwenClient` is the same class.
    """

    def __init__(self, options: QwenAgentOptions | None = None, **overrides: Any) -> None:
        base = options if options is not None else QwenAgentOptions()
        self.options = base.replace(**overrides) if overrides else base
        self._sessions: dict[str, AsyncClient] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._pool: WorkerPool | None = None
        self._is_closed = False

    def chat(
        self, task: Prompt, workspace: StrPath | None = None, *, options: Mapping[str, Any] | None = None
    ) -> ResultMessage:
        """Runs one turn and returns its result.

        Ctrl-C ends the turn and raises `KeyboardInterrupt`; the session can go on.
        """
        session = self.session(workspace)
        return self._call(session.ask(task, options=options), on_interrupt=session.interrupt)

    def stream(
        self, task: Prompt, workspace: StrPath | None = None, *, options: Mapping[str, Any] | None = None
    ) -> Iterator[Event]:
        """Runs one turn and yields its messages as they come."""
        session = self.session(workspace)
        prompt_id = self._call(session.query(task, options=options))
        messages = cast("AsyncGenerator[Event, None]", session.receive_response())
        # A signal may end the caller's wait, and not the reading that it waits for.
        reading = asyncio.Lock()

        async def take() -> list[Event]:
            """What is there: one thread switch for a batch of messages."""
            batch: list[Event] = []
            async with reading:
                async for event in messages:
                    batch.append(event)
                    if len(batch) >= 64 or not session._open.has_events():
                        return batch
            return batch

        async def abandon() -> None:
            session._open.cancel_soon(prompt_id)
            async with reading:
                await messages.aclose()

        finished = False
        try:
            while batch := self._call(take(), on_interrupt=session.interrupt):
                yield from batch
            finished = True
        finally:
            if not finished and not self._is_closed:
                # The caller left the loop early: the turn is ended, and what still comes of it is dropped.
                self._call(abandon())

    def session(self, workspace: StrPath | None = None) -> AsyncClient:
        """The asynchronous client of a workspace, connected."""
        place = workspace if workspace is not None else self.options.cwd
        key = os.path.realpath(place if place is not None else os.getcwd())
        with self._lock:
            client = self._sessions.get(key)
            if client is None or client._open.has_failed:
                options = self.options.replace(cwd=key, worker_pool=self._worker_pool())
                if client is not None and client.last_result is not None:
                    # The hub was lost; the session is on disk.
                    options = options.replace(resume=client.session_id, session_id=None)
                client = AsyncClient(options)
                self._call(client.connect())
                self._sessions[key] = client
        return client

    def _worker_pool(self) -> WorkerPool:
        """The pool that all sessions of the client share."""
        pool = self.options.worker_pool
        if isinstance(pool, WorkerPool):
            return pool
        if self._pool is None or self._pool.is_closed:
            self._pool = self._call(WorkerPool(pool, options=self.options).open())
        return self._pool

    def interrupt(self, workspace: StrPath | None = None) -> bool:
        """Ends the running turn of a workspace; for other threads than the one that waits for it."""
        return self._call(self.session(workspace).interrupt())

    def set_model(self, model: str | None, workspace: StrPath | None = None) -> None:
        """Another model for the session of a workspace."""
        self._call(self.session(workspace).set_model(model))

    def set_permission_mode(self, mode: str, workspace: StrPath | None = None) -> None:
        """Another permission mode for the session of a workspace."""
        self._call(self.session(workspace).set_permission_mode(mode))

    def close(self) -> None:
        """Ends all sessions and the thread behind them."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._loop is None or os.getpid() != self._pid:
            return
        try:
            for closing in [self._submit(client.close()) for client in self._sessions.values()]:
                closing.result()
            if self._pool is not None:
                self._submit(self._pool.close()).result()
        finally:
            loop, self._loop = self._loop, None
            loop.call_soon_threadsafe(loop.stop)
            if self._thread is not None:
                self._thread.join(5)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is not None and os.getpid() == self._pid:
            # Its sessions are collected with the client, which ends their workers.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)

    def _call(
        self,
        work: Coroutine[Any, Any, T],
        on_interrupt: Callable[[], Coroutine[Any, Any, object]] | None = None,
    ) -> T:
        """Runs `work` in the loop and waits for it."""
        try:
            future = self._submit(work)
        except KeyboardInterrupt:
            # It may have begun: what it waits for is ended, as if the signal had come a moment later.
            if on_interrupt is not None:
                with contextlib.suppress(Exception):
                    self._submit(on_interrupt()).result(self.options.timeouts.close)
            raise
        try:
            return future.result()
        except KeyboardInterrupt:
            if on_interrupt is not None:
                # The turn ends with a result, which is taken so that the next turn starts clean.
                self._submit(on_interrupt())
                try:
                    future.result(self.options.timeouts.close)
                except (concurrent.futures.TimeoutError, Exception):
                    future.cancel()
            else:
                future.cancel()
            raise

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        if os.getpid() != self._pid:
            work.close()
            message = "the client was opened in a parent process and cannot be used after fork(); open a new one"
            raise NotConnectedError(message, code="used_after_fork")
        if self._is_closed and self._loop is None:
            work.close()
            raise NotConnectedError("the client is closed")
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()

            def run() -> None:
                asyncio.set_event_loop(loop)
                try:
                    loop.run_forever()
                    tasks = asyncio.all_tasks(loop)
                    for task in tasks:
                        task.cancel()
                    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
                    loop.run_until_complete(loop.shutdown_asyncgens())
                finally:
                    loop.close()

            self._thread = threading.Thread(target=run, name="qwen-client", daemon=True)
            self._thread.start()
            self._loop = loop
        return self._loop


QwenClient = Client
"""`Client` under the name of the specification."""
