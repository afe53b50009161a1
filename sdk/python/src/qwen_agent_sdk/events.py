"""What a worker says, line by line.

An event is a thin view of one line: `raw` is the line as a dict with every field, also those that this version does not know, and
properties read from it. Parsing never raises. `model()` gives the pydantic model of the line, generated from the JSON Schemas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .errors import StructuredOutputError

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = [
    "AssistantChunk",
    "AssistantMessage",
    "CancelResult",
    "CommandHint",
    "CommandResult",
    "ControlCancel",
    "ControlRequest",
    "ControlResponse",
    "ErrorMessage",
    "Event",
    "FatalErrorMessage",
    "Heartbeat",
    "MalformedLine",
    "Message",
    "PermissionDenial",
    "ResultMessage",
    "SessionEvent",
    "SessionStarted",
    "TerminalOutput",
    "Thought",
    "ToolCall",
    "ToolDisplay",
    "UnknownEvent",
    "Usage",
    "WorkerRestarted",
    "parse_line",
    "parse_stream",
]

JsonObject = dict[str, Any]

_scan: Callable[[str, int], tuple[Any, int]] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009
_CHUNK = "chat.completion.chunk"


def _object(value: object) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class Usage:
    """Tokens of a message or of a whole turn; `cost_usd` where the prices are known."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    calls: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    @classmethod
    def from_raw(cls, raw: object) -> Usage:
        """Reads `usage` of a line, or an entry of `usage_by_model`."""
        fields = _object(raw)
        prompt = _object(fields.get("prompt_tokens_details"))
        completion = _object(fields.get("completion_tokens_details"))
        cost = fields.get("cost_usd")
        return cls(
            prompt_tokens=_count(fields.get("prompt_tokens")),
            completion_tokens=_count(fields.get("completion_tokens")),
            total_tokens=_count(fields.get("total_tokens")),
            cached_tokens=_count(fields.get("cached_tokens") or prompt.get("cached_tokens")),
            reasoning_tokens=_count(fields.get("reasoning_tokens") or completion.get("reasoning_tokens")),
            calls=_count(fields.get("calls")),
            cost_usd=float(cost) if isinstance(cost, (int, float)) else None,
            estimated=fields.get("estimated") is True,
        )


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for. `arguments` is empty where `raw_arguments` is no JSON object."""

    id: str
    name: str
    arguments: JsonObject
    raw_arguments: str = ""

    @classmethod
    def from_raw(cls, raw: object) -> ToolCall:
        """Reads an entry of `tool_calls`."""
        fields = _object(raw)
        function = _object(fields.get("function"))
        return cls.build(_text(fields.get("id")), _text(function.get("name")), _text(function.get("arguments")))

    @classmethod
    def build(cls, id: str, name: str, raw_arguments: str) -> ToolCall:
        """Makes a call from the text of its arguments."""
        try:
            arguments = _object(json.loads(raw_arguments)) if raw_arguments else {}
        except (ValueError, RecursionError):
            arguments = {}
        return cls(id, name, arguments, raw_arguments)


@dataclass(frozen=True)
class PermissionDenial:
    """A call that was refused, and why."""

    tool_name: str
    tool_call_id: str
    arguments: Any
    reason: str


class Event:
    """One line of a worker."""

    model_name: ClassVar[str] = ""
    """The name of the pydantic model in `qwen_agent_sdk.wire`; empty where there is none."""

    __slots__ = ("__dict__", "raw")

    def __init__(self, raw: JsonObject) -> None:
        self.raw = raw

    @property
    def type(self) -> str:
        """The line's `type`, or its `object`."""
        return _text(self.raw.get("type")) or _text(self.raw.get("object"))

    @property
    def session_id(self) -> str | None:
        """The session that the line belongs to."""
        return _optional_text(self.raw.get("session_id"))

    @property
    def prompt_id(self) -> str | None:
        """The turn that the line belongs to; None outside of one."""
        return _optional_text(self.raw.get("prompt_id"))

    @property
    def seq(self) -> int | None:
        """The number of the line in its session, where a hub counts them."""
        value = self.raw.get("seq")
        return value if isinstance(value, int) else None

    def model(self) -> BaseModel | None:
        """The line as a pydantic model, with unknown fields kept; None if it does not fit or is of an unknown type."""
        if not self.model_name:
            return None
        from pydantic import ValidationError

        from . import wire

        kind = cast("type[BaseModel]", getattr(wire, self.model_name))
        try:
            return kind.model_validate(self.raw)
        except ValidationError:
            return None

    def __repr__(self) -> str:
        text = json.dumps(self.raw, ensure_ascii=False, default=str)
        return f"{type(self).__name__}({text if len(text) <= 200 else text[:200] + '…'})"


