"""Reviews a diff in CI: exits 1 if the review finds something serious.

git diff origin/main | python examples/ci_review.py
"""

import os
import sys
from typing import Literal

from pydantic import BaseModel

from qwen_agent_sdk import Client, Limits


class Comment(BaseModel):
    file: str
    line: int
    severity: Literal["note", "serious"]
    text: str


class Review(BaseModel):
    comments: list[Comment]


def main() -> int:
    diff = sys.stdin.read()
    with Client(
        model=os.environ.get("EXAMPLE_MODEL", "demo"),
        output_schema=Review,
        permission_mode="plan",  # reads only
        limits=Limits(max_turns=20, max_wall_time=300),
    ) as client:
        result = client.chat(task=f"Review this diff. Report real problems only.\n\n{diff}")
    if result.is_error:
        print(f"::error::the review failed: {result.error_message}")
        return 2
    review: Review = result.output
    for comment in review.comments:
        level = "error" if comment.severity == "serious" else "notice"
        print(f"::{level} file={comment.file},line={comment.line}::{comment.text}")
    return int(any(comment.severity == "serious" for comment in review.comments))


if __name__ == "__main__":
    raise SystemExit(main())
