"""What all events have in common, and the values in them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from pydantic import BaseModel

JsonObject = dict[str, Any]

CHUNK = "chat.completion.chunk"


def as_object(value: object) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_optional_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def as_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def as_list(value: object) -> list[Any]:
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
        fields = as_object(raw)
        prompt = as_object(fields.get("prompt_tokens_details"))
        completion = as_object(fields.get("completion_tokens_details"))
        cost = fields.get("cost_usd")
        return cls(
            prompt_tokens=as_count(fields.get("prompt_tokens")),
            completion_tokens=as_count(fields.get("completion_tokens")),
            total_tokens=as_count(fields.get("total_tokens")),
            cached_tokens=as_count(fields.get("cached_tokens") or prompt.get("cached_tokens")),
            reasoning_tokens=as_count(fields.get("reasoning_tokens") or completion.get("reasoning_tokens")),
            calls=as_count(fields.get("calls")),
            cost_usd=float(cost) if isinstance(cost, (int, float)) else None,
            estimated=fields.get("estimated") is True,
        )


@dataclass(frozen=True)
class AgentUsage(Usage):
    """What the runs of one sub-agent spent in a turn, without the sub-agents that it started; `calls` are its model calls."""

    runs: int = 0
    tool_calls: int = 0

    @classmethod
    def from_raw(cls, raw: object) -> AgentUsage:
        """Reads an entry of `usage_by_agent`."""
        fields = as_object(raw)
        spent = Usage.from_raw({**fields, "calls": fields.get("model_calls")})
        return cls(**spent.__dict__, runs=as_count(fields.get("runs")), tool_calls=as_count(fields.get("tool_calls")))


@dataclass(frozen=True)
class ToolCall:
    """A call that the model requests. `arguments` is empty if `raw_arguments` is not a JSON object."""

    id: str
    name: str
    arguments: JsonObject
    raw_arguments: str = ""

    @classmethod
    def from_raw(cls, raw: object) -> ToolCall:
        """Reads an entry of `tool_calls`."""
        fields = as_object(raw)
        function = as_object(fields.get("function"))
        return cls.build(as_text(fields.get("id")), as_text(function.get("name")), as_text(function.get("arguments")))

    def to_raw(self) -> JsonObject:
        """The call as an entry of `tool_calls`."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.raw_arguments}}

    @classmethod
    def build(cls, id: str, name: str, raw_arguments: str) -> ToolCall:
        """Makes a call from the text of its arguments."""
        try:
            arguments = as_object(json.loads(raw_arguments)) if raw_arguments else {}
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
        return as_text(self.raw.get("type")) or as_text(self.raw.get("object"))

    @property
    def session_id(self) -> str | None:
        """The session that the line belongs to."""
        return as_optional_text(self.raw.get("session_id"))

    @property
    def prompt_id(self) -> str | None:
        """The turn that the line belongs to; None outside of one."""
        return as_optional_text(self.raw.get("prompt_id"))

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

        from .. import wire

        kind = cast("type[BaseModel]", getattr(wire, self.model_name))
        try:
            return kind.model_validate(self.raw)
        except ValidationError:
            return None

    def __repr__(self) -> str:
        text = json.dumps(self.raw, ensure_ascii=False, default=str)
        return f"{type(self).__name__}({text if len(text) <= 200 else text[:200] + '…'})"