class SessionStarted(Event):
    """The handshake: the first line of a worker or hub."""

    @property
    def model_name(self) -> str:  # type: ignore[override]
        """The pydantic model, by the output format."""
        return "ChatCompletionChunk" if self.raw.get("object") == _CHUNK else "ChatCompletion"

    @property
    def metadata(self) -> JsonObject:
        """All that the worker says about itself."""
        return _object(self.raw.get("metadata"))

    @property
    def protocol_version(self) -> str:
        """The protocol version, such as `1.0`."""
        return _text(self.metadata.get("protocol_version"))

    @property
    def capabilities(self) -> frozenset[str]:
        """What the worker can do, by name."""
        return frozenset(word for word in _list(self.metadata.get("capabilities")) if isinstance(word, str))

    @property
    def worker_version(self) -> str:
        """The name and version of the program."""
        return _text(self.raw.get("system_fingerprint"))

    @property
    def model_used(self) -> str:
        """The model that the session starts with."""
        return _text(self.raw.get("model"))


class AssistantMessage(Event):
    """A whole message of the model."""

    model_name = "ChatCompletion"

    @property
    def message(self) -> JsonObject:
        """The message as OpenAI spells it."""
        choices = _list(self.raw.get("choices"))
        return _object(_object(choices[0]).get("message")) if choices else {}

    @property
    def text(self) -> str:
        """What the model said; empty where it only called tools."""
        return _text(self.message.get("content"))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tools that it wants to call."""
        return [ToolCall.from_raw(call) for call in _list(self.message.get("tool_calls"))]

    @property
    def finish_reason(self) -> str | None:
        """`stop`, `tool_calls`, `length`, `content_filter` or `error`."""
        choices = _list(self.raw.get("choices"))
        return _optional_text(_object(choices[0]).get("finish_reason")) if choices else None

    @property
    def usage(self) -> Usage | None:
        """Tokens of this message, where they are known."""
        raw = self.raw.get("usage")
        return Usage.from_raw(raw) if isinstance(raw, dict) else None

    @property
    def model_used(self) -> str:
        """The model that wrote it."""
        return _text(self.raw.get("model"))


class AssistantChunk(Event):
    """A piece of a message, with `include_partial_messages`."""

    model_name = "ChatCompletionChunk"

    @property
    def delta(self) -> JsonObject:
        """What is new, as OpenAI spells it."""
        choices = self.raw.get("choices")
        return _object(_object(choices[0]).get("delta")) if isinstance(choices, list) and choices else {}

    @property
    def text(self) -> str:
        """The new piece of text; empty where the chunk carries something else."""
        return _text(self.delta.get("content"))

    @property
    def starts_message(self) -> bool:
        """True for the first chunk of a message."""
        return "role" in self.delta

    @property
    def tool_call_deltas(self) -> list[JsonObject]:
        """Pieces of tool calls, each with its `index`."""
        return [_object(item) for item in _list(self.delta.get("tool_calls"))]

    @property
    def finish_reason(self) -> str | None:
        """Set in the last chunk of a message."""
        choices = _list(self.raw.get("choices"))
        return _optional_text(_object(choices[0]).get("finish_reason")) if choices else None

    @property
    def usage(self) -> Usage | None:
        """Tokens of the message, in its last chunk."""
        raw = self.raw.get("usage")
        return Usage.from_raw(raw) if isinstance(raw, dict) else None


class ResultMessage(Event):
    """The end of a turn, on every path: the answer, what was spent, and the cause where it did not end well."""

    accumulated_text: str | None = None
    output_type: Any = None

    @property
    def model_name(self) -> str:  # type: ignore[override]
        """The pydantic model, by the output format."""
        return "ChatCompletionChunk" if self.raw.get("object") == _CHUNK else "ChatCompletion"

    @property
    def turn(self) -> JsonObject:
        """`metadata.turn` as it is."""
        return _object(_object(self.raw.get("metadata")).get("turn"))

    @property
    def text(self) -> str:
        """The last message of the model: the answer."""
        if self.accumulated_text is not None:
            return self.accumulated_text
        choices = _list(self.raw.get("choices"))
        return _text(_object(_object(choices[0]).get("message")).get("content")) if choices else ""

    @property
    def summary(self) -> str:
        """The answer; where there is none, what went wrong."""
        return self.text or self.error_message

    @property
    def status(self) -> str:
        """`done`, `error`, `cancelled`, `interrupted`, or the limit that ended the turn, such as `max_turns`."""
        return _text(self.turn.get("status"))

    @property
    def outcome(self) -> str:
        """The status, but `denied` where the turn was done and something was refused in it."""
        return "denied" if self.status == "done" and self.permission_denials else self.status

    @property
    def is_error(self) -> bool:
        """True unless the turn was done."""
        return self.status != "done"

    @property
    def ok(self) -> bool:
        """True if the turn was done and nothing was refused."""
        return self.outcome == "done"

    @property
    def error(self) -> JsonObject | None:
        """`message`, `type`, `param` and `code` of what went wrong."""
        raw = _object(self.raw.get("metadata")).get("error")
        return _object(raw) if isinstance(raw, dict) else None

    @property
    def error_message(self) -> str:
        """What went wrong, in words; empty if nothing did."""
        return _text((self.error or {}).get("message"))

    @property
    def error_code(self) -> str:
        """A stable word for what went wrong."""
        return _text((self.error or {}).get("code"))

    @property
    def usage(self) -> Usage:
        """Tokens of the whole turn, sub-agents included."""
        spent = Usage.from_raw(self.raw.get("usage"))
        return Usage(**{**spent.__dict__, "calls": self.model_calls, "cost_usd": self.cost_usd})

    @property
    def usage_by_model(self) -> Mapping[str, Usage]:
        """Tokens of the turn by model."""
        return {name: Usage.from_raw(raw) for name, raw in _object(self.turn.get("usage_by_model")).items()}

    @property
    def cost_usd(self) -> float | None:
        """The price of the turn, where the prices of its models are known (the setting `model.prices`)."""
        costs = [spent.cost_usd for spent in self.usage_by_model.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None

    @property
    def duration_ms(self) -> int:
        """From the turn's start to its end."""
        return _count(self.turn.get("duration_ms"))

    @property
    def model_calls(self) -> int:
        """Model calls made."""
        return _count(self.turn.get("model_calls"))

    @property
    def tool_call_count(self) -> int:
        """Tool calls made."""
        return _count(self.turn.get("tool_calls"))

    @property
    def permission_denials(self) -> list[PermissionDenial]:
        """Calls that were refused: by a rule, by a callback, or because nobody answered."""
        denials = [_object(item) for item in _list(self.turn.get("permission_denials"))]
        return [
            PermissionDenial(
                _text(denial.get("tool_name")),
                _text(denial.get("tool_call_id")),
                denial.get("arguments"),
                _text(denial.get("reason")),
            )
            for denial in denials
        ]

    @property
    def control_errors(self) -> list[JsonObject]:
        """Questions to callbacks that went wrong: exceptions, time-outs, malformed answers."""
        return [_object(item) for item in _list(self.turn.get("control_errors"))]

    @property
    def structured_output(self) -> Any:
        """The answer as plain data, where `output_schema` asked for one; None otherwise."""
        return self.turn.get("structured_output")

    @cached_property
    def output(self) -> Any:
        """The answer as an instance of `output_schema`, validated by pydantic.

        Raises `StructuredOutputError` if the turn gave none or if it does not fit.
        """
        if "structured_output" not in self.turn:
            why = self.error_message or f"the turn ended with status {self.status!r}"
            raise StructuredOutputError(f"the turn gave no structured output: {why}")
        raw = self.structured_output
        if self.output_type is None:
            return raw
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(self.output_type).validate_python(raw)
        except ValidationError as error:
            message = f"the structured output does not fit {self.output_type!r}: {error}"
            raise StructuredOutputError(message, raw=raw) from error


