"""The little that the SDK needs from an event loop, for asyncio and trio.

Tasks are started outside of any cancel scope or nursery of the caller (`asyncio` tasks, `trio` system tasks), so a client may be
closed by a task other than the one that opened it. Neither library is imported here unless it is the one that runs.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio

    import trio

__all__ = ["Runtime", "TaskHandle", "Waiter", "current_runtime"]


class Waiter(Protocol):
    """A flag that one or several tasks wait for. It stays set."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    async def wait(self, timeout: float | None = None) -> bool:
        """Waits until the flag is set, at most `timeout` seconds; tells whether it is set."""
        ...


class TaskHandle(Protocol):
    """A task that was started by `Runtime.spawn`."""

    def cancel(self) -> None: ...


class Runtime(Protocol):
    """The event loop that a client lives in."""

    name: str

    def spawn(self, work: Callable[[], Awaitable[None]], name: str) -> TaskHandle:
        """Runs `work` beside everything else. `work` handles its own exceptions."""
        ...

    def waiter(self) -> Waiter: ...

    async def readable(self, fd: int) -> None:
        """Waits until `fd` can be read."""
        ...

    async def writable(self, fd: int) -> None: ...

    def forget(self, fd: int) -> None:
        """Must be called before `fd` is closed; wakes tasks that wait for it."""
        ...

    async def sleep(self, seconds: float) -> None: ...
    async def checkpoint(self) -> None: ...

    def call_from_thread(self, function: Callable[[], object]) -> None:
        """Runs `function` soon in the loop; does nothing if the loop is gone. Callable from any thread."""
        ...

    def is_current(self) -> bool:
        """True if the caller runs in this very loop."""
        ...


def current_runtime() -> Runtime:
    """The runtime of the calling task."""
    if "trio" in sys.modules:
        import trio

        try:
            token = trio.lowlevel.current_trio_token()
        except RuntimeError:
            pass
        else:
            return _TrioRuntime(token)
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        message = "this must be called from a task of asyncio or trio; use QwenClient in synchronous code"
        raise RuntimeError(message) from None
    return _AsyncioRuntime(loop)


class _AsyncioWaiter:
    __slots__ = ("_done", "_futures", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done = False
        self._futures: list[asyncio.Future[bool]] = []

    def set(self) -> None:
        if self._done:
            return
        self._done = True
        for future in self._futures:
            if not future.done():
                future.set_result(True)
        self._futures.clear()

    def is_set(self) -> bool:
        return self._done

    async def wait(self, timeout: float | None = None) -> bool:
        if self._done:
            return True
        future: asyncio.Future[bool] = self._loop.create_future()
        self._futures.append(future)
        timer = None
        if timeout is not None:
            timer = self._loop.call_later(max(timeout, 0), _expire, future)
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            if future in self._futures:
                self._futures.remove(future)


def _expire(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)


class _FdWatch:
    """The readers or writers of one descriptor; stays registered while data keeps coming."""

    __slots__ = ("future", "registered")

    def __init__(self) -> None:
        self.future: asyncio.Future[None] | None = None
        self.registered = False


class _AsyncioRuntime:
    name = "asyncio"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads: dict[int, _FdWatch] = {}
        self._writes: dict[int, _FdWatch] = {}

    def spawn(self, work: Callable[[], Awaitable[None]], name: str) -> TaskHandle:
        async def run() -> None:
            await work()

        task = self._loop.create_task(run(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return _AsyncioTask(task)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    def waiter(self) -> Waiter:
        return _AsyncioWaiter(self._loop)

    async def readable(self, fd: int) -> None:
        await self._wait(self._reads, fd, self._loop.add_reader, self._loop.remove_reader)

    async def writable(self, fd: int) -> None:
        await self._wait(self._writes, fd, self._loop.add_writer, self._loop.remove_writer)

    async def _wait(
        self,
        watches: dict[int, _FdWatch],
        fd: int,
        add: Callable[..., object],
        remove: Callable[[int], object],
    ) -> None:
        watch = watches.get(fd)
        if watch is None:
            watch = watches[fd] = _FdWatch()
        if watch.future is not None and not watch.future.done():
            raise RuntimeError("two tasks wait for the same descriptor")
        future = watch.future = self._loop.create_future()
        if not watch.registered:
            # Stays registered until an event comes that nobody waits for: one system call less per batch.
            add(fd, _ready, watch, fd, remove)
            watch.registered = True
        await future

    def forget(self, fd: int) -> None:
        for watches, remove in (
            (self._reads, self._loop.remove_reader),
            (self._writes, self._loop.remove_writer),
        ):
            watch = watches.pop(fd, None)
            if watch is None:
                continue
            if watch.registered and not self._loop.is_closed():
                remove(fd)
            if watch.future is not None and not watch.future.done() and not self._loop.is_closed():
                watch.future.set_result(None)

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    async def checkpoint(self) -> None:
        import asyncio

        await asyncio.sleep(0)

    def call_from_thread(self, function: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(function)
        except RuntimeError:
            return

    def is_current(self) -> bool:
        import asyncio

        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False


def _ready(watch: _FdWatch, fd: int, remove: Callable[[int], object]) -> None:
    if watch.future is None or watch.future.done():
        remove(fd)
        watch.registered = False
    else:
        watch.future.set_result(None)


class _AsyncioTask:
    __slots__ = ("_task",)

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    def cancel(self) -> None:
        self._task.cancel()


class _TrioWaiter:
    __slots__ = ("_event",)

    def __init__(self) -> None:
        import trio

        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, timeout: float | None = None) -> bool:
        if timeout is None:
            await self._event.wait()
            return True
        import trio

        with trio.move_on_after(max(timeout, 0)):
            await self._event.wait()
        return self._event.is_set()


class _TrioTask:
    __slots__ = ("_scope",)

    def __init__(self, scope: trio.CancelScope) -> None:
        self._scope = scope

    def cancel(self) -> None:
        self._scope.cancel()


class _TrioRuntime:
    name = "trio"

    def __init__(self, token: Any) -> None:
        self._token = token

    def spawn(self, work: Callable[[], Awaitable[None]], name: str) -> TaskHandle:
        import trio

        scope = trio.CancelScope()

        async def run() -> None:
            with scope, contextlib.suppress(Exception):
                await work()

        # A system task starts with an empty context unless it is given one.
        trio.lowlevel.spawn_system_task(run, name=name, context=contextvars.copy_context())
        return _TrioTask(scope)

    def waiter(self) -> Waiter:
        return _TrioWaiter()

    async def readable(self, fd: int) -> None:
        import trio

        try:
            await trio.lowlevel.wait_readable(fd)
        except trio.ClosedResourceError:
            return

    async def writable(self, fd: int) -> None:
        import trio

        try:
            await trio.lowlevel.wait_writable(fd)
        except trio.ClosedResourceError:
            return

    def forget(self, fd: int) -> None:
        if not self.is_current():
            return
        import trio

        trio.lowlevel.notify_closing(fd)

    async def sleep(self, seconds: float) -> None:
        import trio

        await trio.sleep(seconds)

    async def checkpoint(self) -> None:
        import trio

        await trio.lowlevel.checkpoint()

    def call_from_thread(self, function: Callable[[], object]) -> None:
        import trio

        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return

    def is_current(self) -> bool:
        import trio

        try:
            return trio.lowlevel.current_trio_token() is self._token
        except RuntimeError:
            return False
