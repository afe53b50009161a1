"""A session that goes on in another process, and two futures of one past."""

import asyncio
import os

from qwen_agent_sdk import AsyncClient, QwenAgentOptions

OPTIONS = QwenAgentOptions(model=os.environ.get("EXAMPLE_MODEL", "demo"))


async def main() -> None:
    async with AsyncClient(OPTIONS) as client:
        await client.ask("Remember: the code word is heron.")
        session_id = client.session_id
    print("closed", session_id)

    async with AsyncClient(OPTIONS, resume=session_id) as client:
        print("resumed:", (await client.ask("What is the code word?")).summary)
        async with await client.fork() as fork:
            print("fork", fork.session_id, (await fork.ask("Write it backwards.")).summary)
        print("original:", (await client.ask("Write it in capitals.")).summary)


if __name__ == "__main__":
    asyncio.run(main())
