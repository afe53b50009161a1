"""Structured logs, through the standard library or through a logger of the host's."""

from __future__ import annotations

import json
import logging
from typing import Any

__all__ = ["SessionLogger"]

_default = logging.getLogger("qwen_agent_sdk")

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class SessionLogger:
    """Writes events with fields: `log("info", "turn_end", status="done")`.

    A `logging.Logger` gets one JSON object per record; anything else is called like structlog, `logger.info(event, **fields)`.
    A logger that raises never disturbs the session.
    """

    def __init__(self, logger: Any, **context: Any) -> None:
        self._logger = _default if logger is None else logger
        self._is_standard = isinstance(self._logger, (logging.Logger, logging.LoggerAdapter))
        self.context = context

    def __call__(self, level: str, event: str, **fields: Any) -> None:
        try:
            if not self._is_standard:
                getattr(self._logger, level)(event, **self.context, **fields)
                return
            number = _LEVELS[level]
            if self._logger.isEnabledFor(number):
                record = {"event": event, "level": level, **self.context, **fields}
                self._logger.log(number, "%s", json.dumps(record, ensure_ascii=False, default=str))
        except Exception:
            return
