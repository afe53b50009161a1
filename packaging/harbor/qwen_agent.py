"""qwen as an agent of the Harbor benchmark harness.

    harbor run --agent-import-path qwen_agent:Qwen --model MODEL …

The local binary (QWEN_BIN, or `qwen` on the PATH) is copied into the task's environment, so the static build from `make dist` is the
best choice. Each run leaves its result and an ATIF trajectory in the agent's log directory.
"""

from __future__ import annotations

import json
import shlex
import shutil
from typing import Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

TARGET = "/usr/local/bin/qwen"
SESSION = "harbor"
# Variables that choose the model's server and key. Commands of the agent never inherit them.
MODEL_VARIABLES = (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "DASHSCOPE_API_KEY",
    "DASHSCOPE_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
)


class Qwen(BaseInstalledAgent):
    """Runs one prompt with `qwen -p` and exports the session as a trajectory."""

    capabilities = AgentCapabilities(atif=True)

    @staticmethod
    def name() -> str:
        return "qwen"

    def get_version_command(self) -> str | None:
        return "qwen --version"

    async def install(self, environment: BaseEnvironment) -> None:
        binary = self._get_env("QWEN_BIN") or shutil.which("qwen")
        if not binary:
            raise FileNotFoundError("cannot install qwen: set QWEN_BIN to a binary, or put qwen on the PATH")
        await environment.upload_file(binary, TARGET)
        await self.exec_as_root(environment, command=f"chmod 755 {TARGET}")

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        logs = self.environment_logs_dir.as_posix()
        model = f"--model {shlex.quote(self.model_name)} " if self.model_name else ""
        await self.exec_as_agent(
            environment,
            command=(
                f"mkdir -p {logs}; export QWEN_HOME={logs}/qwen; "
                f"qwen -p {shlex.quote(instruction)} {model}--approval-mode yolo --session-id {SESSION} --no-stdin "
                f"--dialect qwen --output-format json > {logs}/result.json 2> {logs}/qwen.log; status=$?; "
                f"qwen sessions export {SESSION} --dialect atif > {logs}/trajectory.json; exit $status"
            ),
            env=self._model_environment(),
        )

    def populate_context_post_run(self, context: AgentContext) -> None:
        trajectory = self.logs_dir / "trajectory.json"
        if not trajectory.is_file():
            return
        metrics: dict[str, Any] = json.loads(trajectory.read_text(encoding="utf-8")).get("final_metrics", {})
        context.n_input_tokens = metrics.get("total_prompt_tokens")
        context.n_output_tokens = metrics.get("total_completion_tokens")
        context.n_cache_tokens = metrics.get("total_cached_tokens")
        context.cost_usd = metrics.get("total_cost_usd")

    def _model_environment(self) -> dict[str, str]:
        values = {name: self._get_env(name) for name in MODEL_VARIABLES}
        return {name: value for name, value in values.items() if value}
