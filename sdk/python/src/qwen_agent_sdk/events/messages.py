"""The handshake, what the model says, and how a turn ends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ..errors import StructuredOutputError
from .base import (
    CHUNK,
    AgentUsage,
    Event,
    JsonObject,
    PermissionDenial,
    ToolCall,
    Usage,
    as_count,
    as_list,
    as_object,
    as_optional_text,
    as_text,
)


class _AnyFormat(Event):
    """A line that both output formats write, each as its own object."""

    @property
    def model_name(self) -> str:  # type: ignore[override]
        """The pydantic model, by the output format."""
        return "ChatCompletionChunk" if self.raw.get("object") == CHUNK else "ChatCompletion"


class _ModelOutput(Event):
    """A message of the model, or a piece of one."""

    @property
    def finish_reason(self) -> str | None:
        """`stop`, `tool_calls`, `length`, `content_filter` or `error`; of a streamed message, only its last chunk has it."""
        choices = as_list(self.raw.get("choices"))
        return as_optional_text(as_object(choices[0]).get("finish_reason")) if choices else None

    @property
    def usage(self) -> Usage | None:
        """Tokens of the message, where they are known; of a streamed message, only its last chunk has them."""
        raw = self.raw.get("usage")
        return Usage.from_raw(raw) if isinstance(raw, dict) else None


class _WorkerError(Event):
    """A line that reports an error of the worker."""

    @property
    def error(self) -> JsonObject:
        """`message`, `type`, `param` and `code`."""
        return as_object(self._error_owner().get("error"))

    def _error_owner(self) -> JsonObject:
        return self.raw

    @property
    def message(self) -> str:
        """What went wrong, in words."""
        return as_text(self.error.get("message"))

    @property
    def code(self) -> str:
        """A stable word for it."""
        return as_text(self.error.get("code"))


class SessionStarted(_AnyFormat):
    """The handshake: the first line of a worker or hub."""

    @property
    def metadata(self) -> JsonObject:
        """All that the worker says about itself."""
        return as_object(self.raw.get("metadata"))

    @property
    def protocol_version(self) -> str:
        """The protocol version, such as `1.0`."""
        return as_text(self.metadata.get("protocol_version"))

    @property
    def capabilities(self) -> frozenset[str]:
        """What the worker can do, by name."""
        return frozenset(word for word in as_list(self.metadata.get("capabilities")) if isinstance(word, str))

    @property
    def worker_version(self) -> str:
        """The name and version of the program."""
        return as_text(self.raw.get("system_fingerprint"))

    @property
    def model_used(self) -> str:
        """The model that the session starts with."""
        return as_text(self.raw.get("model"))


class AssistantMessage(_ModelOutput):
    """A whole message of the model."""

    model_name = "ChatCompletion"

    @property
    def message(self) -> JsonObject:
        """The message as OpenAI spells it."""
        choices = as_list(self.raw.get("choices"))
        return as_object(as_object(choices[0]).get("message")) if choices else {}

    @property
    def text(self) -> str:
        """What the model said; empty where it only called tools."""
        return as_text(self.message.get("content"))

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tools that it wants to call."""
        return [ToolCall.from_raw(call) for call in as_list(self.message.get("tool_calls"))]

    @property
    def model_used(self) -> str:
        """The model that wrote it."""
        return as_text(self.raw.get("model"))


class AssistantChunk(_ModelOutput):
    """A piece of a message, with `include_partial_messages`."""

    model_name = "ChatCompletionChunk"

    @property
    def delta(self) -> JsonObject:
        """What is new, as OpenAI spells it."""
        choices = self.raw.get("choices")
        return as_object(as_object(choices[0]).get("delta")) if isinstance(choices, list) and choices else {}

    @property
    def text(self) -> str:
        """The new piece of text; empty where the chunk carries something else."""
        try:
            content = self.raw["choices"][0]["delta"]["content"]
        except (LookupError, TypeError):
            return ""
        return content if type(content) is str else ""

    @property
    def starts_message(self) -> bool:
        """True for the first chunk of a message."""
        return "role" in self.delta

    @property
    def tool_call_deltas(self) -> list[JsonObject]:
        """Pieces of tool calls, each with its `index`."""
        return [as_object(item) for item in as_list(self.delta.get("tool_calls"))]


