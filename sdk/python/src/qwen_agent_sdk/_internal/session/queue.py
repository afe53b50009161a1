"""The events that wait for their reader."""

from __future__ import annotations

from collections import deque

from ...events import Event
from ..runtime import Runtime, Waiter

__all__ = ["EventQueue"]

_MAX_CHARACTERS = 8 * 1024 * 1024
_EVENTS_PER_CHECKPOINT = 256


class EventQueue:
    """A bounded queue with one reader at a time.

    The bound is for the writer to respect: it asks `is_full` between batches and waits with `room`. An ended queue gives out what is
    left and then raises its failure, or returns None.
    """

    def __init__(self, runtime: Runtime, max_events: int) -> None:
        self._runtime = runtime
        self._max_events = max_events
        self._events: deque[Event] = deque()
        self._sizes: deque[int] = deque()
        self._characters = 0
        self._reader: Waiter | None = None
        self._writer: Waiter | None = None
        self._ended = False
        self._failure: BaseException | None = None
        self._streak = 0

    def put(self, event: Event, size: int) -> None:
        """Adds an event; `flush` wakes the reader."""
        self._events.append(event)
        self._sizes.append(size)
        self._characters += size

    def take(self, prompt_id: str | None) -> Event | None:
        """The next event if it is there, belongs to this prompt, and no other task has to run first; None means to use `get`."""
        events = self._events
        if not events or self._streak >= _EVENTS_PER_CHECKPOINT or events[0].raw.get("prompt_id") != prompt_id:
            return None
        self._streak += 1
        self._characters -= self._sizes.popleft()
        event = events.popleft()
        if self._writer is not None:
            self._wake_at_half()
        return event

    def discard(self, prompt_id: str | None) -> None:
        """Drops what waits of a prompt; of all prompts if none is named."""
        kept = [
            (event, size)
            for event, size in zip(self._events, self._sizes, strict=True)
            if prompt_id is not None and event.raw.get("prompt_id") != prompt_id
        ]
        self._events = deque(event for event, _ in kept)
        self._sizes = deque(size for _, size in kept)
        self._characters = sum(self._sizes)
        self.wake_writer()

    def flush(self) -> None:
        """Wakes the reader if there is something for it."""
        if self._reader is not None and (self._events or self._ended):
            self._reader.set()
            self._reader = None

    def is_full(self) -> bool:
        """True while the writer should wait."""
        if self._ended:
            return False
        return len(self._events) >= self._max_events or self._characters >= _MAX_CHARACTERS

    async def room(self, timeout: float | None = None) -> None:
        """Waits until the reader has taken half of what waits."""
        if not self.is_full():
            return
        self._writer = self._runtime.waiter()
        await self._writer.wait(timeout)

    def wake_writer(self) -> None:
        """Lets the writer look again at what it waits for."""
        if self._writer is not None:
            self._writer.set()
            self._writer = None

    def end(self, failure: BaseException | None) -> None:
        """No event comes any more."""
        if self._ended:
            return
        self._ended = True
        self._failure = failure
        self.flush()
        self.wake_writer()

    def has_events(self) -> bool:
        """True if `get` would return an event at once."""
        return bool(self._events)

    @property
    def is_ended(self) -> bool:
        """True once `end` was called; events may be left."""
        return self._ended

    @property
    def failure(self) -> BaseException | None:
        """Why the queue ended, where it did not end well."""
        return self._failure

    async def get(self) -> Event | None:
        """The next event; None at the end."""
        if not self._events:
            self._streak = 0
            while not self._events:
                if self._ended:
                    if self._failure is not None:
                        raise self._failure
                    return None
                if self._reader is not None:
                    raise RuntimeError("two tasks read the messages of one session; only one can")
                reader = self._reader = self._runtime.waiter()
                try:
                    await reader.wait()
                finally:
                    if self._reader is reader:
                        self._reader = None
        else:
            # A stream that is always ahead of its reader would never let other tasks run.
            self._streak += 1
            if self._streak >= _EVENTS_PER_CHECKPOINT:
                self._streak = 0
                await self._runtime.checkpoint()
        event = self._events.popleft()
        self._characters -= self._sizes.popleft()
        if self._writer is not None:
            self._wake_at_half()
        return event

    def _wake_at_half(self) -> None:
        if len(self._events) * 2 <= self._max_events and self._characters * 2 <= _MAX_CHARACTERS:
            self.wake_writer()
