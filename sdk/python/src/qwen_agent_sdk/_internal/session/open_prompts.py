"""The prompts of a session whose end has not been seen."""

from __future__ import annotations

from collections.abc import Iterator

from ...events import Event, TurnReader
from ..hub.launch import new_name
from ..runtime import Waiter
from ..telemetry import TurnSpan

__all__ = ["OpenPrompt", "OpenPrompts", "new_prompt_id"]


class OpenPrompt:
    """A prompt under way. Its events go to the session's reader, to the task that asked, or nowhere once that task left."""

    def __init__(self, span: TurnSpan, answered: Waiter | None) -> None:
        self.span = span
        self.reader = TurnReader()
        self.is_started = False
        self.answered = answered
        """Set at the prompt's end, if a task waits for the result alone."""
        self.outcome: Event | None = None
        self.is_read = answered is None
        """True if the events of the prompt are for the session's reader."""


def new_prompt_id(session_id: str) -> str:
    """An id that no other prompt of the session has."""
    return f"{session_id}########{new_name()}"


class OpenPrompts(dict[str, OpenPrompt]):
    """The open prompts by their ids, in the order in which they were sent."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: dict[str, list[Event]] = {}
        """Prompts whose end the session's reader has not received, each with events that came before their time."""

    def finish(self, prompt_id: str | None) -> OpenPrompt | None:
        """Removes a prompt whose end was seen."""
        return self.pop(prompt_id or "", None)

    def reject(self, named: str | None) -> tuple[str, OpenPrompt] | None:
        """Removes the named prompt, or the oldest one, if it has not begun."""
        for prompt_id, prompt in self.items():
            if not prompt.is_started and named in (None, prompt_id):
                del self[prompt_id]
                return prompt_id, prompt
        return None

    def take_held(self, prompt_id: str | None) -> Event | None:
        """The next event of a prompt that came before its time; of any prompt if none is named."""
        names: Iterator[str] = iter(self.unread) if prompt_id is None else iter((prompt_id,))
        for name in names:
            if held := self.unread.get(name):
                return held.pop(0)
        return None

    def end_all(self, error: str) -> None:
        """Ends every span and wakes every waiting task; no result will come."""
        for prompt in self.values():
            prompt.span.end("interrupted", error=error)
            if prompt.answered is not None:
                prompt.answered.set()
        self.clear()
