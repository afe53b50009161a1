"""One `qwen hub` process and the sessions on it.

The hub starts, watches and replaces workers. This side starts the hub, directs lines to sessions, and reports its end.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import (
    ControlRequestError,
    HandshakeError,
    NotConnectedError,
    ProcessError,
    ProtocolVersionError,
    QwenSDKError,
    WorkerCrashedError,
)
from ...events import ControlResponse, Event, FatalErrorMessage, SessionStarted, parse_line
from ...options import Timeouts
from ...transport.stdio import ExitStatus, Transport
from ..control.callbacks import call_within
from ..control.requests import PendingRequests, control_result
from ..runtime import Runtime
from .launch import PROTOCOL_VERSION, new_name

if TYPE_CHECKING:
    from .spill import Spill

__all__ = ["HubConnection", "SessionReceiver"]

JsonObject = dict[str, Any]


class SessionReceiver(Protocol):
    """Receives the lines of one session."""

    spill: Spill | None

    def handle(self, event: Event, size: int) -> None: ...
    def handle_lines(self, lines: Sequence[str]) -> None: ...
    def resolve(self, answer: ControlResponse) -> bool: ...
    def flush(self) -> None: ...
    def is_full(self) -> bool: ...
    async def room(self) -> None: ...
    def hub_ended(self, failure: QwenSDKError | None) -> None: ...


class HubConnection:
    """The hub's process, its reader, and the way of each line to its session."""

    def __init__(self, runtime: Runtime, timeouts: Timeouts, transport: Transport) -> None:
        self._runtime = runtime
        self._timeouts = timeouts
        self._transport = transport
        self._greeting = runtime.waiter()
        self._first: Event | None = None
        self._fatal: FatalErrorMessage | None = None
        self._status: ExitStatus | None = None
        self._over = runtime.waiter()
        self._requests: PendingRequests[JsonObject] = PendingRequests(runtime, "hub")
        self.started: SessionStarted | None = None
        self.sessions: dict[str, SessionReceiver] = {}
        self.is_closing = False
        self.is_hub = True
        """False if a transport of the host leads to a single worker."""

    # Start

    async def start(self) -> None:
        """Starts the hub; `greeting` waits for it."""
        try:
            await self._transport.start()
        except BaseException:
            self.is_closing = True
            raise
        self._runtime.spawn(self._pump, "qwen-hub-reader")

    async def greeting(self) -> SessionStarted:
        """The hub's first line. Raises an error that names the cause if none comes within the start time-out."""
        in_time = await self._greeting.wait(self._timeouts.start)
        if self.started is None:
            failure = await self._start_failure(in_time)
            await self.close(0)
            raise failure
        try:
            check_handshake(self.started)
        except ProtocolVersionError:
            await self.close(0)
            raise
        return self.started

    async def _start_failure(self, in_time: bool) -> ProcessError:
        if not in_time:
            message = (
                f"the program did not greet within {self._timeouts.start:g} s (start time-out); is it a qwen binary?"
            )
            status = await self._transport.close(0.5)
            return HandshakeError(message, stderr_tail=status.stderr_tail, code="start_timeout")
        if self._fatal is not None or self._first is not None:
            # The end of its input ends a program that waits for it.
            self._status = await self._transport.close(1)
        elif not await self._over.wait(0.5):
            message = "the program closed its output before its handshake; is it a qwen binary?"
            return HandshakeError(message, stderr_tail=self.stderr_tail, code="not_a_worker")
        status = self._status or ExitStatus(None)
        if self._fatal is not None:
            return fatal_error(self._fatal, status)
        if self._first is not None:
            message = f"the program is not a qwen hub: its first line was {self._first!r}"
        else:
            message = f"the program {status.describe()} before its handshake; is it a qwen binary?"
        return HandshakeError(message, exit_code=status.code, stderr_tail=status.stderr_tail, code="not_a_worker")

    @property
    def stderr_tail(self) -> str:
        """The last output of the hub and its workers on standard error."""
        return str(getattr(self._transport, "stderr_tail", ""))

    @property
    def has_ended(self) -> bool:
        """True once the process is gone."""
        return self._status is not None

    # Lines

    async def _pump(self) -> None:
        """Reads until the end. One session sets the pace of its hub; where there are several, lines for a slow one are put aside."""
        transport = self._transport
        try:
            while lines := await transport.receive():
                if self.started is None:
                    lines = self._read_greeting(lines)
                if len(self.sessions) == 1 and self.started is not None:
                    await self._deliver_to_one(next(iter(self.sessions.values())), lines)
                else:
                    self._deliver(lines)
                    # A fast stream must not starve the sessions' own tasks.
                    await self._runtime.checkpoint()
            self._greeting.set()
            status = await exit_status(transport)
        except BaseException as error:
            # The loop is ending, or there is a defect: no one reads any more.
            transport.kill()
            self._end(ExitStatus(None))
            await transport.close(0)
            if not isinstance(error, Exception):
                raise
            return
        self._end(status)
        await transport.close(0)

    async def _deliver_to_one(self, session: SessionReceiver, lines: Sequence[str]) -> None:
        if session.spill is not None:
            self._deliver(lines)
            return
        session.handle_lines(lines)
        session.flush()
        while session.is_full() and len(self.sessions) == 1 and not self.is_closing:
            await session.room()

    def _deliver(self, lines: Sequence[str]) -> None:
        touched: set[SessionReceiver] = set()
        for line in lines:
            event = parse_line(line)
            if isinstance(event, ControlResponse):
                self.resolve(event)
                continue
            session = self.sessions.get(event.session_id or "")
            if session is None and event.prompt_id is not None:
                # A prompt that is withdrawn before its worker has taken up the session ends under the worker's id.
                session = self.sessions.get(event.prompt_id.partition("########")[0])
            if session is None:
                continue
            if session.spill is not None or (session.is_full() and not event.type.startswith("control_")):
                from .spill import Spill

                session.spill = session.spill or Spill(session, self._runtime)
                session.spill.put(event, line)
            else:
                session.handle(event, len(line))
            touched.add(session)
        for session in touched:
            session.flush()

    def _read_greeting(self, lines: Sequence[str]) -> Sequence[str]:
        """Looks for the handshake; returns the lines after it."""
        for number, line in enumerate(lines):
            event = parse_line(line)
            if isinstance(event, SessionStarted):
                self.started = event
                self._greeting.set()
                return lines[number + 1 :]
            if isinstance(event, FatalErrorMessage):
                self._fatal = event
            elif self._first is None:
                self._first = event
            self._greeting.set()
        return ()

    def resolve(self, answer: ControlResponse) -> None:
        """Passes an answer to the caller that asked, whichever session it names."""
        if not self._requests.resolve(answer.request_id, answer.response):
            for session in self.sessions.values():
                if session.resolve(answer):
                    return

    async def send(self, line: JsonObject) -> None:
        """Sends one line to the hub."""
        if self._status is not None or self.is_closing:
            raise NotConnectedError("the hub is not running")
        await self._transport.send(json.dumps(line, ensure_ascii=False))

    async def request(self, fields: JsonObject, timeout: float) -> JsonObject:
        """Asks the hub something and waits for the answer."""
        request_id, what = f"hub-{new_name()}", str(fields.get("subtype"))
        sending = self._send_always({"type": "control_request", "request_id": request_id, **fields})
        return control_result(await self._requests.ask(request_id, sending, timeout, what), "hub", what)

    async def _send_always(self, line: JsonObject) -> None:
        await self._transport.send(json.dumps(line, ensure_ascii=False))

    # End

    def fail(self, fatal: FatalErrorMessage) -> None:
        """Notes why the hub is about to end."""
        self._fatal = fatal

    def _end(self, status: ExitStatus) -> None:
        self._status = status
        self._over.set()
        self._greeting.set()
        self._requests.cancel_all()
        failure = None if self.is_closing else self._end_failure(status)
        for session in list(self.sessions.values()):
            if session.spill is not None:
                session.spill.end(failure)
            else:
                session.hub_ended(failure)
        self.sessions.clear()

    def _end_failure(self, status: ExitStatus) -> QwenSDKError:
        if self._fatal is not None:
            return fatal_error(self._fatal, status)
        message = f"'qwen hub' {status.describe()} while sessions were open; resume them to continue"
        return WorkerCrashedError(message, exit_code=status.code, stderr_tail=status.stderr_tail, code="worker_crashed")

    async def wait_end(self, timeout: float) -> None:
        """Waits until the hub is gone, at most `timeout` seconds."""
        await self._over.wait(timeout)

    async def close(self, timeout: float) -> None:
        """Ends the hub with its workers within `timeout` seconds. Every session is closed first: its prompts are withdrawn."""
        is_first, self.is_closing = not self.is_closing, True
        if not self._runtime.is_current():
            self.kill()
            return
        for session in list(self.sessions.values()):
            session.flush()
        if is_first and self.is_hub and self.started is not None and timeout > 0:
            with contextlib.suppress(Exception):
                await call_within(self._runtime, timeout / 2, "hub", lambda: self._close_sessions(timeout))
        await self._transport.close(timeout)

    async def _close_sessions(self, timeout: float) -> None:
        for session_id in list(self.sessions):
            with contextlib.suppress(ControlRequestError):
                await self.request({"subtype": "close", "session_id": session_id}, timeout)

    def is_in_current_loop(self) -> bool:
        """True if the caller runs in the loop that the hub was started in."""
        return self._runtime.is_current()

    def call_from_thread(self, work: Any) -> None:
        """Runs a coroutine function in the loop of the hub."""
        self._runtime.call_from_thread(lambda: self._runtime.spawn(work, "qwen-hub-close"))

    def kill(self) -> None:
        """Ends the hub at once; its workers end with it."""
        self.is_closing = True
        self._transport.kill()


