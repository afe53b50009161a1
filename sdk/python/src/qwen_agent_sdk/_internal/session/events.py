"""What a session makes of the worker's events: answers for those who wait, turns that end, and the rest for the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...events import Event, TurnReader, parse_line, records
from ...events.control import ControlCancel, ControlRequest, ControlResponse
from ...events.messages import AssistantChunk, AssistantMessage, ErrorMessage, FatalErrorMessage, ResultMessage
from ...options import QwenAgentOptions
from ..control.dispatcher import ControlDispatcher
from ..control.requests import PendingRequests
from ..log import SessionLogger
from ..runtime import Runtime
from ..telemetry import Telemetry
from ..worker.launch import new_session_id
from .open_prompts import OpenPrompts
from .queue import EventQueue

if TYPE_CHECKING:
    from .store_mirror import StoreMirror

__all__ = ["SessionEvents"]

JsonObject = dict[str, Any]

MODEL_ERRORS = ("api_error", "connection_error", "timeout_error")
"""Types of errors that belong to a turn, even before its first other line."""


class SessionEvents:
    """The receiving half of a session."""

    _dispatcher: ControlDispatcher

    def __init__(self, options: QwenAgentOptions, runtime: Runtime) -> None:
        self.options = options
        self.session_id = options.session_id or new_session_id()
        if options.resume is not None and not options.fork_session:
            self.session_id = options.resume
        self.last_result: ResultMessage | None = None
        self._runtime = runtime
        self._log = SessionLogger(options.logger, session_id=self.session_id)
        self._telemetry = Telemetry()
        self._queue = EventQueue(runtime, options.max_buffered_events)
        self._reader = TurnReader()
        self._prompts = OpenPrompts()
        self._requests: PendingRequests[JsonObject] = PendingRequests(runtime, "worker")
        self._hints: PendingRequests[records.CommandHint] = PendingRequests(runtime, "worker")
        self._mirror: StoreMirror | None = None
        if options.session_store is not None:
            from .store_mirror import StoreMirror

            self._mirror = StoreMirror(options.session_store, self._log, runtime)
        self._is_closing = False
        self._fatal: FatalErrorMessage | None = None

    def handle_lines(self, lines: Sequence[str]) -> None:
        """Takes a batch of lines. Chunks, of which there are thousands, take the shortest way."""
        read, put, prompts = self._reader.read, self._queue.put, self._prompts
        for line in lines:
            event = parse_line(line)
            if type(event) is AssistantChunk and not prompts.unstarted:
                message = read(event)
                put(event, len(line))
                if message is not None:
                    put(message, 0)
            else:
                self.handle(event, len(line))

    def handle(self, event: Event, size: int) -> None:
        """Takes one event in its order."""
        kind = type(event)
        if self._prompts.unstarted and kind is not ErrorMessage:
            self._prompts.mark_started(event.prompt_id)
        following: Event | None = None
        if kind is AssistantChunk or kind is AssistantMessage:
            following = self._reader.read(event)
        elif kind is records.TerminalOutput:
            assert isinstance(event, records.TerminalOutput)
            if event.ends_run:
                return
        elif kind is ControlRequest:
            assert isinstance(event, ControlRequest)
            self._dispatcher.dispatch(event)
            return
        elif kind is ControlResponse:
            assert isinstance(event, ControlResponse)
            self._requests.resolve(event.request_id, event.response)
            return
        elif kind is ControlCancel:
            assert isinstance(event, ControlCancel)
            self._dispatcher.withdraw(event.request_id)
            return
        elif kind is records.Heartbeat:
            if not self.options.include_heartbeats:
                return
        elif kind is records.CancelResult:
            return
        elif kind is records.CommandHint:
            assert isinstance(event, records.CommandHint)
            if self._hints.resolve_oldest(event):
                return
        elif kind is ResultMessage:
            assert isinstance(event, ResultMessage)
            answer = self._reader.read(event)
            if answer is not None:
                self._queue.put(answer, 0)
            self._finish_turn(event)
        elif kind is records.CommandResult:
            assert isinstance(event, records.CommandResult)
            self._finish_command(event)
        elif kind is ErrorMessage:
            assert isinstance(event, ErrorMessage)
            if self._reject_prompt(event):
                size = 0
        elif kind is records.SessionEvent:
            assert isinstance(event, records.SessionEvent)
            self._join_turn(event)
        elif kind is FatalErrorMessage:
            assert isinstance(event, FatalErrorMessage)
            self._fatal = event
        elif kind is records.MalformedLine:
            assert isinstance(event, records.MalformedLine)
            self._telemetry.count("errors")
            self._log("warning", "malformed_line", problem=event.problem)
        self._queue.put(event, size)
        if following is not None:
            self._queue.put(following, 0)

    def flush(self) -> None:
        """Wakes the reader after a batch."""
        self._queue.flush()

    def is_full(self) -> bool:
        """True while the worker should wait for the reader."""
        return self._queue.is_full() and not self._requests and not self._is_closing

    async def room(self) -> None:
        """Waits until there is room, or until an answer is awaited."""
        await self._queue.room()

    def _finish_turn(self, result: ResultMessage) -> None:
        schema = self.options.output_schema
        result.output_type = None if isinstance(schema, Mapping) else schema
        if not result.is_error:
            self.last_result = result
        prompt = self._prompts.finish(result.prompt_id)
        if prompt is not None:
            usage = result.usage
            prompt.span.end(
                result.status,
                error=result.error_code,
                gen_ai__usage__input_tokens=usage.prompt_tokens,
                gen_ai__usage__output_tokens=usage.completion_tokens,
            )
        self._log(
            "info",
            "turn_end",
            prompt_id=result.prompt_id,
            status=result.status,
            duration_ms=result.duration_ms,
            denials=len(result.permission_denials),
        )
        mirror, session_id = self._mirror, self.session_id
        if mirror is not None:
            self._runtime.spawn(lambda: mirror.copy(session_id), "qwen-session-store")

    def _finish_command(self, command: records.CommandResult) -> None:
        if command.submits_prompt:
            return
        prompt = self._prompts.finish(command.prompt_id)
        if prompt is not None:
            prompt.span.end("done")

    def _join_turn(self, notice: records.SessionEvent) -> None:
        """A prompt that steers has no turn of its own: it ends with the one that it joined."""
        if notice.event == "Steered":
            prompt = self._prompts.finish(notice.prompt_id)
            if prompt is not None:
                prompt.span.end("done", qwen__steered=True)

    def _reject_prompt(self, error: ErrorMessage) -> bool:
        """An error outside of a turn refuses the prompt that it names, or the oldest one that has not begun.

        Errors about answers refuse none, and neither do errors of the model, which belong to a turn.
        """
        if error.error.get("param") == "request_id" or error.error.get("type") in MODEL_ERRORS:
            return False
        rejected = self._prompts.reject(error.prompt_id)
        if rejected is None:
            return False
        prompt_id, prompt = rejected
        prompt.span.end("error", error=error.code)
        error.raw["prompt_id"] = prompt_id
        error.raw["rejected"] = True
        return True

    def belongs_to(self, event: Event, prompt_id: str) -> bool:
        """True unless the event names another prompt than the one that was sent with this id."""
        named = event.prompt_id
        return named is None or self._prompts.first_id(named) == prompt_id

    def has_events(self) -> bool:
        """True if the next event is there already."""
        return self._queue.has_events()

    def end_events(self) -> None:
        """No further event is wanted; what waits is still given out."""
        self._queue.end(None)

    def take_event(self) -> Event | None:
        """The next event if it is there at once; None means to await `next_event`."""
        return self._queue.take()

    async def next_event(self) -> Event | None:
        """The next event; None after the end of the session."""
        return await self._queue.get()
