"""What a session is started with."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import IO, TYPE_CHECKING, Any, Literal, Union

from .hooks import Hooks
from .permissions import CanUseTool
from .tools import SdkMcpServer, SdkMcpTool, create_sdk_mcp_server

if TYPE_CHECKING:
    from .clients.pool import WorkerPool
    from .session_store import SessionStore
    from .transport.stdio import Transport

__all__ = [
    "AgentDefinition",
    "Limits",
    "OnCrash",
    "QwenAgentOptions",
    "QwenClientOptions",
    "SettingSource",
    "SettingsProfile",
    "Timeouts",
    "WorkerPoolOptions",
]

_LISTS = (
    "allowed_tools",
    "disallowed_tools",
    "core_tools",
    "fallback_models",
    "add_dirs",
    "setting_sources",
    "extra_args",
)

_FOREIGN = {
    "cli_path": "binary_path",
    "continue_conversation": "continue_session",
    "fallback_model": "fallback_models",
    "max_budget_usd": "limits=Limits(max_budget_usd=...)",
    "max_restarts": "on_crash; the hub bounds restarts",
    "max_turns": "limits=Limits(max_turns=...)",
    "output_format": "output_schema",
    "permission_prompt_tool_name": "can_use_tool",
}
"""Options of another SDK for the same thing."""

StrPath = Union[str, "os.PathLike[str]"]
SettingSource = Literal["user", "project", "local"]
OnCrash = Literal["error", "resume", "retry", "fork"]


@dataclass(frozen=True)
class AgentDefinition:
    """A sub-agent that the model may start."""

    description: str
    prompt: str
    tools: Sequence[str] | None = None
    """Only these tools; all of the main agent's when None."""
    disallowed_tools: Sequence[str] = ()
    model: str | None = None
    background: bool = False

    def to_wire(self) -> dict[str, Any]:
        """The definition as the worker reads it."""
        definition: dict[str, Any] = {"description": self.description, "prompt": self.prompt}
        if self.tools is not None:
            definition["tools"] = list(self.tools)
        if self.disallowed_tools:
            definition["disallowedTools"] = list(self.disallowed_tools)
        if self.model is not None:
            definition["model"] = self.model
        if self.background:
            definition["background"] = True
        return definition


@dataclass(frozen=True)
class Limits:
    """Limits of a prompt. At a limit the turn ends with the limit as its cause and the results so far."""

    max_turns: int | None = None
    """Model calls for one prompt."""
    max_session_turns: int | None = None
    """Model calls in the session."""
    max_tool_calls: int | None = None
    max_wall_time: float | None = None
    """Seconds for one prompt."""
    max_tokens_total: int | None = None
    max_budget_usd: float | None = None
    """US dollars for the session; the model needs a price, built in or in `model.prices`."""


@dataclass(frozen=True)
class Timeouts:
    """Time-outs in seconds. Each is named in the error that it causes."""

    start: float = 30.0
    """From the start of the process to its handshake."""
    control: float = 60.0
    """For the answer to a control request, such as `set_model`."""
    callback: float = 60.0
    """For permission callbacks and hooks; after it, the request is denied."""
    tool: float = 600.0
    """For a message to an MCP server in this process, such as a tool call."""
    close: float = 5.0
    """For the process to end by itself; after it, the process is killed."""
    heartbeat_interval: float = 2.0
    """How often the hub asks a worker for a sign of life."""
    heartbeat: float = 10.0
    """The hub kills a worker that gives no sign of life for this time; it counts as crashed."""


@dataclass(frozen=True)
class WorkerPoolOptions:
    """How `qwen hub` pools workers."""

    min_workers: int | None = None
    max_workers: int | None = None
    idle_timeout: float | None = None
    """Seconds after which an idle worker ends."""
    max_sessions_per_worker: int | None = None
    health_check_interval: float | None = None
    """Seconds between health checks."""

    def to_wire(self) -> dict[str, Any]:
        """The keys of `worker_pool` in the hub's configuration."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not None}


@dataclass(frozen=True)
class SettingsProfile:
    """A complete set of settings that replaces all settings files.

    Each layer is a mapping, or the path of a file. The profile is written to a private temporary directory for the worker
    and removed when the session is closed.
    """

    system: Mapping[str, Any] | StrPath | None = None
    system_defaults: Mapping[str, Any] | StrPath | None = None
    user: Mapping[str, Any] | StrPath | None = None
    workspace: Mapping[str, Any] | StrPath | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Single values by dotted key, such as `{"model.name": "qwen3-coder-plus"}`."""

    def to_wire(self) -> dict[str, Any]:
        """The profile as the worker reads it."""
        profile: dict[str, Any] = {}
        for name in ("system", "system_defaults", "user", "workspace"):
            layer = getattr(self, name)
            if layer is not None:
                profile[name] = dict(layer) if isinstance(layer, Mapping) else os.fspath(layer)
        if self.overrides:
            profile["overrides"] = dict(self.overrides)
        return profile


