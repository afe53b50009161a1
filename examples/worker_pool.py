"""A backend with many users: sessions share a pool of workers."""

import asyncio
import os

from qwen_agent_sdk import (
    AsyncClient,
    QwenAgentOptions,
    WorkerPool,
    WorkerPoolOptions,
)


async def serve(pool: WorkerPool, user: str, question: str) -> str:
    options = QwenAgentOptions(
        model=os.environ.get("EXAMPLE_MODEL", "demo"),
        worker_pool=pool,
        # Workers are never shared between tenants, and each tenant has a home of its own.
        tenant=user,
    )
    async with AsyncClient(options) as client:
        return (await client.ask(question)).summary


async def main() -> None:
    async with WorkerPool(WorkerPoolOptions(max_workers=4)) as pool:
        answers = await asyncio.gather(*(serve(pool, f"user-{n}", f"Question {n}") for n in range(8)))
        for number, answer in enumerate(answers):
            print(number, answer.splitlines()[0])
        status = await pool.status()
        print("workers:", status["machines"][0]["workers"])


if __name__ == "__main__":
    asyncio.run(main())
