"""One hub process and the sessions that share it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from ...errors import ControlRequestError, HandshakeError, NotConnectedError, SessionNotFoundError
from ...events import ControlResponse, Event, FatalErrorMessage, SessionStarted, parse_line
from ...options import StrPath, Timeouts, WorkerPoolOptions
from ...transport.binary import find_binary
from ...transport.stdio import ExitStatus, StdIOSubprocessTransport
from ..control.callbacks import call, call_within
from ..control.requests import PendingRequests, control_result
from ..runtime import Runtime, TaskHandle
from .channel import Receiver, check_handshake, exit_status, fatal_error
from .launch import Launch, new_name

__all__ = ["HubChannel", "HubConnection"]

JsonObject = dict[str, Any]


class HubConnection:
    """The hub's process, its reader, and the way of each line to its session."""

    def __init__(self, runtime: Runtime, timeouts: Timeouts) -> None:
        self._runtime = runtime
        self._timeouts = timeouts
        self._transport: StdIOSubprocessTransport | None = None
        self._handshake = runtime.waiter()
        self._fatal: FatalErrorMessage | None = None
        self._status: ExitStatus | None = None
        self._is_closing = False
        self._config: str | None = None
        self.started: SessionStarted | None = None
        self.channels: dict[str, HubChannel] = {}
        self._asked_by: dict[str, HubChannel] = {}
        self._requests: PendingRequests[JsonObject] = PendingRequests(runtime, "hub")

    async def open(
        self,
        binary_path: StrPath | None,
        pool: WorkerPoolOptions,
        chunks: bool,
        env: Mapping[str, str],
        stderr: Callable[[str], object] | None,
    ) -> None:
        """Starts the hub and waits for its handshake."""
        command = [find_binary(binary_path), "hub", "--dialect", "qwen"]
        command += ["--output-format", "stream-chunk-json" if chunks else "stream-json"]
        # Spare workers have no flags of a session and fit none of ours, so there are none unless they are asked for.
        configured = {"min_workers": 0, **pool.to_wire()}
        handle, self._config = tempfile.mkstemp(prefix="qwen-sdk-hub-", suffix=".json")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"worker_pool": configured}, file)
        command += ["--config", self._config]
        self._transport = StdIOSubprocessTransport(command, env={**os.environ, **env}, stderr=stderr)
        try:
            await self._transport.start()
            self._runtime.spawn(self._pump, "qwen-hub-reader")
            await self._handshake.wait(self._timeouts.start)
            if self.started is None:
                raise self._failure("did not greet like a hub")
            check_handshake(self.started)
        except BaseException:
            self._is_closing = True
            self._transport.kill()
            await self._transport.close(0)
            self._remove_config()
            raise

    def _failure(self, how: str) -> Exception:
        status = self._status or ExitStatus(None)
        if self._fatal is not None:
            return fatal_error(self._fatal, status)
        tail = self._transport.stderr_tail if self._transport is not None else ""
        return HandshakeError(f"'qwen hub' {how}", exit_code=status.code, stderr_tail=tail, code="not_a_hub")

    async def _pump(self) -> None:
        transport = self._transport
        assert transport is not None
        try:
            while lines := await transport.receive():
                now = time.monotonic()
                touched: set[HubChannel] = set()
                for line in lines:
                    event = parse_line(line)
                    channel = self._route(event)
                    if channel is not None:
                        channel.last_activity = now
                        channel.deliver(event, line)
                        touched.add(channel)
                for channel in touched:
                    channel.flush()
                # A fast stream must not starve the sessions' own tasks.
                await self._runtime.checkpoint()
            self._end(await exit_status(transport))
            await transport.close(0)
        except BaseException as error:
            transport.kill()
            self._end(ExitStatus(None))
            await transport.close(0)
            if not isinstance(error, Exception):
                raise

    def _route(self, event: Event) -> HubChannel | None:
        """The session that a line belongs to. Answers go to whoever asked, whatever session they name."""
        if isinstance(event, ControlResponse):
            if self._requests.resolve(event.request_id, event.response):
                return None
            return self._asked_by.pop(event.request_id, None)
        if self.started is None:
            if isinstance(event, SessionStarted):
                self.started = event
            elif isinstance(event, FatalErrorMessage):
                self._fatal = event
            self._handshake.set()
            return None
        if isinstance(event, FatalErrorMessage):
            self._fatal = event
            return None
        return self.channels.get(event.session_id or "")

    async def send(self, line: JsonObject, channel: HubChannel) -> None:
        """Sends a line of a session."""
        request_id = line.get("request_id")
        if isinstance(request_id, str) and line.get("type") in ("control_request", "control/cancel"):
            self._asked_by[request_id] = channel
        await self._write(line)

    async def _write(self, line: JsonObject) -> None:
        if self._transport is None or self._status is not None:
            raise NotConnectedError("the hub is not running")
        await self._transport.send(json.dumps(line, ensure_ascii=False))

    async def request(self, fields: JsonObject, timeout: float) -> JsonObject:
        """Asks the hub itself something."""
        request_id, what = f"hub-{new_name()}", str(fields.get("subtype"))
        sending = self._write({"type": "control_request", "request_id": request_id, **fields})
        return control_result(await self._requests.ask(request_id, sending, timeout, what), "hub", what)

    def _end(self, status: ExitStatus) -> None:
        self._status = status
        self._handshake.set()
        self._requests.cancel_all()
        for channel in list(self.channels.values()):
            channel.hub_ended(status, self._fatal, is_closed=self._is_closing)
        self.channels.clear()
        self._remove_config()

    async def close(self, timeout: float) -> None:
        """Ends the hub with its workers. Turns that run are cancelled: the hub would wait for their end."""
        self._is_closing = True
        if self._transport is not None:
            if self._runtime.is_current():
                with contextlib.suppress(Exception):
                    await call_within(self._runtime, timeout / 2, "hub", lambda: self._end_sessions(timeout))
                await self._transport.close(timeout)
            else:
                self._transport.kill()
        self._remove_config()

    async def _end_sessions(self, timeout: float) -> None:
        """Has the hub end every session; what it writes about their turns comes before its answers."""
        sessions = list(self.channels)
        for session_id in sessions:
            await self._write({"type": "control/cancel", "session_id": session_id, "reason": "escape"})
        for session_id in sessions:
            with contextlib.suppress(ControlRequestError):
                await self.request({"subtype": "close", "session_id": session_id}, timeout)

    @property
    def is_closed(self) -> bool:
        """True from the moment in which the pool is closed."""
        return self._is_closing

    def is_in_current_loop(self) -> bool:
        """True if the caller runs in the loop that the pool was opened in."""
        return self._runtime.is_current()

    def forget(self, channel: HubChannel) -> None:
        """Directs nothing to a session any more."""
        self.channels = {key: value for key, value in self.channels.items() if value is not channel}
        self._asked_by = {key: value for key, value in self._asked_by.items() if value is not channel}

    def kill(self) -> None:
        """Ends the hub at once; its workers follow."""
        if self._transport is not None:
            self._transport.kill()
        self._remove_config()

    def _remove_config(self) -> None:
        if self._config is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._config)
            self._config = None

    def call_from_thread(self, work: Callable[[], Any]) -> None:
        """Runs a coroutine function in the loop of the hub."""
        self._runtime.call_from_thread(lambda: self._runtime.spawn(work, "qwen-hub-close"))


