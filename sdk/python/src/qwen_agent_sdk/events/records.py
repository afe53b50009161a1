"""What happens beside the model's words: tools, output, thoughts, notices, answers to requests."""

from __future__ import annotations

from .base import Event, JsonObject, as_list, as_object, as_text
from .control import ControlCancel, ControlRequest, ControlResponse


class ToolDisplay(Event):
    """A tool passes through its states; `result_display` is shown to users."""

    model_name = "ToolDisplayRecord"

    @property
    def tool_call_id(self) -> str:
        """The call."""
        return as_text(self.raw.get("tool_call_id"))

    @property
    def tool_name(self) -> str:
        """The tool."""
        return as_text(self.raw.get("tool_name"))

    @property
    def status(self) -> str:
        """`pending`, `confirming`, `executing`, `success`, `error` or `canceled`."""
        return as_text(self.raw.get("status"))

    @property
    def result_display(self) -> JsonObject | None:
        """A `string`, `file_diff`, `todo_list`, `plan_summary` or `task_execution`, by `kind`."""
        raw = self.raw.get("result_display")
        return as_object(raw) if isinstance(raw, dict) else None

    @property
    def confirmation(self) -> JsonObject | None:
        """What somebody is asked to agree to."""
        raw = self.raw.get("confirmation")
        return as_object(raw) if isinstance(raw, dict) else None


class TerminalOutput(Event):
    """Output of a tool or a console log, with its escapes taken apart."""

    model_name = "TerminalRecord"

    @property
    def text(self) -> str:
        """The text without escapes."""
        return as_text(self.raw.get("text"))

    @property
    def channel(self) -> str:
        """`stdout` or `stderr`."""
        return as_text(self.raw.get("channel"))

    @property
    def source(self) -> str:
        """`assistant`, `tool`, `console` or `system`."""
        return as_text(self.raw.get("source"))

    @property
    def ends_run(self) -> bool:
        """True for the record that closes a turn's output: it carries no text, and its result follows."""
        return self.source == "system" and not self.text and self.exit_code is not None

    @property
    def exit_code(self) -> int | None:
        """At the end of a run."""
        value = self.raw.get("exit_code")
        return value if isinstance(value, int) else None


class Thought(Event):
    """The model thinks."""

    model_name = "ThoughtRecord"

    @property
    def subject(self) -> str:
        """The headline."""
        return as_text(self.raw.get("subject"))

    @property
    def description(self) -> str:
        """The rest."""
        return as_text(self.raw.get("description"))


class SessionEvent(Event):
    """A notice about the session, such as `Finished`, `ChatCompressed`, `ModeChanged`, `Retry` or `Steered`."""

    model_name = "SessionEventRecord"

    @property
    def event(self) -> str:
        """The notice's name."""
        return as_text(self.raw.get("event"))

    @property
    def message(self) -> str:
        """The notice in words."""
        return as_text(self.raw.get("message"))

    @property
    def worker_restarted(self) -> JsonObject:
        """The hub's notice that a turn continues on a new worker (`on_crash`, `attempt`, `session_id`, `worker`); empty for others."""
        value = as_object(self.raw.get("value"))
        return value if value.get("kind") == "worker_restarted" else {}

    @property
    def metrics(self) -> JsonObject:
        """Numbers that go with it."""
        return as_object(self.raw.get("metrics"))


class CommandResult(Event):
    """What came of a slash command."""

    model_name = "CommandLine"

    @property
    def result(self) -> JsonObject:
        """`type` is `message`, `dialog`, `tool` or `submit_prompt`."""
        return as_object(self.raw.get("result"))

    @property
    def text(self) -> str:
        """The words of a message."""
        return as_text(self.result.get("content"))

    @property
    def is_error(self) -> bool:
        """True for a command that failed or does not exist."""
        return self.result.get("level") == "error"

    @property
    def submits_prompt(self) -> bool:
        """True if a turn follows."""
        return self.result.get("type") == "submit_prompt"


class CommandHint(Event):
    """Suggestions for what is being typed."""

    model_name = "HintLine"

    @property
    def suggestions(self) -> list[JsonObject]:
        """`label`, `value` and `description` of each."""
        return [as_object(item) for item in as_list(self.raw.get("suggestions"))]


class Heartbeat(Event):
    """The worker lives."""

    model_name = "HeartbeatLine"


class CancelResult(Event):
    """What came of a cancel request: `ok` or `noop`."""

    model_name = "CancelLine"

    @property
    def status(self) -> str:
        """`ok`, or `noop` where nothing ran."""
        return as_text(self.raw.get("status"))


class UnknownEvent(Event):
    """A line of a type that this version does not know; `raw` has its data."""


class MalformedLine(UnknownEvent):
    """A line that is not a JSON object; `line` is its text, cut after 4096 characters."""

    def __init__(self, line: str, problem: str) -> None:
        super().__init__({"type": "malformed_line", "line": line[:4096], "problem": problem})
        self.line = line[:4096]
        self.problem = problem


RECORDS_BY_TYPE: dict[str, type[Event]] = {
    "x-qwen-tool-display": ToolDisplay,
    "x-qwen-terminal": TerminalOutput,
    "x-qwen-thought": Thought,
    "x-qwen-session-event": SessionEvent,
    "result/command": CommandResult,
    "result/command_hint": CommandHint,
    "result/heartbeat": Heartbeat,
    "result/cancel": CancelResult,
    "control_request": ControlRequest,
    "control_response": ControlResponse,
    "control_cancel_request": ControlCancel,
}
"""The classes of lines that name their kind in `type`."""
