"""Requests that wait for their answer."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Generic, TypeVar

from ...errors import ControlRequestError, NotConnectedError, TimeoutExpiredError
from ..runtime import Runtime, Waiter

__all__ = ["PendingRequests", "control_result"]

JsonObject = dict[str, Any]
T = TypeVar("T")


class PendingRequests(Generic[T]):
    """Pairs answers with requests, by id or in the order in which they were sent."""

    def __init__(self, runtime: Runtime, who: str) -> None:
        self._runtime = runtime
        self._who = who
        self._waiting: dict[str, tuple[Waiter, list[T]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def ask(self, request_id: str, sending: Awaitable[None], seconds: float, what: str) -> T:
        """Sends a request and waits for its answer."""
        self.expect(request_id)
        try:
            await sending
        except BaseException:
            self._waiting.pop(request_id, None)
            raise
        return await self.answer(request_id, seconds, what)

    def expect(self, request_id: str) -> None:
        """Prepares for the answer to a request that is about to be sent."""
        self._waiting[request_id] = (self._runtime.waiter(), [])

    async def answer(self, request_id: str, seconds: float, what: str) -> T:
        """Waits for an answer.

        Raises `TimeoutExpiredError` after `seconds`, and `NotConnectedError` if the other side is gone before it answers.
        """
        waiter, answers = self._waiting[request_id]
        try:
            if not await waiter.wait(seconds):
                message = f"the {self._who} did not answer {what!r} within {seconds:g} s (control time-out)"
                raise TimeoutExpiredError(message, code="control")
        finally:
            self._waiting.pop(request_id, None)
        if not answers:
            raise NotConnectedError(f"the {self._who} ended before it answered {what!r}")
        return answers[0]

    def resolve(self, request_id: str, answer: T) -> bool:
        """Passes an answer to the waiting caller; returns False if there is none."""
        waiting = self._waiting.get(request_id)
        if waiting is None:
            return False
        waiting[1].append(answer)
        waiting[0].set()
        return True

    def resolve_oldest(self, answer: T) -> bool:
        """The same for answers without an id, which come in the order of their requests."""
        oldest = next((key for key, (_, answers) in self._waiting.items() if not answers), None)
        return oldest is not None and self.resolve(oldest, answer)

    def cancel_all(self) -> None:
        """No answer comes any more."""
        for waiting, _ in self._waiting.values():
            waiting.set()


def control_result(response: JsonObject, who: str, what: str) -> JsonObject:
    """The result of a control response; raises `ControlRequestError` for a refusal."""
    if response.get("subtype") == "success":
        result = response.get("result")
        return result if isinstance(result, dict) else {}
    error = response.get("error")
    error = error if isinstance(error, dict) else {"message": str(error)}
    raise ControlRequestError(
        f"the {who} refused {what!r}: {error.get('message', '')}",
        code=str(error.get("code") or ""),
        retryable=error.get("retryable") is True,
        reason=str(error.get("message", "")),
    )
