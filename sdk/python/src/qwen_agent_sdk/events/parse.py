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
    """Assembles the messages of a turn: from chunks, and the final answer from the terminal record.

    A result has its text in both output formats and on every path.
    """

    __slots__ = ("_calls", "_pieces", "_starts")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._calls = ToolCallReader()
        self._starts = False

    def read(self, event: Event) -> AssistantMessage | None:
        """Reads the next event. Returns a message that the event completes: the host receives it after a chunk, before a result."""
        kind = type(event)
        if kind is AssistantChunk:
            try:
                choice = event.raw["choices"][0]
                delta = choice["delta"]
                if "content" in delta:
                    if self._starts:
                        self._pieces.clear()
                        self._starts = False
                    self._pieces.append(delta["content"])
                elif "role" in delta:
                    # A message without text, such as a cancelled one, does not replace the previous text.
                    self._starts = True
            except (LookupError, TypeError):
                return None
            assert isinstance(event, AssistantChunk)
            calls = self._calls.read(event) if "tool_calls" in delta or choice.get("finish_reason") else []
            return self._assemble(event, calls) if choice.get("finish_reason") else None
        if kind is AssistantMessage:
            assert isinstance(event, AssistantMessage)
            if event.text:
                self._pieces = [event.text]
        elif kind is ResultMessage:
            assert isinstance(event, ResultMessage)
            return self._finish(event)
        return None

    def _text(self) -> str:
        return "".join([piece for piece in self._pieces if isinstance(piece, str)])

    def _assemble(self, last: Event, calls: list[ToolCall]) -> AssistantMessage | None:
        message: JsonObject = {"role": "assistant"}
        if not self._starts and self._pieces:
            message["content"] = self._text()
        if calls:
            message["tool_calls"] = [call.to_raw() for call in calls]
        # The text stays until the next message begins: it is the turn's answer if no other text follows.
        self._starts = True
        return _message_of(last, message)

    def _finish(self, result: ResultMessage) -> AssistantMessage | None:
        answer = None
        if result.raw.get("object") == CHUNK:
            if not self._starts and self._pieces:
                answer = self._assemble(result, [])
        elif result.text:
            answer = _message_of(result, {"role": "assistant", "content": result.text})
        if not result.text:
            result.accumulated_text = self._text()
        self._pieces = []
        self._starts = False
        return answer


def _message_of(last: Event, message: JsonObject) -> AssistantMessage | None:
    """A whole message in place of a line that completes one."""
    if len(message) == 1:
        return None
    choices = last.raw.get("choices")
    choice = as_object(choices[0]) if isinstance(choices, list) and choices else {}
    raw = {key: value for key, value in last.raw.items() if key not in ("metadata", "usage", "seq")}
    # The usage of a terminal record is that of the whole turn.
    if "usage" in last.raw and not isinstance(last, ResultMessage):
        raw["usage"] = last.raw["usage"]
    reason = choice.get("finish_reason")
    raw.update(object="chat.completion", choices=[{"index": 0, "message": message, "finish_reason": reason}])
    return AssistantMessage(raw)


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
