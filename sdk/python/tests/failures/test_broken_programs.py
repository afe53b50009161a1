"""Programs that are not a hub, in twenty ways: each is an error that names its cause, soon, and leaves no process."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from conftest import HANDSHAKE, last_of

from qwen_agent_sdk import QwenSDKError, Timeouts

pytestmark = pytest.mark.anyio

START = 1.0
GREETING = json.dumps(HANDSHAKE)
OTHER = json.dumps({**HANDSHAKE, "metadata": {"protocol_version": "7.0", "capabilities": ["control", "sessions"]}})
BARE = json.dumps({**HANDSHAKE, "metadata": {"protocol_version": "1.0", "capabilities": []}})

PROGRAMS = {
    "silent": ("sleep 4242", "start time-out"),
    "silent after its input ended": ("cat >/dev/null; sleep 4242", "start time-out"),
    "exits at once": ("exit 0", "exited with code 0 before its handshake"),
    "fails at once": ("echo no licence >&2; exit 3", "exited with code 3(.|\n)*no licence"),
    "killed": ("kill -9 $$", "SIGKILL"),
    "crashes": ("kill -SEGV $$", "SIGSEGV"),
    "another program": ("echo hello; cat >/dev/null", "first line was"),
    "garbage": ("head -c 4096 /dev/urandom | tr '\\n' x; echo; sleep 4242", "first line was"),
    "endless line": ("yes x | tr -d '\\n'", "start time-out"),
    "half a handshake": ('printf \'{"object":"chat.comp\'; sleep 4242', "start time-out"),
    "half a handshake and out": ('printf \'{"object":"chat.comp\'; exit 1', "first line was"),
    "another JSON": ("echo '[1,2]'; sleep 4242", "first line was"),
    "another protocol": (f"echo '{OTHER}'; sleep 4242", "speaks protocol 7.0, this SDK speaks 1.0"),
    "no capability": (f"echo '{BARE}'; sleep 4242", "lacks what this SDK needs"),
    "greets and leaves": (f"echo '{GREETING}'; exit 5", "exited with code 5"),
    "greets and is silent": (f"echo '{GREETING}'; exec sleep 4242", "did not answer"),
    "closes its output": ("exec >&-; sleep 4242", "closed its output before its handshake"),
    "closes everything": ("exec <&- >&- 2>&-; sleep 4242", "closed its output before its handshake"),
    "floods stderr": ("yes complaint >&2", "start time-out(.|\n)*complaint"),
    "ignores signals": ("trap '' TERM INT HUP; sleep 4242", "start time-out"),
    "a fatal error": (
        'echo \'{"error":{"message":"the disk is full","code":"disk_full"}}\'; sleep 4242',
        "disk is full",
    ),
    "not a program": (None, "could not be started"),
}


def members(group: str) -> set[str]:
    """The processes of a group that live."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if entry.name.isdigit() and fields[2] == group and fields[0] != "Z":
                found.add(entry.name)
    return found


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_broken_program_is_an_error_that_names_its_cause(kind: str, tmp_path: Path) -> None:
    body, cause = PROGRAMS[kind]
    path, pids = tmp_path / "broken", tmp_path / "pid"
    path.write_text("\x7fELF nonsense" if body is None else f"#!/bin/sh\necho $$ > {pids}\n{body}\n")
    path.chmod(0o755)
    began = time.monotonic()
    with pytest.raises(QwenSDKError, match=cause):
        await last_of(binary_path=path, timeouts=Timeouts(start=START, close=1.0))
    took = time.monotonic() - began
    assert took < START + 2, f"{kind} took {took:.1f} s"
    with anyio.fail_after(2):
        while pids.exists() and members(pids.read_text().strip()):
            await anyio.lowlevel.checkpoint()
