"""The command `qwen-agent-sdk`: runs the `qwen` program of this package, so that `uvx qwen-agent-sdk --acp` starts it."""

from __future__ import annotations

import os
import sys

from ..errors import BinaryNotFoundError
from .binary import find_binary

__all__ = ["main"]


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    try:
        binary = find_binary()
        os.execv(binary, [binary, *sys.argv[1:]])
    except (BinaryNotFoundError, OSError) as error:
        sys.exit(f"qwen-agent-sdk: {error}")
