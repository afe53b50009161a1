"""One session: its prompts, its control requests, its end."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import (
    ControlRequestError,
    NotConnectedError,
    ProcessError,
    PromptRejectedError,
    QwenSDKError,
    SessionNotFoundError,
    TimeoutExpiredError,
    WorkerCrashedError,
)
from ...events import CommandHint, CommandResult, ControlResponse, ErrorMessage, Event, ResultMessage, SessionStarted
from ...options import QwenAgentOptions
from ...transport.binary import find_binary
from ...transport.stdio import ExitStatus
from ..control.callbacks import call, call_within
from ..control.dispatcher import ControlDispatcher
from ..control.requests import control_result
from ..hub.connection import HubConnection, fatal_error
from ..hub.launch import Launch, new_name
from ..hub.spill import Spill
from ..runtime import Runtime, Waiter
from .events import SessionEvents
from .open_prompts import OpenPrompt, new_prompt_id

__all__ = ["Query", "ends_prompt", "rejection_of"]

JsonObject = dict[str, Any]
T = TypeVar("T")
_END_SECONDS = 5.0
"""How long the exit of a hub that no longer reads is waited for."""


class Query(SessionEvents):
    """The host's half of a session."""

    def __init__(
        self, options: QwenAgentOptions, runtime: Runtime, hub: HubConnection, on_closed: Callable[[], None] | None
    ) -> None:
        super().__init__(options, runtime, hub)
        self.started: SessionStarted | None = None
        self.server_info: JsonObject = {}
        self.spill: Spill | None = None
        self._end_hub = on_closed
        """Ends the hub without waiting, if the session is the only one on it."""
        self._launch = Launch(options, self.session_id)
        self._dispatcher = ControlDispatcher(
            options, self._launch.hooks(), runtime, self.send, self._log, self._telemetry.tool_span
        )
        self._closed: Waiter | None = None
        self._is_abandoned = False

    # Opening

    async def start(self) -> None:
        """Opens the session in the hub and sends `initialize`: hooks, agents, servers, prompts and schemas of the host."""
        began = time.monotonic()
        try:
            await self._open()
        except BaseException:
            self._is_closing = True
            if self._hub.sessions.get(self.session_id) is self:
                del self._hub.sessions[self.session_id]
            self._clean_up()
            self._queue.end(None)
            raise
        milliseconds = round((time.monotonic() - began) * 1000)
        self._log("info", "session_open", worker=self.handshake.worker_version, duration_ms=milliseconds)

    @property
    def handshake(self) -> SessionStarted:
        """The first line of the hub, for this session."""
        assert self.started is not None
        return self.started

    async def _open(self) -> None:
        if self.options.continue_session:
            await self._find_latest_session()
        hub, launch, seconds = self._hub, self._launch, self.options.timeouts.start
        if self._mirror is not None:
            launch.extra_environment = self._mirror.environment(launch.environment())
            if launch.options.resume is not None:
                await self._mirror.fetch(launch.options.resume)
        if hub.sessions.setdefault(self.session_id, self) is not self:
            raise ControlRequestError(f"the session {self.session_id!r} is open already", code="duplicate_session")
        opened, initialized = f"sdk-{new_name()}", f"sdk-{new_name()}"
        lines = {initialized: {"subtype": "initialize", **launch.initialize(self._dispatcher.hook_ids)}}
        if self.options.transport is None:
            lines = {opened: launch.open_request(), **lines}
        else:
            await self._open_by_transport()
        # Both are sent before the greeting is read: nothing is believed before it.
        for request_id, fields in lines.items():
            self._requests.expect(request_id)
            with contextlib.suppress(NotConnectedError):
                await self._hub.send(
                    {"type": "control_request", "request_id": request_id, "session_id": self.session_id, **fields}
                )
        started = await hub.greeting()
        self.started = SessionStarted({**started.raw, "session_id": self.session_id})
        self._log.context["session_id"] = self.session_id
        for request_id, fields in lines.items():
            what = str(fields["subtype"])
            response = await self._or_failure(self._requests.answer(request_id, seconds, what))
            try:
                self.server_info = control_result(response, "worker", what)
            except ControlRequestError as error:
                raise _start_error(error, hub.stderr_tail) from None
        unknown = self.server_info.get("unknown_hook_events")
        if unknown:
            names = ", ".join(repr(name) for name in unknown)
            raise ValueError(
                f"hooks has {names}, which the worker does not know; see HookEvent for the events that there are"
            )

    async def _open_by_transport(self) -> None:
        """Opens the session where a transport of the host leads. What refuses `open` is a worker, which holds a session already."""
        started = await self._hub.greeting()
        try:
            await self._hub.request(self._launch.open_request(), self.options.timeouts.start)
        except ControlRequestError:
            self._hub.is_hub = False
            self.session_id = started.session_id or self.session_id

    async def _find_latest_session(self) -> None:
        """Replaces `continue_session` by the id of the latest session of the working directory."""
        command = [find_binary(self.options.binary_path), "sessions", "list", "--json", "--limit", "1"]
        cwd, environment = self.options.cwd, self._launch.environment()

        def run() -> Any:
            import subprocess

            listed = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
            return json.loads(listed.stdout or "[]")

        found = await call(self._runtime, run)
        if not found:
            where = os.path.abspath(cwd if cwd is not None else os.getcwd())
            raise SessionNotFoundError(f"there is no session in {where!r} to continue", code="no_session")
        resumed = self.options.replace(resume=str(found[0]["session_id"]), continue_session=False)
        if not resumed.fork_session:
            self.session_id = str(resumed.resume)
        self._launch = Launch(resumed, self.session_id)

    # Prompts

    async def prompt(
        self,
        content: str | Sequence[Mapping[str, Any]],
        *,
        delivery: str | None = None,
        options: Mapping[str, Any] | None = None,
        command: Mapping[str, Any] | None = None,
        answered: Waiter | None = None,
    ) -> tuple[str, OpenPrompt]:
        """Sends a prompt. With `answered` its events are not kept: the waiter is set at its end."""
        self._check_open()
        parts = _parts(content)
        if command is None and not any(part.get("text", True) for part in parts):
            raise PromptRejectedError("the prompt is empty", code="empty_prompt", param="prompt")
        prompt_id = new_prompt_id(self.session_id)
        line: JsonObject = {"session_id": self.session_id, "prompt_id": prompt_id, "uuid": prompt_id}
        line["input"] = {"origin": "user", "parts": parts}
        if command is not None:
            line["input"]["command"] = dict(command)
        if options:
            line["options"] = dict(options)
        if delivery is not None:
            line["delivery"] = delivery
        if self.options.tenant is not None:
            line["tenant"] = self.options.tenant
        span = self._telemetry.start_turn(self.session_id, prompt_id)
        line.update(span.carrier)
        prompt = self._prompts[prompt_id] = OpenPrompt(span, answered)
        if prompt.is_read:
            self._prompts.unread[prompt_id] = []
        self._log("info", "prompt", prompt_id=prompt_id, delivery=delivery or "queue")
        try:
            await self.send(line)
        except NotConnectedError:
            self._prompts.finish(prompt_id)
            self._prompts.unread.pop(prompt_id, None)
            raise
        return prompt_id, prompt

    async def ask(
        self, content: str | Sequence[Mapping[str, Any]], options: Mapping[str, Any] | None
    ) -> ResultMessage | CommandResult:
        """Sends a prompt and waits for its end. A caller that is cancelled ends the prompt; its result is dropped."""
        if not self._prompts.unread:
            # Notices between prompts that no one reads are not kept.
            self._queue.discard(None)
        answered = self._runtime.waiter()
        prompt_id, prompt = await self.prompt(content, options=options, answered=answered)
        self._queue.wake_writer()
        try:
            await answered.wait()
        except BaseException:
            self.cancel_soon(prompt_id)
            raise
        outcome = prompt.outcome
        if outcome is None:
            raise self._queue.failure or NotConnectedError("the session was closed before the turn ended")
        rejection = rejection_of(outcome)
        if rejection is not None:
            raise rejection
        assert isinstance(outcome, (ResultMessage, CommandResult))
        return outcome

    @property
    def open_prompts(self) -> list[str]:
        """The prompts whose end has not been seen, in their order."""
        return list(self._prompts)

    async def send(self, line: JsonObject) -> None:
        """Sends one line."""
        try:
            await self._hub.send({**line, "session_id": self.session_id})
        except NotConnectedError:
            self._telemetry.count("errors")
            # The end that is about to be read says more than the broken pipe.
            if not self._is_closing:
                await self._hub.wait_end(_END_SECONDS)
            if self._queue.failure is not None:
                raise self._queue.failure from None
            raise

    # Control requests

    async def request(
        self, subtype: str, fields: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> JsonObject:
        """Asks the worker something and waits for its answer."""
        return await self._ask({"type": "control_request", "subtype": subtype, **(fields or {})}, subtype, timeout)

    async def cancel(self, prompt_id: str | None = None) -> JsonObject:
        """Cancels the running turn, or a queued prompt by its id; `status` is `ok` or `noop`."""
        line: JsonObject = {"type": "control/cancel", "reason": "escape"}
        if prompt_id is not None:
            line["prompt_id"] = prompt_id
        return await self._ask(line, "cancel", None)

    def cancel_soon(self, prompt_id: str) -> None:
        """Ends a prompt that no one waits for any more, in a task of its own."""
        self.leave(prompt_id)
        if self._is_closing or self._queue.is_ended or not self._runtime.is_current():
            return

        async def cancel() -> None:
            with contextlib.suppress(Exception):
                await self.cancel(prompt_id)

        self._runtime.spawn(cancel, "qwen-cancel")

    async def hint(self, trigger: str, text: str, cursor: int, timeout: float | None) -> CommandHint:
        """Asks for suggestions."""
        self._check_open()
        line = {"type": "command_hint_request", "session_id": self.session_id, "trigger": trigger}
        sending = self.send({**line, "text": text, "cursor": cursor})
        seconds = self.options.timeouts.control if timeout is None else timeout
        return await self._or_failure(self._hints.ask(new_name(), sending, seconds, "command_hint_request"))

    async def _ask(self, line: JsonObject, what: str, timeout: float | None) -> JsonObject:
        self._check_open()
        seconds = self.options.timeouts.control if timeout is None else timeout
        request_id = f"sdk-{new_name()}"
        answer = self._requests.ask(request_id, self._send_request({**line, "request_id": request_id}), seconds, what)
        return control_result(await self._or_failure(answer), "worker", what)

    async def _send_request(self, line: JsonObject) -> None:
        # A reader that is behind must not keep the answer from being read.
        self._queue.wake_writer()
        await self.send(line)

    def resolve(self, answer: ControlResponse) -> bool:
        """Hands an answer to the task that asked; returns whether it was one of this session."""
        return self._requests.resolve(answer.request_id, answer.response)

    async def _or_failure(self, answer: Awaitable[T]) -> T:
        """The answer; where the session ended instead, the reason for that."""
        try:
            return await answer
        except NotConnectedError:
            if self._queue.failure is not None:
                raise self._queue.failure from None
            raise

    # Ending

    def hub_ended(self, failure: QwenSDKError | None) -> None:
        """The hub is gone, because it was closed if there is no failure."""
        if isinstance(failure, WorkerCrashedError):
            self._telemetry.count("crashes")
            self._log("error", "hub_ended", exit_code=failure.exit_code, open_prompts=len(self._prompts))
            failure = failure.of_session(self.session_id, self.last_result)
        if failure is None and not self._is_closing:
            failure = NotConnectedError("the pool was closed", code="pool_closed")
        self._stop(None if self._is_closing else failure)

    @property
    def has_failed(self) -> bool:
        """True once the hub is gone although the session was open."""
        return self._queue.failure is not None

    @property
    def is_closed(self) -> bool:
        """True once nothing more comes of the session, because it was closed."""
        return self._is_abandoned or (self._closed is not None and self._closed.is_set())

    async def close(self, timeout: float | None = None) -> None:
        """Ends the session within `timeout` seconds, whatever it is doing. May be called by any task, and twice.

        The hub withdraws the prompts that wait, cancels the running turn and lets `SessionEnd` hooks of the host run.
        """
        if self._is_abandoned:
            return
        if not self._runtime.is_current():
            # The loop of the session is gone, or it is another one: its tasks cannot be waited for.
            self.abandon()
            return
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = self._runtime.waiter()
        self._is_closing = True
        seconds = self.options.timeouts.close if timeout is None else timeout
        try:
            self._cancel_requests()
            self._queue.wake_writer()
            if self._hub.is_hub and not self._queue.is_ended:
                with contextlib.suppress(QwenSDKError):
                    await self._hub.request({"subtype": "close", "session_id": self.session_id}, seconds / 2)
            await self._dispatcher.close()
            await self._finish_store(seconds)
        except BaseException:
            self.abandon_hub()
            raise
        finally:
            self._hub.sessions.pop(self.session_id, None)
            if self.spill is not None:
                self.spill.discard()
            self._clean_up()
            self._stop(None)
            self._log("info", "session_closed")
            self._closed.set()

    async def _finish_store(self, seconds: float) -> None:
        """Gives the store of the host the rest of the session."""
        mirror = self._mirror
        if mirror is None:
            return
        try:
            await call_within(self._runtime, seconds, "session store", lambda: mirror.copy(self.session_id))
        except TimeoutExpiredError as error:
            self._log("error", "session_store_failed", error=str(error))

    def abandon(self) -> None:
        """Ends the session without waiting, for owners that are garbage-collected; callable from any thread."""
        if self._closed is not None or self._is_abandoned:
            return
        self._is_abandoned = True
        self._is_closing = True
        self.abandon_hub()
        self._clean_up()

    def abandon_hub(self) -> None:
        """Ends the hub if it is the session's own; otherwise has it close the session."""
        if self._end_hub is not None:
            self._end_hub()
            return
        hub, session_id = self._hub, self.session_id

        async def close() -> None:
            with contextlib.suppress(QwenSDKError):
                await hub.request({"subtype": "close", "session_id": session_id}, 5)
            hub.sessions.pop(session_id, None)

        hub.call_from_thread(close)

    def _clean_up(self) -> None:
        self._launch.clean_up()
        if self._mirror is not None:
            self._mirror.clean_up()

    def _cancel_requests(self) -> None:
        self._requests.cancel_all()
        self._hints.cancel_all()

    def _stop(self, failure: BaseException | None) -> None:
        self._queue.end(failure)
        self._prompts.end_all(type(failure).__name__ if failure else "closed")
        self._cancel_requests()
        if failure is not None:
            self._launch.clean_up()

    def _check_open(self) -> None:
        if self._queue.failure is not None:
            raise self._queue.failure
        if self._is_closing or self._queue.is_ended:
            raise NotConnectedError("the session is closed")
        if not self._runtime.is_current():
            message = "the client was connected in another event loop; connect one in the loop that uses it"
            raise NotConnectedError(message, code="other_loop")


def ends_prompt(event: Event | None) -> bool:
    """True for the last message of a prompt."""
    return isinstance(event, ResultMessage) or (isinstance(event, CommandResult) and not event.submits_prompt)


def rejection_of(event: Event | None) -> PromptRejectedError | None:
    """The error for a prompt that the worker refused."""
    if isinstance(event, ErrorMessage) and event.raw.get("rejected"):
        return PromptRejectedError(event.message, code=event.code, param=event.error.get("param"))
    return None


def _start_error(error: ControlRequestError, stderr_tail: str) -> QwenSDKError:
    """The reason for which a session could not be opened; a worker that did not start is reported in its own words."""
    if error.code in ("worker_lost", "worker_not_started", "worker_circuit_open"):
        return ProcessError(error.reason, stderr_tail=stderr_tail, code=error.code)
    if error.code in ("unknown_session", "no_session", "unsupported_protocol"):
        return fatal_error({"code": error.code, "message": error.reason}, ExitStatus(None))
    return error


def _parts(content: str | Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """The parts of a prompt."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = [dict(part) for part in content if isinstance(part, Mapping)] if isinstance(content, Sequence) else None
    if parts is not None and len(parts) == len(content):
        return parts
    message = "a prompt is a text, or a list of parts such as {'type': 'text', 'text': ...}"
    raise TypeError(f"{message}; it is {repr(content)[:200]}")