@dataclass(kw_only=True, eq=False)
class QwenAgentOptions:
    """The options of a session. All of them are optional."""

    # The model and its instructions
    model: str | None = None
    """A model's name; `demo` and `script:FILE` need no server."""
    system_prompt: str | None = None
    """Replaces the built-in system prompt."""
    append_system_prompt: str | None = None
    policy_description: str | None = None
    """The host's own rules about tool calls, in plain text for the model: what `can_use_tool` will refuse, and why."""
    agent: str | None = None
    """`react`, `tot`, `got`, `agot`, or the name of a sub-agent that runs the session."""
    effort: str | None = None
    """How hard the model thinks: `low`, `medium`, `high`, …"""
    fallback_models: Sequence[str] = ()
    output_schema: Any = None
    """A pydantic model (or any type that pydantic knows, or a JSON Schema) that the answer must fit: `ResultMessage.output`."""

    # Where it works
    cwd: StrPath | None = None
    add_dirs: Sequence[StrPath] = ()
    """Further directories that tools may work in."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the worker."""

    # What it may do
    permission_mode: str | None = None
    """`plan`, `default`, `auto-edit` or `yolo`."""
    can_use_tool: CanUseTool | None = None
    allowed_tools: Sequence[str] = ()
    """Rules for calls that run without approval, such as `Bash(git log *)`."""
    disallowed_tools: Sequence[str] = ()
    """Rules for tools and calls that are refused."""
    core_tools: Sequence[str] | None = None
    """The built-in tools that are offered; all if None."""
    hooks: Hooks | None = None
    sandbox: bool | Literal["auto"] | None = None
    limits: Limits = field(default_factory=Limits)

    # What it brings
    mcp_servers: Mapping[str, SdkMcpServer | Sequence[SdkMcpTool] | Mapping[str, Any]] = field(default_factory=dict)
    """By name: tools of this process (a list of them, or `create_sdk_mcp_server`), or how to reach an external server."""
    agents: Mapping[str, AgentDefinition | Mapping[str, Any]] = field(default_factory=dict)

    # Sessions
    session_id: str | None = None
    """The id of a new session; generated if None."""
    resume: str | None = None
    """The id of a session to continue."""
    continue_session: bool = False
    """Continue the latest session of `cwd`."""
    fork_session: bool = False
    """With `resume` or `continue_session`: continue in a new session and leave the old one unchanged."""
    resume_at: str | None = None
    """With `resume`: continue from this prompt or checkpoint instead of the end."""
    persist_session: bool = True
    session_store: SessionStore | None = None
    """Stores sessions in addition to the local disk."""

    # Settings
    setting_sources: Sequence[SettingSource] = ()
    """The settings files that are read: `user`, `project`; none by default."""
    settings: Mapping[str, Any] | StrPath | None = None
    """Settings for this session: a mapping, or the path of a file."""
    settings_profile: SettingsProfile | Mapping[str, Any] | str | None = None
    """A profile, the path of one, or the name of one in `$QWEN_HOME/profiles`."""
    trust_workspace: bool = False

    # The process
    binary_path: StrPath | None = None
    worker_pool: WorkerPool | WorkerPoolOptions | Mapping[str, Any] | None = None
    """The hub of the session: an open one that is shared, or options for the client's own hub."""
    tenant: str | None = None
    """In a pool: the tenant that owns the session. Workers are never shared between tenants."""
    transport: Transport | None = None
    """Reaches the hub, or a single worker, in another way than as a child process."""
    extra_args: Sequence[str] = ()
    """Further flags of the worker."""
    on_crash: OnCrash = "error"
    """What the hub does with a turn whose worker dies: `error` ends it as `interrupted`; `resume` continues it without repeating what
    was done; `retry` runs the prompt again if no tool had started; `fork` is `resume` in a fork of the session."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_buffered_events: int = 512
    """How many events wait for a slow reader before the worker has to wait too."""

    # What the host sees
    include_partial_messages: bool = False
    """Text and tool calls piece by piece (`AssistantChunk`) and not message by message (`AssistantMessage`)."""
    include_heartbeats: bool = False
    stderr: Callable[[str], object] | None = None
    """Gets every line that the worker writes to standard error."""
    debug_stderr: IO[str] | None = None
    """A text file, such as `sys.stderr`, that the worker's standard error is copied to."""
    logger: Any = None
    """A `logging.Logger` or a structlog logger; by default the logger `qwen_agent_sdk`, with JSON messages."""

    def __post_init__(self) -> None:
        self._check_types()
        if self.resume is not None and self.continue_session:
            raise ValueError("resume and continue_session exclude each other")
        if self.fork_session and self.resume is None and not self.continue_session:
            raise ValueError("fork_session needs resume or continue_session: there is nothing to fork")
        if self.on_crash not in ("error", "resume", "retry", "fork"):
            raise ValueError(f"on_crash is {self.on_crash!r}; it must be error, resume, retry or fork")
        if self.max_buffered_events < 1:
            raise ValueError("max_buffered_events must be at least 1")
        for source in self.setting_sources:
            if source not in ("user", "project", "local"):
                raise ValueError(f"setting_sources has {source!r}; there are user, project and local")

    def _check_types(self) -> None:
        """Refuses values that would be taken for something else: each letter of a string is a string, too."""
        for name in _LISTS:
            value = getattr(self, name)
            if isinstance(value, (str, bytes, os.PathLike)):
                raise TypeError(f"{name} is {value!r}; it must be a list, such as [{value!r}]")
        for name, kind in (("limits", Limits), ("timeouts", Timeouts)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} is {value!r}; it must be a {kind.__name__}(...)")
        for name in ("mcp_servers", "agents", "env"):
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise TypeError(f"{name} is {value!r}; it must be a mapping from names to values")
        self.mcp_servers = {name: _server_of(name, value) for name, value in self.mcp_servers.items()}
        for name, value in self.env.items():
            if not isinstance(value, str):
                raise TypeError(f"env has {value!r} for {name!r}; the value of a variable must be a string")
        for path in self.add_dirs:
            if "," in os.fspath(path):
                raise ValueError(
                    f"add_dirs has {os.fspath(path)!r}; a path with a comma cannot be passed to the worker"
                )

    def stderr_sink(self) -> Callable[[str], object] | None:
        """What gets the lines of the worker's standard error."""
        callback, file = self.stderr, self.debug_stderr
        if file is None:
            return callback

        def copy(line: str) -> None:
            print(line, file=file, flush=True)
            if callback is not None:
                callback(line)

        return copy

    def replace(self, **changes: Any) -> QwenAgentOptions:
        """A copy with these changes."""
        return replace(self, **changes)