class ResultMessage(_AnyFormat):
    """The end of a turn, on every path: the answer, what was spent, and the cause where it did not end well."""

    accumulated_text: str | None = None
    output_type: Any = None

    @property
    def turn(self) -> JsonObject:
        """`metadata.turn` as it is."""
        return as_object(as_object(self.raw.get("metadata")).get("turn"))

    @property
    def text(self) -> str:
        """The last message of the model: the answer."""
        if self.accumulated_text is not None:
            return self.accumulated_text
        choices = as_list(self.raw.get("choices"))
        return as_text(as_object(as_object(choices[0]).get("message")).get("content")) if choices else ""

    @property
    def summary(self) -> str:
        """The answer; where there is none, what went wrong."""
        return self.text or self.error_message

    @property
    def status(self) -> str:
        """`done`, `error`, `cancelled`, `interrupted`, or the limit that ended the turn, such as `max_turns`."""
        return as_text(self.turn.get("status"))

    @property
    def outcome(self) -> str:
        """The status, but `denied` where the turn was done and something was refused in it."""
        return "denied" if self.status == "done" and self.permission_denials else self.status

    @property
    def is_error(self) -> bool:
        """True unless the turn was done."""
        return self.status != "done"

    @property
    def done(self) -> bool:
        """True if the turn completed, whether or not calls were refused in it."""
        return self.status == "done"

    @property
    def ok(self) -> bool:
        """True if the turn completed and nothing was refused."""
        return self.outcome == "done"

    @property
    def error(self) -> JsonObject | None:
        """`message`, `type`, `param` and `code` of what went wrong."""
        raw = as_object(self.raw.get("metadata")).get("error")
        return as_object(raw) if isinstance(raw, dict) else None

    @property
    def error_message(self) -> str:
        """What went wrong, in words; empty if nothing did."""
        return as_text((self.error or {}).get("message"))

    @property
    def error_code(self) -> str:
        """A stable word for what went wrong."""
        return as_text((self.error or {}).get("code"))

    @property
    def usage(self) -> Usage:
        """Tokens of the whole turn, sub-agents included."""
        spent = Usage.from_raw(self.raw.get("usage"))
        return Usage(**{**spent.__dict__, "calls": self.model_calls, "cost_usd": self.cost_usd})

    @property
    def usage_by_model(self) -> Mapping[str, Usage]:
        """Tokens of the turn by model."""
        return {name: Usage.from_raw(raw) for name, raw in as_object(self.turn.get("usage_by_model")).items()}

    @property
    def usage_by_agent(self) -> Mapping[str, AgentUsage]:
        """The part of the turn that sub-agents spent, by name."""
        return {name: AgentUsage.from_raw(raw) for name, raw in as_object(self.turn.get("usage_by_agent")).items()}

    @property
    def cost_usd(self) -> float | None:
        """The price of the turn, where the prices of its models are known (the setting `model.prices`)."""
        costs = [spent.cost_usd for spent in self.usage_by_model.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None

    @property
    def duration_ms(self) -> int:
        """From the turn's start to its end."""
        return as_count(self.turn.get("duration_ms"))

    @property
    def model_calls(self) -> int:
        """Model calls made."""
        return as_count(self.turn.get("model_calls"))

    @property
    def tool_call_count(self) -> int:
        """Tool calls made."""
        return as_count(self.turn.get("tool_calls"))

    @property
    def permission_denials(self) -> list[PermissionDenial]:
        """Calls that were refused: by a rule, by a callback, or because no one answered."""
        denials = [as_object(item) for item in as_list(self.turn.get("permission_denials"))]
        return [
            PermissionDenial(
                as_text(denial.get("tool_name")),
                as_text(denial.get("tool_call_id")),
                denial.get("arguments"),
                as_text(denial.get("reason")),
            )
            for denial in denials
        ]

    @property
    def control_errors(self) -> list[JsonObject]:
        """Questions to callbacks that went wrong: exceptions, time-outs, malformed answers."""
        return [as_object(item) for item in as_list(self.turn.get("control_errors"))]

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


class ErrorMessage(_WorkerError):
    """A recoverable error: the worker refused one line and continues."""

    def _error_owner(self) -> JsonObject:
        return as_object(self.raw.get("metadata"))


class FatalErrorMessage(_WorkerError):
    """An error after which the worker ends."""

    model_name = "FatalError"
