"""The way from a session to its worker. A worker of its own here; `pool` has the way through a hub."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

from ...errors import (
    HandshakeError,
    NotConnectedError,
    ProcessError,
    ProtocolVersionError,
    SessionNotFoundError,
)
from ...events import Event, FatalErrorMessage, SessionStarted, parse_line
from ...transport.stdio import ExitStatus, StdIOSubprocessTransport, Transport
from ..runtime import Runtime, TaskHandle
from .launch import PROTOCOL_VERSION, Launch

__all__ = ["Channel", "Receiver", "WorkerChannel", "check_handshake", "exit_status", "fatal_error"]

_SESSION_CODES = frozenset({"unknown_session", "no_session", "session_not_found"})


class Receiver(Protocol):
    """Takes what comes from the worker."""

    def handle(self, event: Event, size: int) -> None: ...
    def handle_lines(self, lines: Sequence[str]) -> None: ...
    def flush(self) -> None: ...
    def is_full(self) -> bool: ...
    async def room(self) -> None: ...
    def ended(self, status: ExitStatus, fatal: FatalErrorMessage | None) -> None: ...
    def pool_closed(self) -> None: ...


class Channel(Protocol):
    """Carries the lines of one session."""

    last_activity: float
    """When the worker last showed a sign of life (`time.monotonic`)."""

    async def open(self, receiver: Receiver) -> SessionStarted: ...
    async def send(self, line: dict[str, Any]) -> None: ...
    async def close(self, timeout: float) -> None: ...
    def kill(self) -> None: ...


class WorkerChannel:
    """One worker process for one session."""

    def __init__(self, launch: Launch, runtime: Runtime, transport: Transport | None = None) -> None:
        self._launch = launch
        self._runtime = runtime
        self._given = transport
        self._transport: Transport | None = None
        self._pump_task: TaskHandle | None = None
        self._handshake = runtime.waiter()
        self._started: SessionStarted | None = None
        self._fatal: FatalErrorMessage | None = None
        self._first: Event | None = None
        self._status: ExitStatus | None = None
        self._receiver: Receiver | None = None
        self._closing = False
        self._over = runtime.waiter()
        self.last_activity = time.monotonic()

    @property
    def transport(self) -> Transport:
        """The transport, once the channel is open."""
        if self._transport is None:
            raise NotConnectedError("the worker is not started")
        return self._transport

    async def open(self, receiver: Receiver) -> SessionStarted:
        """Starts the worker and waits for its handshake."""
        options = self._launch.options
        self._receiver = receiver
        if self._given is not None:
            self._transport = self._given
        else:
            self._transport = StdIOSubprocessTransport(
                self._launch.command(),
                cwd=options.cwd,
                env=self._launch.environment(),
                stderr=options.stderr_sink(),
            )
        try:
            await self._transport.start()
            self._pump_task = self._runtime.spawn(self._pump, "qwen-reader")
            in_time = await self._handshake.wait(options.timeouts.start)
            if self._started is None:
                raise await self._handshake_failure(in_time)
            check_handshake(self._started)
        except BaseException:
            self._closing = True
            self._transport.kill()
            await self._transport.close(0)
            raise
        return self._started

    async def _handshake_failure(self, in_time: bool) -> ProcessError:
        if not in_time and self._first is None:
            seconds = self._launch.options.timeouts.start
            message = f"the program did not greet within {seconds:g} s (start time-out); is it a qwen binary?"
            status = await self.transport.close(1)
            return HandshakeError(message, stderr_tail=status.stderr_tail, code="start_timeout")
        if self._fatal is None and self._first is not None:
            status = await self.transport.close(1)
            message = f"the program is not a qwen worker: its first line was {self._first!r}"
            return HandshakeError(message, stderr_tail=status.stderr_tail, code="not_a_worker")
        await self._over.wait(5)
        status = self._status or ExitStatus(None)
        if self._fatal is not None:
            return fatal_error(self._fatal, status)
        message = f"the program {status.describe()} before its handshake; is it a qwen binary?"
        return HandshakeError(message, exit_code=status.code, stderr_tail=status.stderr_tail, code="not_a_worker")

    async def _pump(self) -> None:
        """Reads until the end; waits while the receiver is full, so that the reader's pace is the worker's pace."""
        receiver, transport = self._receiver, self._transport
        assert receiver is not None and transport is not None
        try:
            while True:
                lines = await transport.receive()
                if not lines:
                    break
                self.last_activity = time.monotonic()
                if self._started is None:
                    lines = self._greet(lines)
                receiver.handle_lines(lines)
                receiver.flush()
                while receiver.is_full() and not self._closing:
                    await receiver.room()
                    self.last_activity = time.monotonic()
            status = await exit_status(transport)
        except BaseException as error:
            # The loop is ending, or there is a bug: either way nobody reads any more.
            transport.kill()
            self._end(ExitStatus(None))
            await transport.close(0)
            if not isinstance(error, Exception):
                raise
            return
        self._end(status)
        # Nobody may be left to close a worker that died or whose client was collected.
        await transport.close(0)

    def _greet(self, lines: Sequence[str]) -> Sequence[str]:
        """Looks for the handshake; returns the lines behind it."""
        for number, line in enumerate(lines):
            event = parse_line(line)
            self._handshake.set()
            if isinstance(event, SessionStarted):
                self._started = event
                return lines[number + 1 :]
            if isinstance(event, FatalErrorMessage):
                self._fatal = event
            elif self._first is None:
                self._first = event
        return ()

    def _end(self, status: ExitStatus) -> None:
        self._status = status
        self._over.set()
        self._handshake.set()
        if self._started is not None and self._receiver is not None:
            self._receiver.ended(status, self._fatal)

    async def send(self, line: dict[str, Any]) -> None:
        """Sends one line to the worker."""
        await self.transport.send(json.dumps(line, ensure_ascii=False))

    async def close(self, timeout: float) -> None:
        """Ends the worker: end of input, SIGTERM, SIGKILL, within `timeout` seconds."""
        self._closing = True
        if self._receiver is not None:
            self._receiver.flush()
        if self._transport is not None:
            await self._transport.close(timeout)

    def kill(self) -> None:
        """Ends the worker at once."""
        if self._transport is not None:
            self._transport.kill()


async def exit_status(transport: Transport) -> ExitStatus:
    """How the process behind a transport ended, once its output is at its end."""
    wait_exit = getattr(transport, "wait_exit", None)
    if wait_exit is None:
        return ExitStatus(None)
    status = await wait_exit(2.0)
    if status is None:
        # Standard output is closed but the process lives: it is of no use any more.
        transport.kill()
        status = await wait_exit(2.0)
    return status or ExitStatus(None)


def check_handshake(started: SessionStarted) -> None:
    """Refuses another major version of the protocol, and workers that cannot do what every session needs."""
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


def fatal_error(fatal: FatalErrorMessage, status: ExitStatus) -> ProcessError:
    """The worker's own words for why it ended, as an error."""
    kinds = {"unsupported_protocol": ProtocolVersionError}
    kind = SessionNotFoundError if fatal.code in _SESSION_CODES else kinds.get(fatal.code, ProcessError)
    return kind(fatal.message, exit_code=status.code, stderr_tail="", code=fatal.code)