def _server_of(name: str, value: Any) -> SdkMcpServer | Mapping[str, Any]:
    """A server from what the host gave for it; a list of tools is a server with these tools."""
    if isinstance(value, (SdkMcpServer, Mapping)):
        return value
    tools = [value] if isinstance(value, SdkMcpTool) else value
    if (
        isinstance(tools, Sequence)
        and not isinstance(tools, str)
        and all(isinstance(each, SdkMcpTool) for each in tools)
    ):
        return create_sdk_mcp_server(name, tools=tools)
    raise TypeError(
        f"mcp_servers[{name!r}] is {value!r}; it must be a list of functions with @tool, create_sdk_mcp_server(...), "
        "or a mapping such as {'command': 'my-server'}"
    )


def _naming_foreign_options(initialize: Callable[..., None]) -> Callable[..., None]:
    """Says what takes the place of an option of another SDK, before the dataclass calls it unexpected."""

    @functools.wraps(initialize)
    def checked(self: QwenAgentOptions, **given: Any) -> None:
        for name, instead in _FOREIGN.items():
            if name in given:
                raise TypeError(f"there is no option {name}; use {instead}")
        initialize(self, **given)

    return checked


setattr(QwenAgentOptions, "__init__", _naming_foreign_options(QwenAgentOptions.__init__))  # noqa: B010

QwenClientOptions = QwenAgentOptions
"""The same options, under the name that goes with `QwenClient`."""
