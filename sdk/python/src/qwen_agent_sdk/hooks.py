"""Functions of the host that watch the agent and may forbid, change or add to what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Union

__all__ = ["HookCallback", "HookContext", "HookEvent", "HookMatcher", "HookResult", "Hooks", "hook"]

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "Notification",
]


@dataclass(frozen=True)
class HookContext:
    """What goes beside the input of a hook."""

    session_id: str = ""
    prompt_id: str | None = None
    tool_use_id: str | None = None


@dataclass(frozen=True)
class HookResult:
    """What a hook answers. A hook that returns None says nothing.

    The worker understands more keys than there are constructors here; `raw` takes any of them (see docs/hooks.md).
    """

    raw: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def block(cls, reason: str) -> HookResult:
        """What the hook watches must not happen; the model is told why."""
        return cls({"decision": "block", "reason": reason})

    @classmethod
    def stop(cls, reason: str) -> HookResult:
        """The turn ends here."""
        return cls({"continue": False, "stopReason": reason})

    @classmethod
    def modify(cls, updated_input: Mapping[str, Any]) -> HookResult:
        """`PreToolUse`: the call gets this input. It is judged again."""
        return cls({"hookSpecificOutput": {"updatedInput": dict(updated_input)}})

    @classmethod
    def decide(
        cls,
        decision: Literal["allow", "ask", "defer", "deny"],
        reason: str = "",
        *,
        updated_input: Mapping[str, Any] | None = None,
    ) -> HookResult:
        """`PreToolUse`: the permission itself. No hook allows what a deny rule forbids."""
        output: dict[str, Any] = {"permissionDecision": decision, "permissionDecisionReason": reason}
        if updated_input is not None:
            output["updatedInput"] = dict(updated_input)
        return cls({"hookSpecificOutput": output})

    @classmethod
    def replace_output(cls, output: Any) -> HookResult:
        """`PostToolUse`: the model gets this in place of the tool's output."""
        return cls({"hookSpecificOutput": {"updatedToolOutput": output}})

    @classmethod
    def add_context(cls, text: str) -> HookResult:
        """The model is told this as well."""
        return cls({"hookSpecificOutput": {"additionalContext": text}})

    def to_wire(self, event: str) -> dict[str, Any]:
        """The answer as the worker reads it."""
        answer = dict(self.raw)
        specific = answer.get("hookSpecificOutput")
        if isinstance(specific, dict):
            answer["hookSpecificOutput"] = {"hookEventName": event, **specific}
        return answer


_Answer = Union[HookResult, Mapping[str, Any], None]

HookCallback = Callable[[dict[str, Any], HookContext], Union[_Answer, Awaitable[_Answer]]]
"""`callback(input, context)`: a plain or an async function. `input` has `hook_event_name`, `tool_name`, `tool_input` and so on."""


@dataclass(frozen=True)
class HookMatcher:
    """Callbacks for one event. `matcher` narrows it to tools: a name, or names with `|` between them."""

    hooks: Sequence[HookCallback]
    matcher: str | None = None
    timeout: float | None = None
    """Seconds that the callbacks may take; 60 when None."""
    on_failure: Literal["continue", "block"] = "continue"
    """What an exception or a time-out means for what the hook watches."""


@dataclass(frozen=True)
class _Declared:
    event: HookEvent
    matcher: HookMatcher


def hook(
    event: HookEvent,
    *,
    matcher: str | None = None,
    timeout: float | None = None,
    on_failure: Literal["continue", "block"] = "continue",
) -> Callable[[HookCallback], HookCallback]:
    """Declares a function as a hook, for `QwenAgentOptions(hooks=[...])`.

    @hook("PreToolUse", matcher="run_shell_command")
    async def no_network(input, context):
        if "curl" in input["tool_input"]["command"]:
            return HookResult.block("no network here")
    """

    def declare(callback: HookCallback) -> HookCallback:
        entry = _Declared(event, HookMatcher([callback], matcher, timeout, on_failure))
        callback.__dict__.setdefault("_qwen_hooks", []).append(entry)
        return callback

    return declare


Hooks = Union[Mapping[HookEvent, Sequence[HookMatcher]], Sequence[HookCallback]]
"""Either matchers by event, or a list of functions that were declared with `@hook`."""


def normalize(hooks: Hooks | None) -> dict[str, list[HookMatcher]]:
    """Both forms as matchers by event."""
    if not hooks:
        return {}
    if isinstance(hooks, Mapping):
        given: dict[str, list[HookMatcher]] = {event: list(matchers) for event, matchers in hooks.items()}
        for event, matchers in given.items():
            _check_matchers(event, matchers)
        return given
    by_event: dict[str, list[HookMatcher]] = {}
    for callback in hooks:
        declared: list[_Declared] = getattr(callback, "_qwen_hooks", [])
        if not declared:
            name = getattr(callback, "__name__", repr(callback))
            raise ValueError(f"{name} is not declared with @hook; pass a mapping of events to HookMatcher instead")
        for entry in declared:
            # The function as it was passed: a method of an object is bound to it here, and was not in its class.
            matcher = replace(entry.matcher, hooks=[callback])
            _check_matchers(entry.event, [matcher])
            by_event.setdefault(entry.event, []).append(matcher)
    return by_event


def _check_matchers(event: str, matchers: Sequence[object]) -> None:
    """Refuses hooks that could not be called, which would otherwise show only when one is needed."""
    for matcher in matchers:
        if not isinstance(matcher, HookMatcher):
            raise TypeError(
                f"hooks[{event!r}] has {matcher!r}; it must be a HookMatcher, such as HookMatcher(hooks=[...])"
            )
        for callback in matcher.hooks:
            _check_callback(event, callback)


def _check_callback(event: str, callback: object) -> None:
    import inspect

    if not callable(callback):
        raise TypeError(f"the {event} hook {callback!r} is not a function")
    try:
        signature = inspect.signature(callback)
    except ValueError:
        # A function without a readable signature, such as one written in C.
        return
    try:
        signature.bind({}, None)
    except TypeError:
        name = getattr(callback, "__name__", repr(callback))
        message = f"the {event} hook {name}{signature} cannot be called: a hook takes (input, context)"
        raise TypeError(f"{message}; the id of the tool call is context.tool_use_id") from None
