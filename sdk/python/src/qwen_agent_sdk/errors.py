"""Everything that the SDK raises.

Every error says what was attempted, what went wrong and, where the SDK knows it, what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .events import ResultMessage

__all__ = [
    "BinaryNotFoundError",
    "ControlRequestError",
    "HandshakeError",
    "NotConnectedError",
    "ProcessError",
    "PromptRejectedError",
    "ProtocolVersionError",
    "QwenSDKError",
    "SessionNotFoundError",
    "StructuredOutputError",
    "TimeoutExpiredError",
    "WorkerCrashedError",
    "WorkerUnresponsiveError",
]


class QwenSDKError(Exception):
    """The base of all errors of this package.

    `code` is a stable word for programs, empty where there is none.
    """

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class BinaryNotFoundError(QwenSDKError):
    """No `qwen` binary was found; `searched` lists where the SDK looked, in order."""

    def __init__(self, message: str, *, searched: list[str]) -> None:
        super().__init__(message, code="binary_not_found")
        self.searched = searched


class NotConnectedError(QwenSDKError):
    """The client is not connected: not yet, not any more, or not in this process (after `fork()`)."""


class ProcessError(QwenSDKError):
    """The worker or hub process failed.

    `exit_code` is negative for a signal, as in `subprocess`; `stderr_tail` holds the last output on standard error.
    """

    def __init__(self, message: str, *, exit_code: int | None = None, stderr_tail: str = "", code: str = "") -> None:
        if stderr_tail:
            message = f"{message}\nstandard error ended with:\n{stderr_tail.rstrip()}"
        super().__init__(message, code=code)
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail


class HandshakeError(ProcessError):
    """The program did not greet like a worker: it is another program, it ended, or it took too long."""


class ProtocolVersionError(HandshakeError):
    """The worker speaks another major version of the protocol, or lacks a required capability."""


class SessionNotFoundError(ProcessError):
    """The session that should be resumed or forked does not exist."""


class WorkerCrashedError(ProcessError):
    """The worker ended in the middle of a session.

    `last_result` is the last good result of the session, so that work which was done is not lost with the error.
    """

    def __init__(
        self,
        message: str,
        *,
        exit_code: int | None = None,
        stderr_tail: str = "",
        code: str = "worker_crashed",
        session_id: str | None = None,
        last_result: ResultMessage | None = None,
    ) -> None:
        super().__init__(message, exit_code=exit_code, stderr_tail=stderr_tail, code=code)
        self.session_id = session_id
        self.last_result = last_result


class WorkerUnresponsiveError(WorkerCrashedError):
    """The worker missed its heartbeats and was killed."""


class ControlRequestError(QwenSDKError):
    """The worker answered a control request with an error; `retryable` is the worker's own word."""

    def __init__(self, message: str, *, code: str = "", retryable: bool = False) -> None:
        super().__init__(message, code=code)
        self.retryable = retryable


class PromptRejectedError(QwenSDKError):
    """The worker refused a prompt before it became a turn; `param` names the field that is at fault."""

    def __init__(self, message: str, *, code: str = "", param: str | None = None) -> None:
        super().__init__(message, code=code)
        self.param = param


class StructuredOutputError(QwenSDKError):
    """There is no structured output, or it does not fit the schema; `raw` is what the model gave."""

    def __init__(self, message: str, *, raw: object = None) -> None:
        super().__init__(message, code="structured_output")
        self.raw = raw


class TimeoutExpiredError(QwenSDKError, TimeoutError):
    """One of the time-outs of `Timeouts` passed; `code` is its name."""