class ErrorMessage(Event):
    """A recoverable error: the worker refused one line and goes on."""

    @property
    def error(self) -> JsonObject:
        """`message`, `type`, `param` and `code`."""
        return _object(_object(self.raw.get("metadata")).get("error"))

    @property
    def message(self) -> str:
        """What went wrong, in words."""
        return _text(self.error.get("message"))

    @property
    def code(self) -> str:
        """A stable word for it."""
        return _text(self.error.get("code"))


class FatalErrorMessage(Event):
    """An error after which the worker ends."""

    model_name = "FatalError"

    @property
    def error(self) -> JsonObject:
        """`message`, `type`, `param` and `code`."""
        return _object(self.raw.get("error"))

    @property
    def message(self) -> str:
        """What went wrong, in words."""
        return _text(self.error.get("message"))

    @property
    def code(self) -> str:
        """A stable word for it."""
        return _text(self.error.get("code"))


class ToolDisplay(Event):
    """A tool passes through its states; `result_display` is what people are shown of its work."""

    model_name = "ToolDisplayRecord"

    @property
    def tool_call_id(self) -> str:
        """The call."""
        return _text(self.raw.get("tool_call_id"))

    @property
    def tool_name(self) -> str:
        """The tool."""
        return _text(self.raw.get("tool_name"))

    @property
    def status(self) -> str:
        """`pending`, `confirming`, `executing`, `success`, `error` or `canceled`."""
        return _text(self.raw.get("status"))

    @property
    def result_display(self) -> JsonObject | None:
        """A `string`, `file_diff`, `todo_list`, `plan_summary` or `task_execution`, by `kind`."""
        raw = self.raw.get("result_display")
        return _object(raw) if isinstance(raw, dict) else None

    @property
    def confirmation(self) -> JsonObject | None:
        """What somebody is asked to agree to."""
        raw = self.raw.get("confirmation")
        return _object(raw) if isinstance(raw, dict) else None


