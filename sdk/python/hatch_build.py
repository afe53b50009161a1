"""Puts the binary and the licence into the wheel.

With QWEN_WHEEL_BINARY the wheel carries that binary and is tagged for its platform; without it the wheel is pure Python and finds
a binary through QWEN_BIN or PATH.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NO_BINARY = """This package carries no qwen binary. Build one in the checkout and tell the SDK where it is:
    cargo build --release -p qwen && export QWEN_BIN=$PWD/target/release/qwen
or build a wheel that carries it: sdk/python/build-wheel"""


class BinaryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the binary as `qwen_agent_sdk/bin/qwen`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before the wheel is built."""
        binary = os.environ.get("QWEN_WHEEL_BINARY")
        if not binary:
            self.app.display_warning(NO_BINARY)
        if version == "editable":
            return
        # A source distribution has the licence beside this file, where hatchling finds it by itself.
        licence = Path(self.root).parents[1] / "LICENSE"
        if licence.is_file() and not (Path(self.root) / "LICENSE").exists():
            build_data["force_include"][str(licence)] = "qwen_agent_sdk/LICENSE"
        if not binary:
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(Path(binary).read_bytes(), platform.machine())}"
        build_data["force_include"][binary] = "qwen_agent_sdk/bin/qwen"


def platform_tag(binary: bytes, machine: str) -> str:
    """The tag of the oldest C library that the binary runs with; a static binary runs with any."""
    if b"/ld-musl-" in binary:
        return f"musllinux_1_2_{machine}"
    needed = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", binary)
    if not needed:
        return f"manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    major, minor = max((int(a), int(b)) for a, b in needed)
    return f"manylinux_{major}_{max(minor, 17)}_{machine}"
