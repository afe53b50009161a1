"""Functions of the host as tools of the agent: an MCP server inside this process."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union, overload

__all__ = ["SdkMcpServer", "SdkMcpTool", "ToolError", "ToolHandler", "create_sdk_mcp_server", "tool"]

ToolHandler = Callable[..., Union[Any, Awaitable[Any]]]

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


class ToolError(Exception):
    """Raised by a tool to report a failure to the model: the model receives the message of this exception, and of no other."""


@dataclass(frozen=True)
class SdkMcpTool:
    """A function with the name, description and JSON Schema under which the model knows it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    handler: ToolHandler
    takes_arguments_object: bool
    annotations: Mapping[str, Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function itself, so that a decorated function stays usable and testable."""
        return self.handler(*args, **kwargs)


@dataclass(frozen=True)
class SdkMcpServer:
    """A server in this process: our own with `tools`, or one of the `mcp` package as `instance`."""

    name: str
    version: str = "1.0.0"
    tools: Sequence[SdkMcpTool] = ()
    instance: Any = None


@overload
def tool(name: ToolHandler, *, annotations: Mapping[str, Any] | None = None) -> SdkMcpTool: ...


@overload
def tool(
    name: str | None = None,
    description: str | None = None,
    input_schema: Any = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> Callable[[ToolHandler], SdkMcpTool]: ...


def tool(
    name: str | ToolHandler | None = None,
    description: str | None = None,
    input_schema: Any = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> Any:
    """Makes a tool of a plain or an async function.

        @tool
        async def add(a: float, b: float) -> float:
            "Adds two numbers."
            return a + b

        @tool("add", "Adds two numbers.", {"a": float, "b": float})
        async def add(args):
            return args["a"] + args["b"]

    Without `input_schema` the schema comes from the signature, and arguments are passed by keyword. With one (a mapping of names to
    types, a JSON Schema, or a pydantic model) the function gets one object. It returns text, a value that pydantic writes as JSON, or
    an MCP result with `content`. An exception is an error result without its text, which goes to the log; `ToolError` is one with it.
    """
    if callable(name):
        return _make(name, None, None, None, annotations)

    def decorate(handler: ToolHandler) -> SdkMcpTool:
        return _make(handler, name if isinstance(name, str) else None, description, input_schema, annotations)

    return decorate


def create_sdk_mcp_server(
    name: str, version: str = "1.0.0", tools: Sequence[SdkMcpTool] | None = None, *, instance: Any = None
) -> SdkMcpServer:
    """A server for `QwenAgentOptions(mcp_servers={...})`; its tools are called `mcp__<server>__<tool>`.

    `instance` takes a server of the `mcp` package in place of `tools`.
    """
    if (tools is None) == (instance is None):
        raise ValueError("pass either tools or instance")
    names = [entry.name for entry in tools or ()]
    repeated = {entry for entry in names if names.count(entry) > 1}
    if repeated:
        raise ValueError(f"the server {name!r} has two tools of the same name: {', '.join(sorted(repeated))}")
    return SdkMcpServer(name, version, tuple(tools or ()), instance)


def _make(
    handler: ToolHandler,
    name: str | None,
    description: str | None,
    input_schema: Any,
    annotations: Mapping[str, Any] | None,
) -> SdkMcpTool:
    text = description if description is not None else inspect.getdoc(handler) or ""
    schema = _schema_of_signature(handler) if input_schema is None else _schema_of(input_schema)
    return SdkMcpTool(
        name or str(getattr(handler, "__name__", "tool")), text, schema, handler, input_schema is not None, annotations
    )


def _schema_of(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        if given.get("type") == "object" or "properties" in given or "$ref" in given:
            return given
        properties = {key: _schema_of_type(kind) for key, kind in given.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    return _schema_of_type(given)


def _schema_of_type(kind: Any) -> Mapping[str, Any]:
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    from pydantic import TypeAdapter

    return TypeAdapter(kind).json_schema()


def _schema_of_signature(handler: ToolHandler) -> Mapping[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    parameters = list(inspect.signature(handler, eval_str=True).parameters.values())
    if parameters and parameters[0].name == "self":
        raise TypeError(
            f"{handler!r} is a method without its object; make a tool of the bound one: tool(instance.method)"
        )
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{handler!r}: a tool takes named parameters only, not {parameter}")
        known = parameter.annotation is not parameter.empty
        properties[parameter.name] = dict(_schema_of_type(parameter.annotation)) if known else {}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required}
