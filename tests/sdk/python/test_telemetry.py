"""Traces that go on from the program of an SDK's user into ours, read with OpenTelemetry's own packages."""

import base64
import json
from pathlib import Path

import claude
import pytest
from google.protobuf import json_format
from mock_model import call, say
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider

pytestmark = pytest.mark.anyio


def spans(path: Path) -> dict[str, Span]:
    """The spans that were written, by name, as the official definitions have them."""
    found: dict[str, Span] = {}
    for line in path.read_text().splitlines():
        document = json.loads(line)
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    # OTLP has ids in hexadecimal where the JSON of protobuf has base64.
                    for key in {"traceId", "spanId", "parentSpanId"} & span.keys():
                        span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        request = json_format.ParseDict(document, ExportTraceServiceRequest())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                found |= {span.name: span for span in scope.spans}
    return found


def attributes(span: Span) -> dict[str, object]:
    """What a span says."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


async def test_a_span_of_the_host_is_the_parent_of_our_turn(model, place) -> None:
    model(say(call("list_directory", {"path": "."})), say("Done."))
    path = place.work / "traces.jsonl"
    tracer = TracerProvider().get_tracer("host")
    with tracer.start_as_current_span("host") as span:
        messages = await claude.run(
            "Look around", extra_args={"telemetry": None, "telemetry-outfile": str(path)}
        )
        host = span.get_span_context()
    assert claude.result(messages).is_error is False
    found = spans(path)
    turn = found["invoke_agent react"]
    assert int.from_bytes(turn.trace_id) == host.trace_id
    assert int.from_bytes(turn.parent_span_id) == host.span_id
    for name, inner in found.items():
        assert inner.trace_id == turn.trace_id
        if name != turn.name:
            assert inner.parent_span_id == turn.span_id
    assert attributes(turn)["session.id"] == claude.result(messages).session_id


async def test_our_traces_are_what_the_official_definitions_describe(model, place) -> None:
    model(say(call("read_file", {"file_path": "none"})), say("Done."))
    path = place.work / "traces.jsonl"
    await claude.run("Read it", extra_args={"telemetry": None, "telemetry-outfile": str(path)})
    found = spans(path)
    assert sorted(name.split()[0] for name in found) == ["chat", "execute_tool", "invoke_agent"]
    tool = found["execute_tool Read"]
    assert tool.kind == Span.SPAN_KIND_INTERNAL
    assert tool.status.code == Status.STATUS_CODE_ERROR
    assert attributes(tool)["error.type"] == tool.status.message == "file_not_found"
    assert [event.name for event in tool.events] == ["permission.decision", "tool.start"]
    assert 0 < tool.start_time_unix_nano <= tool.events[0].time_unix_nano <= tool.end_time_unix_nano
    turn = found["invoke_agent react"]
    assert attributes(turn)["gen_ai.usage.input_tokens"] > 0
    assert attributes(turn)["gen_ai.response.finish_reasons"].values[0].string_value == "stop"
