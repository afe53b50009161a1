"""One task, one answer, without an event loop.

python examples/quickstart.py            # the built-in demo model
EXAMPLE_MODEL=qwen3-coder-plus python examples/quickstart.py
"""

import os

from qwen_agent_sdk import Client

with Client(model=os.environ.get("EXAMPLE_MODEL", "demo")) as client:
    result = client.chat(task="Explain what this project does", workspace=".")
    print(result.summary)
    print(f"{result.status}: {result.usage.total_tokens} tokens, {result.duration_ms} ms")
