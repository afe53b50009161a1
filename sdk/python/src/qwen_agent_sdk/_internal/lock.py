"""A lock for the tasks of either event loop."""

from __future__ import annotations

from collections import deque
from types import TracebackType

from .runtime import Runtime, Waiter

__all__ = ["TaskLock"]


class TaskLock:
    """Lets one task in at a time, in the order in which they came: `async with lock`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._is_held = False
        self._waiting: deque[Waiter] = deque()

    async def __aenter__(self) -> None:
        if not self._is_held:
            self._is_held = True
            return
        turn = self._runtime.waiter()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                # The lock was handed over in the moment of the cancellation.
                self._release()
            else:
                self._waiting.remove(turn)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._is_held = False
