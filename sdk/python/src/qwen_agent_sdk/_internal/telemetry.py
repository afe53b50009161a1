"""OpenTelemetry, where the host uses it.

Nothing is imported for it: spans go to a provider that the host configured, and a host that did so has loaded the API package.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

__all__ = ["Telemetry", "TurnSpan"]

_SCOPE = "qwen_agent_sdk"


class TurnSpan:
    """The span of one turn; a no-op without tracing."""

    def __init__(self, span: Any, telemetry: Telemetry, attributes: Mapping[str, Any]) -> None:
        self._span = span
        self._telemetry = telemetry
        self._attributes = attributes
        self._started = time.monotonic()
        self.carrier: dict[str, str] = {}

    def end(self, status: str, *, error: str = "", **attributes: Any) -> None:
        """Ends the span with the turn's status."""
        seconds = time.monotonic() - self._started
        self._telemetry.count_turn(status, seconds)
        if self._span is None:
            return
        from opentelemetry.trace import Status, StatusCode

        for name, value in attributes.items():
            self._span.set_attribute(name.replace("__", "."), value)
        self._span.set_attribute("qwen.status", status)
        if status != "done":
            self._span.set_attribute("error.type", error or status)
            self._span.set_status(Status(StatusCode.ERROR, error or status))
        self._span.end()


class Telemetry:
    """Spans and metrics of one session."""

    def __init__(self) -> None:
        self._instruments: dict[str, Any] | None = None

    @staticmethod
    def is_active() -> bool:
        """True if the host uses OpenTelemetry."""
        return "opentelemetry.trace" in sys.modules or "OTEL_PYTHON_TRACER_PROVIDER" in os.environ

    def start_turn(self, session_id: str, prompt_id: str) -> TurnSpan:
        """Begins the span of a turn below the caller's span."""
        if not self.is_active():
            return TurnSpan(None, self, {})
        from opentelemetry import propagate, trace

        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": session_id,
            "qwen.prompt_id": prompt_id,
        }
        span = trace.get_tracer(_SCOPE).start_span("qwen.turn", kind=trace.SpanKind.CLIENT, attributes=attributes)
        turn = TurnSpan(span, self, attributes)
        propagate.inject(turn.carrier, trace.set_span_in_context(span))
        return turn

    async def tool_span(
        self, name: str, meta: Mapping[str, Any], work: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Runs an in-process tool in a span below the worker's span of the call."""
        if not self.is_active():
            return await work()
        from opentelemetry import propagate, trace
        from opentelemetry.trace import Status, StatusCode

        context = propagate.extract({key: value for key, value in meta.items() if isinstance(value, str)})
        with trace.get_tracer(_SCOPE).start_as_current_span(
            f"execute_tool {name}", context=context, attributes={"gen_ai.tool.name": name}
        ) as span:
            result = await work()
            if result.get("isError"):
                span.set_status(Status(StatusCode.ERROR))
            return result

    def _meters(self) -> dict[str, Any] | None:
        if "opentelemetry.metrics" not in sys.modules:
            return None
        if self._instruments is None:
            from opentelemetry import metrics

            meter = metrics.get_meter(_SCOPE)
            self._instruments = {
                "turns": meter.create_counter("qwen.sdk.turns", description="Turns by status"),
                "duration": meter.create_histogram("qwen.sdk.turn.duration", unit="s"),
                "crashes": meter.create_counter("qwen.sdk.worker.crashes"),
                "errors": meter.create_counter("qwen.sdk.transport.errors"),
            }
        return self._instruments

    def count_turn(self, status: str, seconds: float) -> None:
        """Counts a turn."""
        if meters := self._meters():
            meters["turns"].add(1, {"status": status})
            meters["duration"].record(seconds, {"status": status})

    def count(self, name: str) -> None:
        """Counts a crash or a transport error."""
        if meters := self._meters():
            meters[name].add(1)
