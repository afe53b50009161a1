"""The answer as a validated object."""

import asyncio
import os
from typing import Literal

from pydantic import BaseModel

from qwen_agent_sdk import AsyncClient, StructuredOutputError


class Finding(BaseModel):
    file: str
    line: int
    problem: str
    severity: Literal["low", "medium", "high"]


class Report(BaseModel):
    findings: list[Finding]


async def main() -> None:
    async with AsyncClient(model=os.environ.get("EXAMPLE_MODEL", "demo"), output_schema=Report) as client:
        result = await client.ask("Look for bugs in this directory")
        try:
            report: Report = result.output
        except StructuredOutputError as error:
            print("no report:", error)
            return
        for finding in report.findings:
            print(f"{finding.file}:{finding.line}: {finding.severity}: {finding.problem}")


if __name__ == "__main__":
    asyncio.run(main())
