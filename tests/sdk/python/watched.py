"""The program with its lines kept, for what an SDK reads itself and hands to nobody."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# The status is the program's own, not that of the copying around it.
SCRIPT = """#!/usr/bin/env bash
set -o pipefail
printf '%s\\n' "$@" > {folder}/arguments
tee {folder}/in | "$QWEN_BIN" "$@" | tee {folder}/out
exit "${{PIPESTATUS[1]}}"
"""


@dataclass(frozen=True)
class Watched:
    """A stand-in for the program that runs it and keeps what goes in and out."""

    path: str
    folder: Path

    def arguments(self) -> list[str]:
        """What the SDK started it with."""
        return (self.folder / "arguments").read_text().splitlines()

    def told(self) -> list[dict[str, Any]]:
        """The lines of the SDK."""
        return [json.loads(line) for line in (self.folder / "in").read_text().splitlines()]

    def said(self) -> list[dict[str, Any]]:
        """The lines of the program."""
        return [json.loads(line) for line in (self.folder / "out").read_text().splitlines()]

    def replies(self, subtype: str) -> list[dict[str, Any]]:
        """The answers to the SDK's requests of this kind."""
        asked = {line["request_id"] for line in self.told() if line.get("request", {}).get("subtype") == subtype}
        answers = [line["response"] for line in self.said() if line["type"] == "control_response"]
        return [answer for answer in answers if answer["request_id"] in asked]

    def questions(self, subtype: str) -> list[dict[str, Any]]:
        """The program's requests of this kind."""
        asked = [line["request"] for line in self.said() if line["type"] == "control_request"]
        return [request for request in asked if request["subtype"] == subtype]

    def states(self) -> list[str]:
        """What the program said about who has to act."""
        return [line["state"] for line in self.said() if line.get("subtype") == "session_state_changed"]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    folder = tmp_path / "watched"
    folder.mkdir()
    script = folder / "qwen"
    script.write_text(SCRIPT.format(folder=folder))
    script.chmod(0o755)
    assert os.environ["QWEN_BIN"]
    return Watched(str(script), folder)