class TerminalOutput(Event):
    """Output of a tool or a console log, with its escapes taken apart."""

    model_name = "TerminalRecord"

    @property
    def text(self) -> str:
        """The text without escapes."""
        return _text(self.raw.get("text"))

    @property
    def channel(self) -> str:
        """`stdout` or `stderr`."""
        return _text(self.raw.get("channel"))

    @property
    def source(self) -> str:
        """`assistant`, `tool`, `console` or `system`."""
        return _text(self.raw.get("source"))

    @property
    def exit_code(self) -> int | None:
        """At the end of a run."""
        value = self.raw.get("exit_code")
        return value if isinstance(value, int) else None


class Thought(Event):
    """The model thinks."""

    model_name = "ThoughtRecord"

    @property
    def subject(self) -> str:
        """The headline."""
        return _text(self.raw.get("subject"))

    @property
    def description(self) -> str:
        """The rest."""
        return _text(self.raw.get("description"))


class SessionEvent(Event):
    """A notice about the session, such as `Finished`, `ChatCompressed`, `ModeChanged`, `Retry` or `Steered`."""

    model_name = "SessionEventRecord"

    @property
    def event(self) -> str:
        """The notice's name."""
        return _text(self.raw.get("event"))

    @property
    def message(self) -> str:
        """The notice in words."""
        return _text(self.raw.get("message"))

    @property
    def metrics(self) -> JsonObject:
        """Numbers that go with it."""
        return _object(self.raw.get("metrics"))


class CommandResult(Event):
    """What came of a slash command."""

    model_name = "CommandLine"

    @property
    def result(self) -> JsonObject:
        """`type` is `message`, `dialog`, `tool` or `submit_prompt`."""
        return _object(self.raw.get("result"))

    @property
    def text(self) -> str:
        """The words of a message."""
        return _text(self.result.get("content"))

    @property
    def is_error(self) -> bool:
        """True for a command that failed or does not exist."""
        return self.result.get("level") == "error"

    @property
    def submits_prompt(self) -> bool:
        """True if a turn follows."""
        return self.result.get("type") == "submit_prompt"


class CommandHint(Event):
    """Suggestions for what is being typed."""

    model_name = "HintLine"

    @property
    def suggestions(self) -> list[JsonObject]:
        """`label`, `value` and `description` of each."""
        return [_object(item) for item in _list(self.raw.get("suggestions"))]


