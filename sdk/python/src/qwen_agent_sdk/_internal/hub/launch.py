"""From options to the requests that open a session: flags, environment, `initialize`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, cast

from ... import hooks as hook_types
from ...errors import ProcessError, SessionNotFoundError
from ...options import AgentDefinition, QwenAgentOptions, SettingsProfile
from ...tools import SdkMcpServer

__all__ = ["PROTOCOL_VERSION", "Launch", "new_name", "new_session_id", "output_json_schema"]

PROTOCOL_VERSION = "1.0"


def new_session_id() -> str:
    """The id of a new session: a random UUID, without the module of that name, which is slow to load."""
    random = bytearray(os.urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    text = random.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_name() -> str:
    """A random suffix for the ids of prompts and requests."""
    return os.urandom(6).hex()


class Launch:
    """What a session is opened with. Secrets and long texts go through `initialize` or private files, never through argv."""

    def __init__(self, options: QwenAgentOptions, session_id: str) -> None:
        self.options = options
        self.session_id = session_id
        self.extra_environment: dict[str, str] = {}
        self._private: str | None = None

    def open_request(self) -> dict[str, Any]:
        """The fields of the hub's `open` request."""
        options = self.options
        cwd = os.path.abspath(options.cwd if options.cwd is not None else os.getcwd())
        if not os.path.isdir(cwd):
            problem = "is not a directory" if os.path.exists(cwd) else "does not exist"
            raise ProcessError(f"the working directory {cwd!r} {problem}", code="bad_cwd")
        args = self.configuration_flags()
        if not options.persist_session:
            args.append("--no-session-persistence")
        fields: dict[str, Any] = {"subtype": "open", "session_id": self.session_id, "cwd": cwd}
        fields["env"] = {**options.env, **self.extra_environment}
        fields["on_crash"] = options.on_crash
        if options.resume is not None:
            self._check_session(options.resume)
            if options.fork_session:
                fields["fork_from"] = options.resume
            if options.resume_at is not None:
                args += ["--resume-session-at", options.resume_at]
        fields["args"] = [*args, *options.extra_args]
        if options.tenant is not None:
            fields["tenant"] = options.tenant
        return fields

    def _check_session(self, session_id: str) -> None:
        """A hub begins a session that it does not find, so a wrong id is noticed here."""
        home = self.environment().get("QWEN_HOME") or os.path.expanduser("~/.qwen")
        path = os.path.join(home, "sessions", f"{session_id}.jsonl")
        if self.options.tenant is None and not os.path.exists(path):
            message = f"there is no session {session_id!r} (see qwen sessions list)"
            raise SessionNotFoundError(message, code="unknown_session")

    def configuration_flags(self) -> list[str]:
        """Model, permissions, limits and settings."""
        options, limits = self.options, self.options.limits
        flags: list[str] = []
        for flag, value in (
            ("--model", options.model),
            ("--agent", options.agent),
            ("--approval-mode", options.permission_mode),
            ("--max-turns", limits.max_turns),
            ("--max-session-turns", limits.max_session_turns),
            ("--max-tool-calls", limits.max_tool_calls),
            ("--max-wall-time", limits.max_wall_time),
            ("--max-tokens-total", limits.max_tokens_total),
            ("--max-budget-usd", limits.max_budget_usd),
        ):
            if value is not None:
                flags += [flag, str(value)]
        for flag, values in (
            ("--allowed-tools", options.allowed_tools),
            ("--exclude-tools", options.disallowed_tools),
            ("--fallback-model", options.fallback_models),
            ("--include-directories", [os.fspath(path) for path in options.add_dirs]),
        ):
            if values:
                flags.append(f"{flag}={','.join(values)}")
        if options.core_tools is not None:
            flags.append(f"--core-tools={','.join(options.core_tools)}")
        if options.sandbox is not None:
            word = options.sandbox if isinstance(options.sandbox, str) else str(options.sandbox).lower()
            flags.append(f"--sandbox={word}")
        if options.trust_workspace:
            flags.append("--trust-workspace")
        if options.settings is not None:
            flags += ["--settings", self._file_of("settings.json", options.settings)]
        if options.settings_profile is not None:
            flags += ["--settings-profile", self._profile()]
        else:
            flags.append(f"--setting-sources={','.join(options.setting_sources)}")
        return flags

    def environment(self) -> dict[str, str]:
        """The worker's environment."""
        return {**os.environ, **self.options.env, **self.extra_environment}

    def initialize(self, hook_ids: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        """The fields of the `initialize` request."""
        options = self.options
        fields: dict[str, Any] = {
            "protocol_version": PROTOCOL_VERSION,
            "hooks": dict(hook_ids),
            "timeout": {"canUseTool": round((options.timeouts.callback + 5) * 1000)},
        }
        if options.include_heartbeats:
            fields["heartbeat_ms"] = max(100, round(options.timeouts.heartbeat_interval * 1000))
        if options.system_prompt is not None:
            fields["systemPrompt"] = options.system_prompt
        if options.append_system_prompt is not None:
            fields["appendSystemPrompt"] = options.append_system_prompt
        if options.policy_description is not None:
            fields["policyDescription"] = options.policy_description
        if options.effort is not None:
            fields["effort"] = options.effort
        if options.agents:
            fields["agents"] = {
                name: (agent if isinstance(agent, AgentDefinition) else AgentDefinition(**agent)).to_wire()
                for name, agent in options.agents.items()
            }
        if options.mcp_servers:
            fields["mcpServers"] = {
                name: {"type": "sdk", "name": name}
                if isinstance(server, SdkMcpServer)
                else dict(cast("Mapping[str, Any]", server))
                for name, server in options.mcp_servers.items()
            }
        schema = output_json_schema(options.output_schema)
        if schema is not None:
            fields["jsonSchema"] = schema
        return fields

    def hooks(self) -> dict[str, list[hook_types.HookMatcher]]:
        """The hooks by event."""
        return hook_types.normalize(self.options.hooks)

    def _profile(self) -> str:
        profile = self.options.settings_profile
        if isinstance(profile, SettingsProfile):
            profile = profile.to_wire()
        if isinstance(profile, Mapping):
            return self._file_of("profile.json", profile)
        assert profile is not None
        return profile

    def _file_of(self, name: str, content: Mapping[str, Any] | str | os.PathLike[str]) -> str:
        """The path of a private file with this content; a path is passed on as it is."""
        if not isinstance(content, Mapping):
            return os.fspath(content)
        if self._private is None:
            import tempfile

            self._private = tempfile.mkdtemp(prefix="qwen-sdk-")
        path = os.path.join(self._private, name)
        with open(path, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            json.dump(content, file, ensure_ascii=False)
        return path

    def clean_up(self) -> None:
        """Removes what was written for the worker."""
        if self._private is not None:
            import shutil

            shutil.rmtree(self._private, ignore_errors=True)
            self._private = None


def output_json_schema(output_schema: Any) -> dict[str, Any] | None:
    """The JSON Schema of `output_schema`, which may be a schema already."""
    if output_schema is None:
        return None
    if isinstance(output_schema, Mapping):
        return dict(output_schema)
    from pydantic import TypeAdapter

    return TypeAdapter(output_schema).json_schema()
