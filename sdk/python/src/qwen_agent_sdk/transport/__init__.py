"""The transport to a worker, and the lookup of the binary."""

from __future__ import annotations

from .stdio import ExitStatus, StdIOSubprocessTransport, Transport

__all__ = ["ExitStatus", "StdIOSubprocessTransport", "Transport"]
