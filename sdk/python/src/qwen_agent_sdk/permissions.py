"""Whether a tool call may run: what the callback is told and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

__all__ = ["CanUseTool", "PermissionMode", "PermissionResult", "PermissionUpdate", "ToolPermissionContext"]

PermissionMode = Literal["plan", "default", "auto-edit", "yolo"]
"""How much runs without a question. Claude's words (`acceptEdits`, `bypassPermissions`) are understood by the worker too."""


@dataclass(frozen=True)
class PermissionUpdate:
    """A change of the session's rules that goes with an answer."""

    type: Literal["addRules", "removeRules", "setMode", "addDirectories"]
    rules: Sequence[str] = ()
    behavior: Literal["allow", "ask", "deny"] = "allow"
    mode: PermissionMode | None = None
    directories: Sequence[str] = ()

    def to_wire(self) -> dict[str, Any]:
        """The update as the worker reads it."""
        if self.type == "setMode":
            return {"type": self.type, "mode": self.mode}
        if self.type == "addDirectories":
            return {"type": self.type, "directories": list(self.directories)}
        return {"type": self.type, "behavior": self.behavior, "rules": list(self.rules)}


@dataclass(frozen=True)
class PermissionResult:
    """The answer to "may this call run?". Make one with `allow`, `deny` or `ask`."""

    behavior: Literal["allow", "deny", "ask"]
    message: str = ""
    updated_input: Mapping[str, Any] | None = None
    updated_permissions: Sequence[PermissionUpdate] = ()
    interrupt: bool = False

    @classmethod
    def allow(
        cls,
        updated_input: Mapping[str, Any] | None = None,
        *,
        updated_permissions: Sequence[PermissionUpdate] = (),
    ) -> PermissionResult:
        """The call runs, with `updated_input` in place of its arguments if that is given. Changed input is judged again."""
        return cls("allow", updated_input=updated_input, updated_permissions=updated_permissions)

    @classmethod
    def deny(cls, message: str = "", *, interrupt: bool = False) -> PermissionResult:
        """The call does not run; the model is told `message`. `interrupt` ends the turn as well."""
        return cls("deny", message, interrupt=interrupt)

    @classmethod
    def ask(cls, message: str = "") -> PermissionResult:
        """The callback leaves the decision to a user. In a session without one that is a denial."""
        return cls("ask", message)

    def to_wire(self) -> dict[str, Any]:
        """The answer as the worker reads it."""
        answer: dict[str, Any] = {"behavior": self.behavior}
        if self.message:
            answer["message"] = self.message
        if self.updated_input is not None:
            answer["updatedInput"] = dict(self.updated_input)
        if self.updated_permissions:
            answer["updatedPermissions"] = [update.to_wire() for update in self.updated_permissions]
        if self.interrupt:
            answer["interrupt"] = True
        return answer


@dataclass(frozen=True)
class ToolPermissionContext:
    """What the worker says beside the call."""

    session_id: str = ""
    prompt_id: str | None = None
    tool_call_id: str | None = None
    reason: str = ""
    blocked_path: str | None = None
    agent_id: str | None = None
    confirmation: Mapping[str, Any] | None = None
    """What a user may be shown: a diff, a command, a server's tool, a plan."""
    raw: Mapping[str, Any] = field(default_factory=dict)


_Answer = Union[PermissionResult, bool]

CanUseTool = Callable[
    [str, dict[str, Any], ToolPermissionContext],
    Union[_Answer, Awaitable[_Answer]],
]
"""`can_use_tool(name, arguments, context)`: a plain or an async function. `True` and `False` stand for allow and deny. A plain
function runs in a thread of its own, so it may block, for example on `input()`."""
