"""Runs packaging/harbor/qwen_agent.py in a local directory with the real binary and a scripted model, and validates its trajectory."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import typing
import unittest
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import typing_extensions

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [sys.argv.pop(1), str(ROOT / "packaging/harbor")]
# The package needs two names that older versions of Python have elsewhere.
for name in ("override", "TypedDict"):
    setattr(typing, name, getattr(typing_extensions, name))

from harbor.models.agent.context import AgentContext  # noqa: E402
from harbor.models.trajectories import Trajectory  # noqa: E402

from qwen_agent import Qwen  # noqa: E402

SCRIPT = [
    [{"tool_call": {"name": "write_file", "arguments": {"file_path": "new.txt", "content": "hello\n"}}}],
    [{"tool_call": {"name": "run_shell_command", "arguments": {"command": "cat new.txt; exit 3"}}}],
    [{"thought": "Done."}, {"text": "The file exists."}],
]


class LocalEnvironment:
    """Runs commands on this machine, with the installed binary in a directory on the PATH."""

    default_user = None

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self.work = directory / "work"
        self.bin.mkdir()
        self.work.mkdir()

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        shutil.copy(source_path, self.bin / PurePosixPath(target_path).name)

    async def exec(self, command: str, env: dict[str, str] | None = None, **_: object) -> SimpleNamespace:
        command = command.replace("/usr/local/bin", str(self.bin))
        environment = {**os.environ, **(env or {}), "PATH": f"{self.bin}:{os.environ['PATH']}"}
        ended = subprocess.run(["bash", "-c", command], cwd=self.work, env=environment, text=True, capture_output=True)
        return SimpleNamespace(return_code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


class HarborAgent(unittest.TestCase):
    def test_the_definition_implements_every_abstract_method(self) -> None:
        self.assertFalse(inspect.isabstract(Qwen))

    def test_a_run_leaves_a_valid_trajectory_and_its_usage(self) -> None:
        with tempfile.TemporaryDirectory() as text:
            directory = Path(text)
            script = directory / "script.json"
            script.write_text(json.dumps(SCRIPT))
            logs = directory / "logs"
            # The environment is this machine: both sides of the log directory are the same.
            agent = Qwen(
                logs,
                model_name=f"script:{script}",
                skip_model_parsing=True,
                environment_logs_dir=PurePosixPath(logs),
            )
            environment = LocalEnvironment(directory)
            context = AgentContext()
            asyncio.run(agent.install(environment))
            asyncio.run(agent.run("Create new.txt", environment, context))
            agent.populate_context_post_run(context)

            self.assertEqual((environment.work / "new.txt").read_text(), "hello\n")
            trajectory = Trajectory.model_validate_json((logs / "trajectory.json").read_text())
            self.assertEqual(trajectory.schema_version, "ATIF-v1.8")
            self.assertEqual([step.source for step in trajectory.steps], ["user", "agent", "agent", "agent"])
            self.assertEqual(trajectory.steps[1].tool_calls[0].function_name, "write_file")
            self.assertEqual(trajectory.steps[2].observation.results[0].extra["exit_code"], 3)
            self.assertEqual(trajectory.steps[3].message, "The file exists.")
            self.assertEqual(trajectory.steps[3].reasoning_content, "Done.")
            self.assertEqual(context.n_input_tokens, trajectory.final_metrics.total_prompt_tokens)
            self.assertGreater(context.n_input_tokens, 0)


if __name__ == "__main__":
    unittest.main()
