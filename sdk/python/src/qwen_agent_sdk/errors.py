"""Everything that the SDK raises.

Every error says what was attempted, what went wrong and, where the SDK knows it, what to do next.
"""

from __future__ import annotations

import copy
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
    """The hub ended while the session was open.

    The end of a worker is not an exception: the hub ends its turn as `interrupted`, or continues it, as `on_crash` says. `last_result`
    is the last good result of the session.
    """

    session_id: str | None = None
    last_result: ResultMessage | None = None

    def of_session(self, session_id: str, last_result: ResultMessage | None) -> WorkerCrashedError:
        """The same error with what one of the sessions had reached."""
        error = copy.copy(self)
        error.session_id, error.last_result = session_id, last_result
        return error


class ControlRequestError(QwenSDKError):
    """The worker answered a control request with an error; `retryable` is the worker's own word."""

    def __init__(self, message: str, *, code: str = "", retryable: bool = False, reason: str = "") -> None:
        super().__init__(message, code=code)
        self.retryable = retryable
        self.reason = reason or message


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
