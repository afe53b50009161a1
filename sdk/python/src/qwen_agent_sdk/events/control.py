"""The control channel: questions between the worker and the host, outside the conversation."""

from __future__ import annotations

from .base import Event, JsonObject, as_object, as_text


class ControlRequest(Event):
    """The worker asks its host something. The SDK answers; programs do not see these."""

    model_name = "ControlRequestLine"

    @property
    def request_id(self) -> str:
        """Pairs the question with its answer."""
        return as_text(self.raw.get("request_id"))

    @property
    def subtype(self) -> str:
        """`can_use_tool`, `hook_callback` or `mcp_message`."""
        return as_text(self.raw.get("subtype"))


class ControlResponse(Event):
    """The worker answers a request of the SDK."""

    @property
    def model_name(self) -> str:  # type: ignore[override]
        """The pydantic model: flat, or nested for those who asked so."""
        return "ControlResponseLine" if "request_id" in self.raw else "NestedResponseLine"

    @property
    def request_id(self) -> str:
        """The request that is answered."""
        return as_text(self.raw.get("request_id") or as_object(self.raw.get("response")).get("request_id"))

    @property
    def response(self) -> JsonObject:
        """`subtype`, with `result` or `error`."""
        return as_object(self.raw.get("response"))


class ControlCancel(Event):
    """The worker takes a question back."""

    model_name = "ControlCancelLine"

    @property
    def request_id(self) -> str:
        """The question."""
        return as_text(self.raw.get("request_id"))
