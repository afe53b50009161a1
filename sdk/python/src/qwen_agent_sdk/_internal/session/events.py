"""What a session makes of the worker's events: answers for those who wait, turns that end, and the rest for the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...events import Event, TurnReader, parse_line, records
from ...events.control import ControlCancel, ControlRequest, ControlResponse
from ...events.messages import AssistantChunk, ErrorMessage, FatalErrorMessage, ResultMessage
from ...options import QwenAgentOptions
from ..control.dispatcher import ControlDispatcher
from ..control.requests import PendingRequests
from ..hub.connection import HubConnection
from ..hub.launch import new_session_id
from ..log import SessionLogger
from ..runtime import Runtime
from ..telemetry import Telemetry
from .open_prompts import OpenPrompt, OpenPrompts
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

    def __init__(self, options: QwenAgentOptions, runtime: Runtime, hub: HubConnection) -> None:
        self.options = options
        self._hub = hub
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

    def handle_lines(self, lines: Sequence[str]) -> None:
        """Handles a batch of lines. Chunks, of which there are thousands, take the shortest way."""
        put, prompts = self._queue.put, self._prompts
        for line in lines:
            event = parse_line(line)
            if type(event) is AssistantChunk:
                prompt = prompts.get(event.raw.get("prompt_id", ""))
                if prompt is not None and prompt.is_started and prompt.is_read:
                    message = prompt.reader.read(event)
                    put(event, len(line))
                    if message is not None:
                        put(message, 0)
                    continue
            self.handle(event, len(line))

    def handle(self, event: Event, size: int) -> None:
        """Handles one event in its order."""
        if isinstance(event, ControlRequest):
            self._dispatcher.dispatch(event)
        elif isinstance(event, ControlResponse):
            self._hub.resolve(event)
        elif isinstance(event, ControlCancel):
            self._dispatcher.withdraw(event.request_id)
        elif isinstance(event, records.CancelResult) or (
            isinstance(event, records.Heartbeat) and not self.options.include_heartbeats
        ):
            return
        elif isinstance(event, records.CommandHint):
            if not self._hints.resolve_oldest(event):
                self._queue.put(event, size)
        elif isinstance(event, FatalErrorMessage):
            self._hub.fail(event)
            self._queue.put(event, size)
        else:
            self._handle_turn(event, size)

    def _handle_turn(self, event: Event, size: int) -> None:
        """Handles an event of a turn, or a notice about the session."""
        if isinstance(event, records.TerminalOutput) and event.ends_run:
            return
        if isinstance(event, records.MalformedLine):
            self._telemetry.count("errors")
            self._log("warning", "malformed_line", problem=event.problem)
        if isinstance(event, records.SessionEvent) and event.event == "Custom":
            self._follow_fork(event)
        prompt = self._prompts.get(event.prompt_id or "")
        if isinstance(event, ErrorMessage):
            prompt = self._reject_prompt(event) or prompt
        elif prompt is not None:
            prompt.is_started = True
        message = (prompt.reader if prompt is not None else self._reader).read(event)
        if prompt is None or prompt.is_read:
            # The final answer comes before the result, a message after its last chunk.
            is_answer = message is not None and isinstance(event, ResultMessage)
            for each in (message, event) if is_answer else (event, message):
                if each is not None:
                    self._queue.put(each, size if each is event else 0)
        if isinstance(event, ResultMessage):
            self._finish_turn(event)
        elif isinstance(event, records.CommandResult):
            self._finish_command(event)
        elif isinstance(event, records.SessionEvent) and event.event == "Steered":
            # A prompt that steers has no turn: it ends with the one that it joined, whose reader receives the notice.
            self._prompts.unread.pop(event.prompt_id or "", None)
            self._finish_prompt(event, "done", qwen__steered=True)

    def _follow_fork(self, notice: records.SessionEvent) -> None:
        """After a crash with `on_crash="fork"` the session continues under the id of the fork."""
        fork = notice.worker_restarted.get("session_id")
        if isinstance(fork, str) and fork != self.session_id:
            self._hub.sessions[fork] = self._hub.sessions.pop(self.session_id)
            self.session_id = self._log.context["session_id"] = fork

    def flush(self) -> None:
        """Wakes the reader after a batch."""
        self._queue.flush()

    def is_full(self) -> bool:
        """True while the worker should wait for the reader: not while a task waits for an answer or for a result alone."""
        if self._is_closing or not self._queue.is_full() or self._requests:
            return False
        return all(prompt.is_read for prompt in self._prompts.values())

    async def room(self) -> None:
        """Waits until there is room, or until an answer is awaited."""
        await self._queue.room()

    def _finish_prompt(self, event: Event, status: str, *, error: str = "", **attributes: Any) -> None:
        """Ends a prompt: its span, and the wait of the task that asked."""
        prompt = self._prompts.finish(event.prompt_id)
        if prompt is None:
            return
        prompt.span.end(status, error=error, **attributes)
        prompt.outcome = event
        if prompt.answered is not None:
            prompt.answered.set()

    def _finish_turn(self, result: ResultMessage) -> None:
        schema = self.options.output_schema
        result.output_type = None if isinstance(schema, Mapping) else schema
        if not result.is_error:
            self.last_result = result
        usage = result.usage
        self._finish_prompt(
            result,
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
        if not command.submits_prompt:
            self._finish_prompt(command, "done")

    def _reject_prompt(self, error: ErrorMessage) -> OpenPrompt | None:
        """An error outside of a turn refuses the prompt that it names, or the oldest one that has not begun.

        Errors about answers refuse none, and neither do errors of the model, which belong to a turn.
        """
        if error.error.get("param") == "request_id" or error.error.get("type") in MODEL_ERRORS:
            return None
        rejected = self._prompts.reject(error.prompt_id)
        if rejected is None:
            return None
        prompt_id, prompt = rejected
        error.raw["prompt_id"] = prompt_id
        error.raw["rejected"] = True
        self._prompts[prompt_id] = prompt
        self._finish_prompt(error, "error", error=error.code)
        return prompt

    # The session's reader

    async def next_of(self, target: str | None) -> Event | None:
        """The next event for a reader of this prompt, or of everything; None after the end of the session.

        Events of other prompts whose response is still to be received are kept for it.
        """
        unread = self._prompts.unread
        while True:
            event = self._prompts.take_held(target) if unread else None
            if event is not None:
                return event
            event = await self._queue.get()
            if event is None or target is None:
                return event
            named = event.raw.get("prompt_id")
            if named == target or named not in unread:
                return event
            unread[named].append(event)

    def received(self, event: Event) -> None:
        """Notes that the reader has the end of a prompt."""
        self._prompts.unread.pop(event.prompt_id or "", None)

    def leave(self, prompt_id: str) -> None:
        """Drops everything that still comes for a prompt, and ends it: no one waits for it any more."""
        prompt = self._prompts.get(prompt_id)
        if prompt is not None:
            prompt.is_read = False
        self._prompts.unread.pop(prompt_id, None)
        self._queue.discard(prompt_id)

    def has_events(self) -> bool:
        """True if the next event is there already."""
        return self._queue.has_events()

    def end_events(self) -> None:
        """No further event is wanted; what waits is still given out."""
        self._queue.end(None)

    def take_event(self, target: str | None) -> Event | None:
        """The next chunk of a prompt if it is there at once; None means to await `next_of`."""
        return self._queue.take(target)

    def oldest_unread(self) -> str | None:
        """The oldest prompt whose end the reader has not received."""
        return next(iter(self._prompts.unread), None)