class HubChannel:
    """One session in a hub.

    The hub has one pipe for all sessions, so a slow reader cannot make it wait: that would stop the others too. What is beyond the
    reader's queue goes to a temporary file until the reader asks for it.
    """

    def __init__(self, hub: HubConnection, launch: Launch, runtime: Runtime) -> None:
        self._hub = hub
        self._launch = launch
        self._runtime = runtime
        self._receiver: Receiver | None = None
        self._session_id = launch.session_id
        self._spill: IO[str] | None = None
        self._spilled = 0
        self._unspill: TaskHandle | None = None
        self._is_open = False
        self._end: Callable[[], None] | None = None
        self.last_activity = time.monotonic()

    async def open(self, receiver: Receiver) -> SessionStarted:
        """Opens the session in the hub; its worker starts with the first prompt."""
        options, timeouts = self._launch.options, self._launch.options.timeouts
        self._receiver = receiver
        await self._take_up_session()
        fields: JsonObject = {"subtype": "open", "session_id": self._session_id}
        fields["args"] = [*self._launch.configuration_flags(), *options.extra_args]
        fields["cwd"] = os.path.abspath(options.cwd if options.cwd is not None else os.getcwd())
        fields["env"] = {**options.env, **self._launch.extra_environment}
        if options.tenant is not None:
            fields["tenant"] = options.tenant
        # Registered first: the session's lines may follow the answer at once.
        self._hub.channels[self._session_id] = self
        try:
            await self._hub.request(fields, timeouts.start)
        except BaseException:
            self._hub.channels.pop(self._session_id, None)
            raise
        self._is_open = True
        assert self._hub.started is not None
        return SessionStarted({**self._hub.started.raw, "session_id": self._session_id})

    async def _take_up_session(self) -> None:
        """A hub takes up a session by its name; forks and the check that it exists are done on disk."""
        options = self._launch.options
        if options.continue_session:
            raise ValueError("continue_session does not work in a pool; name the session with resume")
        if options.resume is None:
            return
        command = [find_binary(options.binary_path), "sessions"]
        if options.fork_session or options.resume_at is not None:
            command += ["fork", options.resume, "--session-id", self._session_id]
            if options.resume_at is not None:
                command += ["--at", options.resume_at]
        else:
            command += ["show", options.resume]
        environment = self._launch.environment()

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False
            )

        ended = await call(self._runtime, run)
        if ended.returncode != 0:
            message = ended.stderr.strip() or f"the session {options.resume!r} cannot be taken up"
            raise SessionNotFoundError(message, exit_code=ended.returncode, code="unknown_session")

    async def send(self, line: JsonObject) -> None:
        """Sends one line of the session."""
        await self._hub.send({**line, "session_id": self._session_id}, self)

    def deliver(self, event: Event, line: str) -> None:
        """Takes a line from the hub's reader."""
        receiver = self._receiver
        if receiver is None:
            return
        is_control = event.type.startswith("control_")
        if not is_control and (self._spilled or receiver.is_full()):
            if self._spill is None:
                self._spill = tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogatepass", prefix="qwen-sdk-")  # noqa: SIM115
            self._spill.seek(0, os.SEEK_END)
            self._spill.write(line + "\n")
            self._spilled += 1
            if self._unspill is None:
                self._unspill = self._runtime.spawn(self._bring_back, "qwen-spill")
            return
        receiver.handle(event, len(line))

    async def _bring_back(self) -> None:
        """Moves lines from the file to the reader as it makes room, in their order."""
        receiver, position = self._receiver, 0
        assert receiver is not None
        while self._spilled:
            while receiver.is_full():
                await receiver.room()
            assert self._spill is not None
            self._spill.seek(position)
            for _ in range(min(self._spilled, 256)):
                line = self._spill.readline()
                receiver.handle(parse_line(line.rstrip("\n")), len(line))
                self._spilled -= 1
            position = self._spill.tell()
            receiver.flush()
            await self._runtime.checkpoint()
        if self._spill is not None:
            self._spill.close()
            self._spill = None
        self._unspill = None
        if self._end is not None:
            self._end()

    def flush(self) -> None:
        """Wakes the reader after a batch."""
        if self._receiver is not None:
            self._receiver.flush()

    def hub_ended(self, status: ExitStatus, fatal: FatalErrorMessage | None, *, is_closed: bool) -> None:
        """The hub is gone, and the session with it. `is_closed` tells that its owner wanted that."""
        self._is_open = False
        receiver = self._receiver
        if receiver is None:
            return
        self._end = receiver.pool_closed if is_closed else lambda: receiver.ended(status, fatal)
        if self._unspill is None:
            self._end()

    async def close(self, timeout: float) -> None:
        """Ends the session; the hub goes on."""
        if self._is_open:
            self._is_open = False
            with contextlib.suppress(Exception):
                await self._hub.request({"subtype": "close", "session_id": self._session_id}, timeout)
        self._hub.forget(self)
        if self._unspill is not None:
            self._unspill.cancel()
        if self._spill is not None:
            self._spill.close()

    def kill(self) -> None:
        """Ends the session without waiting."""
        if self._is_open:
            self._hub.call_from_thread(lambda: self.close(5))
