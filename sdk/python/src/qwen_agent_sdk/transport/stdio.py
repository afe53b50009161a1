"""How lines reach a worker and come back.

`Transport` is the seam for programs that reach their workers in another way, for example through `docker exec` or ssh.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .._internal.runtime import Runtime, TaskHandle, current_runtime
from ..errors import BinaryNotFoundError, NotConnectedError, ProcessError

__all__ = ["ExitStatus", "StdIOSubprocessTransport", "Transport"]

_READ_SIZE = 64 * 1024
_PIPE_SIZE = 1024 * 1024
_F_SETPIPE_SZ = 1031
_STDERR_TAIL = 16 * 1024
_WRITE_HIGH_WATER = 1024 * 1024


@dataclass(frozen=True)
class ExitStatus:
    """How a process ended. `code` is negative for a signal and None if it is unknown."""

    code: int | None
    stderr_tail: str = ""

    def describe(self) -> str:
        """The end in words: "exited with code 1", "was killed by SIGKILL"."""
        if self.code is None:
            return "ended"
        if self.code < 0:
            try:
                return f"was killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"was killed by signal {-self.code}"
        return f"exited with code {self.code}"


@runtime_checkable
class Transport(Protocol):
    """Carries JSON lines to one worker (or hub) and back.

    All methods but `kill` are called from one event loop. `send` may be called by several tasks at once, `receive` by one.
    """

    async def start(self) -> None:
        """Starts the process or opens the connection."""
        ...

    async def send(self, line: str) -> None:
        """Sends one line, given without its newline. Waits while the other side does not read."""
        ...

    async def receive(self) -> Sequence[str]:
        """Waits for at least one whole line; an empty sequence is the end of the stream."""
        ...

    async def close(self, timeout: float) -> ExitStatus:
        """Ends the connection within `timeout` seconds: politely first, then by force. May be called twice."""
        ...

    def kill(self) -> None:
        """Ends the process at once, without waiting; callable from any thread and at interpreter exit."""
        ...


class StdIOSubprocessTransport:
    """A child process that speaks JSON lines on its standard input and output.

    The child gets a session (process group) of its own, so a Ctrl-C in the terminal reaches the host alone. Standard error is
    always drained; its tail is kept for error messages.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        stderr: Callable[[str], object] | None = None,
        max_line_bytes: int = 256 * 1024 * 1024,
    ) -> None:
        self._command = list(command)
        self._cwd = cwd
        self._env = env
        self._stderr_callback = stderr
        self._splitter = _LineSplitter(max_line_bytes)
        self._process: subprocess.Popen[bytes] | None = None
        self._runtime: Runtime | None = None
        self._fds: dict[str, int] = {}
        self._stderr_tail = bytearray()
        self._stderr_rest = b""
        self._stderr_task: TaskHandle | None = None
        self._outgoing: deque[memoryview] = deque()
        self._outgoing_size = 0
        self._writer_task: TaskHandle | None = None
        self._write_error: OSError | None = None
        self._drained: list[Callable[[], None]] = []
        self._abandoned = False
        self._eof = False
        self._closing = False
        self._stderr_done = False

    @property
    def pid(self) -> int | None:
        """The process id of the child, once it is started."""
        return self._process.pid if self._process else None

    @property
    def stderr_tail(self) -> str:
        """The last output of the child on standard error."""
        return self._stderr_tail.decode("utf-8", "replace")

    async def start(self) -> None:
        self._runtime = current_runtime()
        try:
            # The loop is blocked for the time of a vfork, about a millisecond.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._cwd,
                env=dict(self._env) if self._env is not None else None,
                bufsize=0,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            if self._cwd is not None and not os.path.isdir(self._cwd):
                message = f"the working directory {os.fspath(self._cwd)!r} does not exist"
                raise ProcessError(message, code="bad_cwd") from error
            message = f"{self._command[0]!r} was not found; install qwen, set QWEN_BIN or pass binary_path"
            raise BinaryNotFoundError(message, searched=[self._command[0]]) from error
        except OSError as error:
            if isinstance(error, NotADirectoryError) and self._cwd is not None and not os.path.isdir(self._cwd):
                message = f"the working directory {os.fspath(self._cwd)!r} is not a directory"
                raise ProcessError(message, code="bad_cwd") from error
            message = f"{self._command[0]!r} could not be started: {error.strerror or error}"
            raise ProcessError(message, code="spawn_failed") from error
        for name in ("stdin", "stdout", "stderr"):
            stream = getattr(self._process, name)
            fd = self._fds[name] = os.dup(stream.fileno())
            stream.close()
            os.set_blocking(fd, False)
            os.set_inheritable(fd, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._fds["stdout"], _F_SETPIPE_SZ, _PIPE_SIZE)
        _open_transports.add(self)
        self._stderr_task = self._runtime.spawn(self._drain_stderr, "qwen-stderr")

    # Sending

    async def send(self, line: str) -> None:
        self._check_usable()
        data = line.encode("utf-8", "surrogatepass") + b"\n"
        if not self._outgoing:
            data = self._write_now(data)
        if data:
            self._outgoing.append(memoryview(data))
            self._outgoing_size += len(data)
            if self._writer_task is None:
                assert self._runtime is not None
                self._writer_task = self._runtime.spawn(self._write_later, "qwen-stdin")
        if self._outgoing_size > _WRITE_HIGH_WATER:
            assert self._runtime is not None
            room = self._runtime.waiter()
            self._drained.append(room.set)
            await room.wait()
        if self._write_error is not None:
            raise NotConnectedError("the worker does not read any more; it has ended or is ending")

    def _write_now(self, data: bytes) -> bytes:
        """Writes what the pipe takes at once; returns the rest."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fds["stdin"], view) :]
            except BlockingIOError:
                break
            except OSError as error:
                self._write_error = error
                return b""
        return bytes(view)

    async def _write_later(self) -> None:
        assert self._runtime is not None
        try:
            while self._outgoing and self._write_error is None:
                fd = self._fds.get("stdin")
                if fd is None:
                    break
                await self._runtime.writable(fd)
                view = self._outgoing[0]
                try:
                    written = os.write(self._fds.get("stdin", -1), view)
                except BlockingIOError:
                    continue
                except OSError as error:
                    self._write_error = error
                    break
                self._outgoing_size -= written
                if written == len(view):
                    self._outgoing.popleft()
                else:
                    self._outgoing[0] = view[written:]
                if self._outgoing_size <= _WRITE_HIGH_WATER:
                    self._wake_senders()
        finally:
            if self._write_error is not None or "stdin" not in self._fds:
                self._outgoing.clear()
                self._outgoing_size = 0
            self._writer_task = None
            self._wake_senders()

    def _wake_senders(self) -> None:
        waiting, self._drained = self._drained, []
        for wake in waiting:
            wake()

    # Receiving

    async def _read(self, stream: str) -> bytes | None:
        """The next bytes; none of them at the end of the stream or after an error. None once we have closed it."""
        assert self._runtime is not None, "start() comes first"
        while (fd := self._fds.get(stream)) is not None:
            try:
                return os.read(fd, _READ_SIZE)
            except BlockingIOError:
                await self._runtime.readable(fd)
            except OSError:
                return b""
        return None

    async def receive(self) -> Sequence[str]:
        while not self._eof:
            data = await self._read("stdout")
            if data is None:
                break
            if not data:
                self._eof = True
                lines = self._splitter.finish()
            else:
                lines = self._splitter.split(data)
            if lines:
                return lines
        return ()

    async def _drain_stderr(self) -> None:
        assert self._runtime is not None
        while data := await self._read("stderr"):
            self._collect_stderr(data)
            # A flood must not starve the other tasks of the loop.
            await self._runtime.checkpoint()
        self._stderr_done = True

    def _collect_stderr(self, data: bytes) -> None:
        self._stderr_tail += data
        if len(self._stderr_tail) > _STDERR_TAIL:
            del self._stderr_tail[:-_STDERR_TAIL]
        if self._stderr_callback is None:
            return
        *lines, rest = (self._stderr_rest + data).split(b"\n")
        # A line without end is handed on in pieces rather than kept.
        if len(rest) > _READ_SIZE:
            lines.append(rest)
            rest = b""
        self._stderr_rest = rest
        for line in lines:
            with contextlib.suppress(Exception):
                self._stderr_callback(line.decode("utf-8", "replace"))

    # Ending

    async def close(self, timeout: float) -> ExitStatus:
        process = self._process
        if process is None:
            return ExitStatus(None)
        self._closing = True
        if self._abandoned:
            return ExitStatus(None, self.stderr_tail)
        try:
            deadline = time.monotonic() + max(timeout, 0)
            await self._finish_writing(min(0.5, timeout / 4))
            self._close_fd("stdin")
            steps = ((timeout * 0.5, signal.SIGTERM), (timeout * 0.8, signal.SIGKILL), (timeout, None))
            for share, escalation in steps:
                until = deadline - timeout + share
                if await self._wait_exit(until):
                    break
                if escalation is not None:
                    _signal_group(process, escalation)
            await self._finish_stderr(deadline)
        finally:
            # Also when the wait was cancelled: the child never outlives close().
            self._release()
        return ExitStatus(process.returncode, self.stderr_tail)

    async def wait_exit(self, timeout: float) -> ExitStatus | None:
        """The exit status, once the child has ended; None if it lives on after `timeout` seconds."""
        if self._process is None:
            return None
        if not await self._wait_exit(time.monotonic() + timeout):
            return None
        await self._finish_stderr(time.monotonic() + 0.2)
        return ExitStatus(self._process.returncode, self.stderr_tail)

    async def _finish_writing(self, timeout: float) -> None:
        """Gives lines that are on their way a moment to be read."""
        assert self._runtime is not None
        if not self._outgoing or self._write_error is not None:
            return
        until = time.monotonic() + timeout
        while self._outgoing and self._write_error is None and time.monotonic() < until:
            drained = self._runtime.waiter()
            self._drained.append(drained.set)
            await drained.wait(min(0.05, timeout))

    async def _finish_stderr(self, deadline: float) -> None:
        """Reads what is left on standard error; a grandchild that holds it open is not waited for."""
        assert self._runtime is not None
        until = min(deadline, time.monotonic() + 0.2)
        while not self._stderr_done and time.monotonic() < until:
            await self._runtime.sleep(0.005)

    async def _wait_exit(self, until: float) -> bool:
        """Waits for the child's end while discarding its output, so that it cannot block on a full pipe."""
        assert self._process is not None
        assert self._runtime is not None
        delay = 0.001
        while self._process.poll() is None:
            left = until - time.monotonic()
            if left <= 0:
                return False
            if self._closing:
                self._discard_output()
            await self._runtime.sleep(min(delay, left))
            delay = min(delay * 1.5, 0.025)
        return True

    def _discard_output(self) -> None:
        fd = self._fds.get("stdout")
        while fd is not None and not self._eof:
            try:
                if not os.read(fd, _READ_SIZE):
                    self._eof = True
            except OSError:
                return

    def _close_fd(self, name: str) -> None:
        fd = self._fds.pop(name, None)
        if fd is None:
            return
        if self._runtime is not None:
            self._runtime.forget(fd)
        with contextlib.suppress(OSError):
            os.close(fd)

    def _release(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            _signal_group(process, signal.SIGKILL)
            # SIGKILL needs no cooperation: the wait is short and keeps zombies away.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
        for name in ("stdin", "stdout", "stderr"):
            self._close_fd(name)
        if self._stderr_task is not None:
            self._stderr_task.cancel()
        self._stderr_done = True
        _open_transports.discard(self)

    def kill(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        _signal_group(process, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        _open_transports.discard(self)

    def _abandon_in_child(self) -> None:
        """After fork(): drops the descriptors of the parent's child without touching it."""
        for fd in self._fds.values():
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds = {}
        self._abandoned = True
        self._eof = True
        if self._process is not None:
            self._process.returncode = 0

    def _check_usable(self) -> None:
        if self._abandoned:
            message = "the client was opened in a parent process and cannot be used after fork(); open a new one"
            raise NotConnectedError(message, code="used_after_fork")
        if self._process is None or "stdin" not in self._fds or self._closing:
            raise NotConnectedError("the transport is not open")


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signals a child that was not reaped, with what it started: it leads its own process group."""
    with contextlib.suppress(ProcessLookupError, OSError):
        os.killpg(process.pid, number)


class _LineSplitter:
    """Cuts a byte stream into lines of text, in time linear to its length."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def split(self, data: bytes) -> list[str]:
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        whole, rest = data[:end], data[end + 1 :]
        if self._parts:
            self._keep(b"", whole)
            whole = b"".join(self._parts)
            self._parts = []
            self._size = 0
        if rest:
            self._keep(rest)
        text = whole.decode("utf-8", "replace")
        return [line for line in text.split("\n") if line]

    def _keep(self, data: bytes, closing: bytes = b"") -> None:
        if closing:
            self._parts.append(closing)
        elif self._size < self._max:
            self._parts.append(data)
            self._size += len(data)
        # What is beyond the limit is dropped; the cut line does not parse and becomes a MalformedLine event.

    def finish(self) -> list[str]:
        text = b"".join(self._parts).decode("utf-8", "replace")
        self._parts = []
        return [text] if text else []


_open_transports: weakref.WeakSet[StdIOSubprocessTransport] = weakref.WeakSet()


def _kill_all() -> None:
    for transport in list(_open_transports):
        transport.kill()


def _abandon_all() -> None:
    for transport in list(_open_transports):
        transport._abandon_in_child()
    _open_transports.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_abandon_all)


atexit.register(_kill_all)
