"""The golden corpus, and the models that are generated from the schemas."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

from qwen_agent_sdk import (
    ErrorMessage,
    MalformedLine,
    ResultMessage,
    SessionStarted,
    UnknownEvent,
    parse_line,
    parse_stream,
)

CORPUS = ROOT / "corpus"
TRACES: list[dict[str, Any]] = json.loads((CORPUS / "manifest.json").read_text())["traces"]


def lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return text.decode().split("\n")[:-1]


def streams(dialect: str) -> Iterator[Any]:
    for trace in TRACES:
        for file in trace["files"]:
            if file["dialect"] == dialect and file["format"].startswith("stream"):
                yield pytest.param(trace, file, id=file["path"])


@pytest.mark.parametrize(("trace", "file"), list(streams("qwen")))
def test_a_trace_reads_as_the_manifest_says(trace: dict[str, Any], file: dict[str, Any]) -> None:
    read = lines(CORPUS / file["path"])
    assert len(read) == file["lines"]
    events = list(parse_stream(read))
    assert isinstance(events[0], SessionStarted) and events[0].protocol_version == "1.0"
    assert "control" in events[0].capabilities
    assert not [event for event in events if isinstance(event, UnknownEvent)]
    results = [event for event in events if isinstance(event, ResultMessage)]
    said = [{"prompt_id": r.prompt_id, "reply": r.text, "status": r.status} for r in results]
    assert said == trace["turns"]
    assert results[-1].text == trace["final_text"]


@pytest.mark.parametrize(("trace", "file"), list(streams("qwen")))
def test_every_line_fits_its_pydantic_model_and_loses_nothing(trace: dict[str, Any], file: dict[str, Any]) -> None:
    for line in lines(CORPUS / file["path"]):
        event = parse_line(line)
        if isinstance(event, ErrorMessage):
            continue
        model = event.model()
        assert model is not None, line[:300]
        again = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
        assert again == json.loads(line)


@pytest.mark.parametrize("path", sorted((CORPUS / "spec-examples").glob("spec1-*")), ids=lambda p: p.name)
def test_the_examples_of_the_specification_are_read(path: Path) -> None:
    text = path.read_text()
    examples = text.splitlines() if path.suffix == ".jsonl" else [text]
    for example in examples:
        assert not isinstance(parse_line(example.strip()), MalformedLine)


@pytest.mark.parametrize("dialect", ["claude", "claude-lite", "loom", "loom-export", "core"])
def test_other_dialects_are_read_without_an_exception(dialect: str) -> None:
    for param in streams(dialect):
        for line in lines(CORPUS / param.values[1]["path"]):
            event = parse_line(line)
            assert not isinstance(event, MalformedLine)
            repr(event)
            event.model()


def test_a_torn_line_is_malformed_and_never_raises() -> None:
    for whole in lines(CORPUS / "one-tool" / "qwen.jsonl"):
        for cut in range(len(whole)):
            assert isinstance(parse_line(whole[:cut]), MalformedLine)


def test_any_value_in_any_field_is_read_without_an_exception() -> None:
    """Every field of every line of a trace, replaced by values of other types."""
    strange: list[Any] = [None, True, 7, -1.5, "x", [], [1], {}, {"a": 1}, [[]], [None]]
    for line in lines(CORPUS / "denied-tool" / "qwen.stream-chunk-json.jsonl"):
        whole = json.loads(line)
        for path in paths(whole):
            for value in strange:
                event = parse_line(json.dumps(replaced(whole, path, value)))
                for name in dir(type(event)):
                    if isinstance(getattr(type(event), name), property):
                        getattr(event, name)


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from paths(inner, (*at, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    copy = json.loads(json.dumps(value))
    target = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = new
    return copy


def test_the_models_are_those_of_the_schemas() -> None:
    checked = subprocess.run([sys.executable, str(ROOT / "sdk/codegen/python.py"), "--check"], check=False)
    assert checked.returncode == 0
