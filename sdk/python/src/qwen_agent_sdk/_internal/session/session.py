"""One session: its prompts, its control requests, its end, and its recovery from crashes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import (
    NotConnectedError,
    PromptRejectedError,
    QwenSDKError,
    SessionNotFoundError,
    TimeoutExpiredError,
    WorkerCrashedError,
    WorkerUnresponsiveError,
)
from ...events import (
    CommandHint,
    FatalErrorMessage,
    SessionStarted,
    WorkerRestarted,
)
from ...options import QwenAgentOptions
from ...transport.stdio import ExitStatus
from ..control.callbacks import call_within
from ..control.dispatcher import ControlDispatcher
from ..control.requests import control_result
from ..lock import TaskLock
from ..runtime import Runtime, TaskHandle, Waiter
from ..worker.channel import Channel, fatal_error
from ..worker.launch import Launch, new_name, new_session_id
from .events import SessionEvents
from .open_prompts import new_prompt_id

__all__ = ["ChannelFactory", "Query"]

JsonObject = dict[str, Any]
T = TypeVar("T")
_END_SECONDS = 5.0
"""How long the exit of a worker that no longer reads is waited for."""

ChannelFactory = Callable[[Launch, Runtime], Channel]


class Query(SessionEvents):
    """The host's half of a session."""

    def __init__(self, options: QwenAgentOptions, runtime: Runtime, make_channel: ChannelFactory) -> None:
        super().__init__(options, runtime)
        self.started: SessionStarted | None = None
        self.server_info: JsonObject = {}
        self.restarts = 0
        self.asking = TaskLock(runtime)
        """Held by the task that sends a prompt and waits for its result."""
        self._make_channel = make_channel
        self._launch = Launch(options, self.session_id)
        self._dispatcher = ControlDispatcher(
            options, self._launch.hooks(), runtime, self.send, self._log, self._telemetry.tool_span
        )
        self._channel: Channel | None = None
        self._monitor: TaskHandle | None = None
        self._is_unresponsive = False
        self._recovery: TaskHandle | None = None
        self._closed: Waiter | None = None
        self._is_abandoned = False
        self._over: Waiter | None = None

    # Opening

    async def start(self) -> None:
        """Starts the worker and shakes hands."""
        try:
            await self._open(self._launch)
        except BaseException:
            self._is_closing = True
            self._clean_up()
            if self._channel is not None:
                self._channel.kill()
            self._queue.end(None)
            raise
        timeouts = self.options.timeouts
        # In a pool the hub watches its workers, and a session at rest has none.
        if self.options.worker_pool is None and timeouts.heartbeat_interval > 0 and timeouts.heartbeat > 0:
            self._monitor = self._runtime.spawn(self._watch_heartbeats, "qwen-heartbeat")

    async def _open(self, launch: Launch) -> None:
        if self._mirror is not None:
            launch.extra_environment = self._mirror.environment(launch.environment())
            if launch.options.resume is not None:
                await self._mirror.fetch(launch.options.resume)
        channel = self._channel = self._make_channel(launch, self._runtime)
        began = time.monotonic()
        self.started = await channel.open(self)
        self.session_id = self.started.session_id or self.session_id
        self._log.context["session_id"] = self.session_id
        await self.initialize(launch)
        milliseconds = round((time.monotonic() - began) * 1000)
        self._log("info", "session_open", worker=self.started.worker_version, duration_ms=milliseconds)

    async def initialize(self, launch: Launch) -> None:
        """Sends `initialize`: hooks, agents, servers, prompts and schemas of the host."""
        fields = launch.initialize(self._dispatcher.hook_ids)
        self.server_info = await self.request("initialize", fields, timeout=self.options.timeouts.start)
        unknown = self.server_info.get("unknown_hook_events")
        if unknown:
            names = ", ".join(repr(name) for name in unknown)
            raise ValueError(
                f"hooks has {names}, which the worker does not know; see HookEvent for the events that there are"
            )

    # Prompts

    async def prompt(
        self,
        content: str | Sequence[Mapping[str, Any]],
        *,
        delivery: str | None = None,
        options: Mapping[str, Any] | None = None,
        command: Mapping[str, Any] | None = None,
    ) -> str:
        """Sends a prompt; returns its id."""
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
        self._prompts.add(prompt_id, line, span)
        self._log("info", "prompt", prompt_id=prompt_id, delivery=delivery or "queue")
        try:
            await self.send(line)
        except NotConnectedError:
            if self._recovery is not None or self._may_recover():
                # The prompt is sent again by the new worker.
                return prompt_id
            self._prompts.discard(prompt_id)
            raise
        return prompt_id

    @property
    def open_prompts(self) -> list[str]:
        """The prompts whose end has not been seen, in their order."""
        return list(self._prompts)

    async def send(self, line: JsonObject) -> None:
        """Sends one line."""
        if self._channel is None:
            raise NotConnectedError("the session is not connected")
        try:
            await self._channel.send(line)
        except NotConnectedError:
            self._telemetry.count("errors")
            # The end that is about to be read says more than the broken pipe.
            if not self._is_closing and not self._may_recover():
                await self._queue.wait_end(_END_SECONDS)
            if self._queue.failure is not None:
                raise self._queue.failure from None
            raise

    # Control requests to the worker

    async def request(
        self, subtype: str, fields: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> JsonObject:
        """Asks the worker something and waits for its answer."""
        self._check_open()
        request_id = f"sdk-{new_name()}"
        line = {"type": "control_request", "request_id": request_id, "session_id": self.session_id}
        line.update({"subtype": subtype, **(fields or {})})
        return await self._ask(request_id, line, subtype, timeout)

    async def cancel(self, prompt_id: str | None = None) -> JsonObject:
        """Cancels the running turn, or a queued prompt by its id; `status` is `ok` or `noop`."""
        self._check_open()
        request_id = f"sdk-{new_name()}"
        line: JsonObject = {"type": "control/cancel", "request_id": request_id, "session_id": self.session_id}
        line["reason"] = "escape"
        if prompt_id is not None:
            line["prompt_id"] = prompt_id
        return await self._ask(request_id, line, "cancel", None)

    def cancel_soon(self, prompt_id: str) -> None:
        """Cancels a prompt that nobody waits for any more, in a task of its own."""
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

    async def _ask(self, request_id: str, line: JsonObject, what: str, timeout: float | None) -> JsonObject:
        seconds = self.options.timeouts.control if timeout is None else timeout
        answer = self._requests.ask(request_id, self._send_request(line), seconds, what)
        return control_result(await self._or_failure(answer), "worker", what)

    async def _send_request(self, line: JsonObject) -> None:
        # A reader that is behind must not keep the answer from being read.
        self._queue.wake_writer()
        await self.send(line)

    async def _or_failure(self, answer: Awaitable[T]) -> T:
        """The answer; where the session ended instead, the reason for that."""
        try:
            return await answer
        except NotConnectedError:
            if self._queue.failure is not None:
                raise self._queue.failure from None
            raise

    # Heartbeats, crashes, recovery

    async def _watch_heartbeats(self) -> None:
        timeouts = self.options.timeouts
        while not self._is_closing:
            expected = time.monotonic() + timeouts.heartbeat_interval
            await self._runtime.sleep(timeouts.heartbeat_interval)
            channel = self._channel
            if channel is None or self._recovery is not None:
                continue
            now = time.monotonic()
            if now - expected > timeouts.heartbeat_interval or self._queue.is_full():
                # The host's loop was blocked, or its reader is behind: the silence is ours.
                channel.last_activity = now
            if now - channel.last_activity > timeouts.heartbeat:
                self._is_unresponsive = True
                self._log("error", "worker_unresponsive", seconds=round(now - channel.last_activity, 1))
                channel.kill()

    def _may_recover(self) -> bool:
        return (
            self.options.on_crash != "raise"
            and self.options.persist_session
            and not self._is_closing
            and self.restarts < self.options.max_restarts
        )

    def ended(self, status: ExitStatus, fatal: FatalErrorMessage | None) -> None:
        """The worker is gone."""
        fatal = fatal or self._fatal
        if self._is_closing:
            self._stop(None)
            if self._over is not None:
                self._over.set()
            return
        self._telemetry.count("crashes")
        self._log("error", "worker_ended", exit_code=status.code, open_prompts=len(self._prompts))
        if fatal is None and self._may_recover() and self._recovery is None:
            self._recovery = self._runtime.spawn(lambda: self._recover(status), "qwen-recovery")
            return
        if fatal is not None:
            self._stop(fatal_error(fatal, status))
        else:
            self._stop(self._crash(status))

    def pool_closed(self) -> None:
        """The pool of the session was closed by its owner."""
        self._stop(None if self._is_closing else NotConnectedError("the pool was closed", code="pool_closed"))

    @property
    def has_failed(self) -> bool:
        """True once the worker is gone without having been asked to."""
        return self._queue.failure is not None

    def _how_it_ended(self, status: ExitStatus) -> str:
        return "missed its heartbeats and was killed" if self._is_unresponsive else status.describe()

    def _crash(self, status: ExitStatus) -> WorkerCrashedError:
        kind = WorkerUnresponsiveError if self._is_unresponsive else WorkerCrashedError
        how = self._how_it_ended(status)
        during = "in the middle of a turn" if self._prompts else "while the session was open"
        return kind(
            f"the worker {how} {during} (session {self.session_id}); resume the session to go on",
            exit_code=status.code,
            stderr_tail=status.stderr_tail,
            session_id=self.session_id,
            last_result=self.last_result,
        )

    async def _recover(self, status: ExitStatus) -> None:
        """Starts a new worker and brings the open prompts to their end."""
        recovery = self.options.on_crash
        try:
            while True:
                self.restarts += 1
                reason = self._how_it_ended(status)
                self._is_unresponsive = False
                self._cancel_requests()
                notice = {
                    "type": "sdk/worker_restarted",
                    "session_id": self.session_id,
                    "reason": reason,
                    "recovery": recovery,
                    "attempt": self.restarts,
                }
                try:
                    await self._reopen(recovery)
                    break
                except QwenSDKError as error:
                    self._log("error", "recovery_failed", attempt=self.restarts, error=str(error))
                    if self.restarts >= self.options.max_restarts:
                        raise
                    await self._runtime.sleep(min(0.1 * 2**self.restarts, 5))
            notice["new_session_id"] = self.session_id
            self._queue.put(WorkerRestarted(notice), 0)
            self._queue.flush()
            await self._continue_prompts(recovery)
            self._recovery = None
        except Exception as error:
            self._recovery = None
            crash = self._crash(status)
            crash.__cause__ = error
            self._stop(crash)

    async def _reopen(self, recovery: str) -> None:
        changes: JsonObject = {"resume": self.session_id, "continue_session": False, "resume_at": None}
        changes.update({"fork_session": recovery == "fork", "session_id": None})
        fresh_id = new_session_id() if recovery == "fork" else self.session_id
        launch = Launch(self.options.replace(**changes), fresh_id)
        self._launch.clean_up()
        self._launch = launch
        try:
            await self._open(launch)
        except SessionNotFoundError:
            # The worker died before it wrote anything: there is nothing to resume, the session begins anew.
            changes.update({"resume": None, "fork_session": False, "session_id": self.session_id})
            self._launch = Launch(self.options.replace(**changes), self.session_id)
            await self._open(self._launch)

    async def _continue_prompts(self, recovery: str) -> None:
        is_continued = False
        if recovery == "resume" and self._prompts:
            is_continued = (await self.request("continue_last_turn")).get("accepted") is True
        for prompt in self._prompts.renew(self.session_id, after=int(is_continued)):
            await self.send(prompt.line)

    # Ending

    @property
    def is_closed(self) -> bool:
        """True once nothing more comes of the session, because it was closed."""
        return self._is_abandoned or (self._closed is not None and self._closed.is_set())

    async def close(self, timeout: float | None = None) -> None:
        """Ends the session within `timeout` seconds, whatever it is doing. May be called by any task, and twice."""
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
            for task in (self._monitor, self._recovery):
                if task is not None:
                    task.cancel()
            self._cancel_requests()
            self._queue.wake_writer()
            if self._channel is not None:
                if not self._queue.is_ended:
                    await self._end_politely(seconds)
                await self._channel.close(seconds)
            await self._dispatcher.close()
            await self._finish_store(seconds)
        except BaseException:
            if self._channel is not None:
                self._channel.kill()
            raise
        finally:
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

    async def _end_politely(self, seconds: float) -> None:
        """Cancels the running turn, so that the worker need not finish it, and lets `SessionEnd` hooks of the host run: after the
        end of input the worker could not read their answers."""
        if self._prompts:
            line = {"type": "control/cancel", "session_id": self.session_id, "reason": "escape"}
            await self._post(line, min(1.0, seconds / 4))
        if "SessionEnd" in self._dispatcher.hook_ids and self.options.worker_pool is None:
            self._over = self._runtime.waiter()
            line = {"type": "control_request", "request_id": f"sdk-{new_name()}", "subtype": "end_session"}
            await self._post(line, min(1.0, seconds / 4))
            await self._over.wait(seconds / 2)

    async def _post(self, line: JsonObject, timeout: float) -> None:
        """Sends a line whose failure does not matter."""
        channel = self._channel
        assert channel is not None
        done = self._runtime.waiter()

        async def send() -> None:
            with contextlib.suppress(Exception):
                await channel.send(line)
            done.set()

        task = self._runtime.spawn(send, "qwen-goodbye")
        if not await done.wait(timeout):
            task.cancel()

    def abandon(self) -> None:
        """Ends the worker without waiting, for owners that are garbage-collected; callable from any thread."""
        if self._closed is not None or self._is_abandoned:
            return
        self._is_abandoned = True
        self._is_closing = True
        if self._channel is not None:
            self._channel.kill()
        self._clean_up()

    def _clean_up(self) -> None:
        self._launch.clean_up()
        if self._mirror is not None:
            self._mirror.clean_up()

    def _cancel_requests(self) -> None:
        self._requests.cancel_all()
        self._hints.cancel_all()

    def _stop(self, failure: BaseException | None) -> None:
        self._prompts.end_all(type(failure).__name__ if failure else "closed")
        self._queue.end(failure)
        self._cancel_requests()
        if self._monitor is not None:
            self._monitor.cancel()
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


def _parts(content: str | Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """The parts of a prompt."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = [dict(part) for part in content if isinstance(part, Mapping)] if isinstance(content, Sequence) else None
    if parts is not None and len(parts) == len(content):
        return parts
    message = "a prompt is a text, or a list of parts such as {'type': 'text', 'text': ...}"
    raise TypeError(f"{message}; it is {repr(content)[:200]}")
