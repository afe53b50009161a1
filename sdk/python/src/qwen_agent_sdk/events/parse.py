"""From lines to events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .base import CHUNK, Event, JsonObject, ToolCall, as_count, as_object, as_text
from .messages import AssistantChunk, AssistantMessage, ErrorMessage, FatalErrorMessage, ResultMessage, SessionStarted
from .records import RECORDS_BY_TYPE, MalformedLine, UnknownEvent

_scan: Callable[[str, int], tuple[Any, int]] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009


def parse_line(line: str) -> Event:
    """One line as an event. Never raises: what cannot be read is a `MalformedLine`."""
    try:
        raw, end = _scan(line, 0)
    except StopIteration:
        return MalformedLine(line, "not JSON")
    except (ValueError, RecursionError) as error:
        return MalformedLine(line, str(error))
    if type(raw) is not dict:
        return MalformedLine(line, "not a JSON object")
    if end != len(line) and line[end:].strip():
        return MalformedLine(line, "more than one JSON value")
    return _event_of(raw)


def _event_of(raw: JsonObject) -> Event:
    kind = raw.get("object")
    if kind == CHUNK and "metadata" not in raw:
        return AssistantChunk(raw)
    if kind is None:
        if "error" in raw and "type" not in raw:
            return FatalErrorMessage(raw)
        kind = raw.get("type")
        return RECORDS_BY_TYPE.get(kind, UnknownEvent)(raw) if isinstance(kind, str) else UnknownEvent(raw)
    if kind not in (CHUNK, "chat.completion"):
        return UnknownEvent(raw)
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return AssistantChunk(raw) if kind == CHUNK else AssistantMessage(raw)
    if isinstance(metadata.get("turn"), dict):
        return ResultMessage(raw)
    if "protocol_version" in metadata:
        return SessionStarted(raw)
    if isinstance(metadata.get("error"), dict):
        return ErrorMessage(raw)
    return AssistantChunk(raw) if kind == CHUNK else AssistantMessage(raw)


def parse_stream(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a recorded stream, with `ResultMessage.text` filled in from the chunks before it."""
    reader = TurnReader()
    for line in lines:
        stripped = line.strip()
        if stripped:
            event = parse_line(stripped)
            reader.read(event)
            yield event


class TurnReader:
    """Remembers the last message, so that the result of a turn has its text in both output formats and on every path."""

    __slots__ = ("_pieces", "_starts")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._starts = False

    def read(self, event: Event) -> None:
        """Takes one event in its order."""
        kind = type(event)
        if kind is AssistantChunk:
            try:
                delta = event.raw["choices"][0]["delta"]
                if "content" in delta:
                    if self._starts:
                        self._pieces.clear()
                        self._starts = False
                    self._pieces.append(delta["content"])
                elif "role" in delta:
                    # A message without text, such as one that was cancelled, does not replace the last words.
                    self._starts = True
            except (LookupError, TypeError):
                return
        elif kind is AssistantMessage:
            assert isinstance(event, AssistantMessage)
            if event.text:
                self._pieces = [event.text]
        elif kind is ResultMessage:
            assert isinstance(event, ResultMessage)
            if not event.text:
                pieces = [piece for piece in self._pieces if isinstance(piece, str)]
                event.accumulated_text = "".join(pieces)
            self._pieces.clear()
            self._starts = False


class ToolCallReader:
    """Joins the pieces of tool calls in a stream of chunks."""

    def __init__(self) -> None:
        self._calls: dict[int, list[str]] = {}

    def read(self, chunk: AssistantChunk) -> list[ToolCall]:
        """Takes one chunk; returns the calls of the message once its last chunk is there."""
        if chunk.starts_message:
            self._calls.clear()
        for delta in chunk.tool_call_deltas:
            call = self._calls.setdefault(as_count(delta.get("index")), ["", "", ""])
            function = as_object(delta.get("function"))
            call[0] += as_text(delta.get("id"))
            call[1] += as_text(function.get("name"))
            call[2] += as_text(function.get("arguments"))
        if chunk.finish_reason is None:
            return []
        calls = [ToolCall.build(*self._calls[index]) for index in sorted(self._calls)]
        self._calls.clear()
        return calls
