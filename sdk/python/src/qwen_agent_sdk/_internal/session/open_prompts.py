"""The prompts of a session whose end has not been seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..telemetry import TurnSpan
from ..worker.launch import new_name

__all__ = ["OpenPrompt", "OpenPrompts", "new_prompt_id"]


@dataclass
class OpenPrompt:
    """A prompt as it was sent, with the span of its turn."""

    line: dict[str, Any]
    span: TurnSpan
    is_started: bool = False


def new_prompt_id(session_id: str) -> str:
    """An id that no other prompt of the session has."""
    return f"{session_id}########{new_name()}"


class OpenPrompts:
    """The open prompts by their ids, in the order in which they were sent."""

    def __init__(self) -> None:
        self._by_id: dict[str, OpenPrompt] = {}
        self._first_ids: dict[str, str] = {}
        self.unstarted = 0
        """How many of them the worker has not begun; 0 lets chunks take a shorter way."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def add(self, prompt_id: str, line: dict[str, Any], span: TurnSpan) -> None:
        """Adds a prompt that is about to be sent."""
        self._by_id[prompt_id] = OpenPrompt(line, span)
        self.unstarted += 1

    def discard(self, prompt_id: str) -> None:
        """Removes a prompt that could not be sent."""
        self._by_id.pop(prompt_id, None)
        self.unstarted = max(0, self.unstarted - 1)

    def mark_started(self, prompt_id: str | None) -> None:
        """Notes the first line of a turn."""
        prompt = self._by_id.get(prompt_id or "")
        if prompt is not None and not prompt.is_started:
            prompt.is_started = True
            self.unstarted -= 1

    def finish(self, prompt_id: str | None) -> OpenPrompt | None:
        """Removes a prompt whose end was seen."""
        return self._by_id.pop(prompt_id or "", None)

    def reject(self, named: str | None) -> tuple[str, OpenPrompt] | None:
        """Removes the named prompt, or the oldest one, if it has not begun."""
        for prompt_id, prompt in self._by_id.items():
            if not prompt.is_started and named in (None, prompt_id):
                del self._by_id[prompt_id]
                self.unstarted -= 1
                return prompt_id, prompt
        return None

    def renew(self, session_id: str, *, after: int) -> list[OpenPrompt]:
        """Gives the prompts behind the first `after` new ids, for a new worker that they are sent to again."""
        renewed = []
        for prompt_id in list(self._by_id)[after:]:
            prompt = self._by_id.pop(prompt_id)
            fresh = new_prompt_id(session_id)
            self._first_ids[fresh] = self.first_id(prompt_id)
            prompt.line.update({"prompt_id": fresh, "uuid": fresh, "session_id": session_id})
            if prompt.is_started:
                prompt.is_started = False
                self.unstarted += 1
            self._by_id[fresh] = prompt
            renewed.append(prompt)
        return renewed

    def first_id(self, prompt_id: str) -> str:
        """The id under which a prompt was first sent."""
        return self._first_ids.get(prompt_id, prompt_id)

    def end_all(self, error: str) -> None:
        """Ends every span; no result will come."""
        for prompt in self._by_id.values():
            prompt.span.end("interrupted", error=error)
        self._by_id.clear()