class Heartbeat(Event):
    """The worker lives."""

    model_name = "HeartbeatLine"


class CancelResult(Event):
    """What came of a cancel request: `ok` or `noop`."""

    model_name = "CancelLine"

    @property
    def status(self) -> str:
        """`ok`, or `noop` where nothing ran."""
        return _text(self.raw.get("status"))


class ControlRequest(Event):
    """The worker asks its host something. The SDK answers; programs do not see these."""

    model_name = "ControlRequestLine"

    @property
    def request_id(self) -> str:
        """Pairs the question with its answer."""
        return _text(self.raw.get("request_id"))

    @property
    def subtype(self) -> str:
        """`can_use_tool`, `hook_callback` or `mcp_message`."""
        return _text(self.raw.get("subtype"))


class ControlResponse(Event):
    """The worker answers a request of the SDK."""

    @property
    def model_name(self) -> str:  # type: ignore[override]
        """The pydantic model: flat, or nested for those who asked so."""
        return "ControlResponseLine" if "request_id" in self.raw else "NestedResponseLine"

    @property
    def request_id(self) -> str:
        """The request that is answered."""
        return _text(self.raw.get("request_id") or _object(self.raw.get("response")).get("request_id"))

    @property
    def response(self) -> JsonObject:
        """`subtype`, with `result` or `error`."""
        return _object(self.raw.get("response"))


class ControlCancel(Event):
    """The worker takes a question back."""

    model_name = "ControlCancelLine"

    @property
    def request_id(self) -> str:
        """The question."""
        return _text(self.raw.get("request_id"))


class WorkerRestarted(Event):
    """The SDK started the worker again after a crash; said by the SDK itself, not by the worker."""

    @property
    def reason(self) -> str:
        """How the previous worker ended."""
        return _text(self.raw.get("reason"))

    @property
    def recovery(self) -> str:
        """`resume`, `retry` or `fork`."""
        return _text(self.raw.get("recovery"))

    @property
    def attempt(self) -> int:
        """Counts the restarts of this session, from 1."""
        return _count(self.raw.get("attempt"))


class UnknownEvent(Event):
    """A line of a type that this version does not know; `raw` has its data."""


class MalformedLine(UnknownEvent):
    """A line that is no JSON object; `line` is its text, cut after 4096 characters."""

    def __init__(self, line: str, problem: str) -> None:
        super().__init__({"type": "malformed_line", "line": line[:4096], "problem": problem})
        self.line = line[:4096]
        self.problem = problem


Message = Event
"""What `query()` yields."""

_BY_TYPE: dict[str, type[Event]] = {
    "x-qwen-tool-display": ToolDisplay,
    "x-qwen-terminal": TerminalOutput,
    "x-qwen-thought": Thought,
    "x-qwen-session-event": SessionEvent,
    "result/command": CommandResult,
    "result/command_hint": CommandHint,
    "result/heartbeat": Heartbeat,
    "result/cancel": CancelResult,
    "control_request": ControlRequest,
    "control_response": ControlResponse,
    "control_cancel_request": ControlCancel,
}


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
    if kind is None:
        if "error" in raw and "type" not in raw:
            return FatalErrorMessage(raw)
        kind = raw.get("type")
        return _BY_TYPE.get(kind, UnknownEvent)(raw) if isinstance(kind, str) else UnknownEvent(raw)
    if kind not in (_CHUNK, "chat.completion"):
        return UnknownEvent(raw)
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return AssistantChunk(raw) if kind == _CHUNK else AssistantMessage(raw)
    if isinstance(metadata.get("turn"), dict):
        return ResultMessage(raw)
    if "protocol_version" in metadata:
        return SessionStarted(raw)
    if isinstance(metadata.get("error"), dict):
        return ErrorMessage(raw)
    return AssistantChunk(raw) if kind == _CHUNK else AssistantMessage(raw)


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
            call = self._calls.setdefault(_count(delta.get("index")), ["", "", ""])
            function = _object(delta.get("function"))
            call[0] += _text(delta.get("id"))
            call[1] += _text(function.get("name"))
            call[2] += _text(function.get("arguments"))
        if chunk.finish_reason is None:
            return []
        calls = [ToolCall.build(*self._calls[index]) for index in sorted(self._calls)]
        self._calls.clear()
        return calls