async def exit_status(transport: Transport) -> ExitStatus:
    """How the process of a transport ended, once its output is at its end."""
    wait_exit = getattr(transport, "wait_exit", None)
    if wait_exit is None:
        return ExitStatus(None)
    status = await wait_exit(2.0)
    if status is None:
        # Its output is closed but the process lives: it is useless.
        transport.kill()
        status = await wait_exit(2.0)
    return status or ExitStatus(None)


def check_handshake(started: SessionStarted) -> None:
    """Refuses another major version of the protocol, and programs that cannot do what every session needs."""
    version = started.protocol_version
    if version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
        message = (
            f"the worker ({started.worker_version or 'unknown version'}) speaks protocol {version}, this SDK speaks "
            f"{PROTOCOL_VERSION}; install versions of the SDK and of qwen that belong together"
        )
        raise ProtocolVersionError(message, code="unsupported_protocol")
    missing = {"control", "sessions"} - started.capabilities
    if missing:
        message = f"the worker lacks what this SDK needs: {', '.join(sorted(missing))}; install a newer qwen"
        raise ProtocolVersionError(message, code="missing_capability")


def fatal_error(fatal: FatalErrorMessage | Mapping[str, Any], status: ExitStatus) -> ProcessError:
    """The program's own reason for its end, as an error."""
    if isinstance(fatal, FatalErrorMessage):
        fatal = fatal.error
    from ...errors import SessionNotFoundError

    code = str(fatal.get("code") or "")
    kinds = {"unsupported_protocol": ProtocolVersionError}
    is_session = code in ("unknown_session", "no_session", "session_not_found")
    kind = SessionNotFoundError if is_session else kinds.get(code, ProcessError)
    return kind(str(fatal.get("message", "")), exit_code=status.code, code=code)
