"""Logs, traces and metrics."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from conftest import Options, call, write

from qwen_agent_sdk import AsyncClient, ResultMessage, create_sdk_mcp_server, query, tool

pytestmark = pytest.mark.anyio


async def test_logs_are_json_objects_of_the_standard_library(
    options: Options, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "qwen_agent_sdk")
    async with AsyncClient(options([write()], "Fine.")) as client:
        await client.ask("Go")
        session_id = client.session_id
    records = [json.loads(record.getMessage()) for record in caplog.records if record.name == "qwen_agent_sdk"]
    assert [record["event"] for record in records] == ["session_open", "prompt", "turn_end", "session_closed"]
    assert {record["session_id"] for record in records} == {session_id}
    end = records[2]
    assert (end["status"], end["denials"], end["level"]) == ("done", 1, "info")


async def test_a_structlog_logger_gets_events_with_fields(options: Options) -> None:
    import structlog

    capture = structlog.testing.LogCapture()
    logger = structlog.wrap_logger(structlog.PrintLogger(), processors=[capture])
    async for _ in query("Go", options=options("Hi.", logger=logger)):
        pass
    assert [entry["event"] for entry in capture.entries] == ["session_open", "prompt", "turn_end", "session_closed"]
    assert all(entry["session_id"] for entry in capture.entries)


async def test_a_logger_that_raises_disturbs_nothing(options: Options) -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("no log today")

    result = [m async for m in query("Go", options=options("Hi.", logger=Broken()))][-1]
    assert isinstance(result, ResultMessage) and result.ok


async def test_prompts_and_secrets_stay_out_of_the_logs(options: Options, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "qwen_agent_sdk")
    opened = options(
        "Hi.", env={"OPENAI_API_KEY": "sk-very-secret"}, settings_profile={"user": {"env": {"A": "b-secret"}}}
    )
    async for _ in query("my private question", options=opened):
        pass
    assert "secret" not in caplog.text and "private" not in caplog.text


async def test_one_trace_goes_from_the_host_s_span_to_the_tool(
    options: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)

    @tool
    async def add(a: int, b: int) -> int:
        return a + b

    outfile = tmp_path / "worker-traces.jsonl"
    opened = options(
        [call("mcp__calc__add", a=1, b=2)],
        "Three.",
        mcp_servers={"calc": create_sdk_mcp_server("calc", tools=[add])},
        permission_mode="yolo",
        extra_args=["--telemetry", f"--telemetry-outfile={outfile}"],
    )
    with provider.get_tracer("host").start_as_current_span("handle request") as host:
        async with AsyncClient(opened) as client:
            assert (await client.ask("Add")).ok
    spans = {span.name: span for span in exporter.get_finished_spans()}
    turn, used = spans["qwen.turn"], spans["execute_tool add"]
    assert turn.parent is not None and used.parent is not None
    assert turn.parent.span_id == host.get_span_context().span_id
    trace_ids = {span.context.trace_id for span in spans.values() if span.context}
    assert trace_ids == {host.get_span_context().trace_id}
    assert turn.attributes is not None and turn.attributes["qwen.status"] == "done"
    theirs = [
        span
        for line in outfile.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert {int(span["traceId"], 16) for span in theirs} == trace_ids
    by_id = {int(span["spanId"], 16): span for span in theirs}
    worker_turn = next(span for span in theirs if span["name"].startswith("invoke_agent"))
    assert turn.context is not None
    assert int(worker_turn["parentSpanId"], 16) == turn.context.span_id, "the worker's turn is below the SDK's"
    assert by_id[used.parent.span_id]["name"].startswith("execute_tool"), "the host's tool is below the worker's call"


async def test_turns_are_counted(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import metrics
    from opentelemetry.metrics import _internal as internal
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    monkeypatch.setattr(internal, "_METER_PROVIDER", MeterProvider([reader]))
    assert metrics.get_meter_provider() is not None
    async with AsyncClient(options("Hi.", [{"break": True}])) as client:
        await client.ask("One")
        await client.ask("Two")
    data = json.loads(reader.get_metrics_data().to_json())  # type: ignore[union-attr]
    found = {
        metric["name"]: {
            point["attributes"]["status"]: point.get("value", point.get("count"))
            for point in metric["data"]["data_points"]
        }
        for resource in data["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    }
    assert found["qwen.sdk.turns"]["done"] == 1 and len(found["qwen.sdk.turns"]) == 2
    assert found["qwen.sdk.turn.duration"]["done"] == 1
