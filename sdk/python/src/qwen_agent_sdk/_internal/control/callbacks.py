"""Calling functions of the host: plain or async, with a deadline."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ...errors import TimeoutExpiredError
from ..log import SessionLogger
from ..runtime import Runtime

__all__ = ["call", "call_within", "log_exception"]

T = TypeVar("T")


def log_exception(log: SessionLogger, event: str, error: BaseException, **fields: Any) -> None:
    """Logs an exception of the host's code with its traceback."""
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    log("error", event, error=repr(error), traceback=text, **fields)


async def call(runtime: Runtime, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function of the host. A plain one runs in a thread of its own, so that it may block."""
    if _is_async(function):
        return await function(*args, **kwargs)
    result = await _in_thread(runtime, lambda: function(*args, **kwargs))
    return await result if inspect.isawaitable(result) else result


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


async def _in_thread(runtime: Runtime, function: Callable[[], T]) -> T:
    done = runtime.waiter()
    results: list[T] = []
    failures: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(function))
        except BaseException as error:
            failures.append(error)
        runtime.call_from_thread(done.set)

    # A daemon thread: one that never returns must not keep the interpreter from exiting.
    threading.Thread(target=run, name="qwen-callback", daemon=True).start()
    await done.wait()
    if failures:
        failure = failures[0]
        if isinstance(failure, Exception):
            raise failure
        # `sys.exit()` in a thread ends the thread and not the program.
        raise RuntimeError(f"it raised {type(failure).__name__}") from failure
    return results[0]


async def call_within(runtime: Runtime, seconds: float, what: str, work: Callable[[], Awaitable[T]]) -> T:
    """Runs `work`, and gives up on it after `seconds`: it is cancelled, and not waited for."""
    done = runtime.waiter()
    results: list[T] = []
    failures: list[BaseException] = []

    async def run() -> None:
        try:
            results.append(await work())
        except BaseException as error:
            failures.append(error)
            if not isinstance(error, Exception):
                raise
        finally:
            done.set()

    task = runtime.spawn(run, f"qwen-{what}")
    try:
        is_done = await done.wait(seconds)
    except BaseException:
        task.cancel()
        raise
    if not is_done:
        task.cancel()
        raise TimeoutExpiredError(f"the {what} did not return within {seconds:g} s", code="callback")
    if results:
        return results[0]
    failure = failures[0]
    if isinstance(failure, Exception):
        raise failure
    raise RuntimeError(f"the {what} was cancelled") from failure
