"""The table of public names with the test that covers each: writes sdk/python/API.md.

python tests/api_table.py [--check]
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import qwen_agent_sdk as sdk

HERE = Path(__file__).parent
TARGET = HERE.parent / "API.md"
CLASSES = (
    "AsyncClient",
    "Client",
    "QueryStream",
    "WorkerPool",
    "PermissionResult",
    "HookResult",
    "ResultMessage",
)
INTERNAL = {"to_wire", "to_raw", "from_raw", "model_name", "connection_for", "start", "kill"}
DATA = ("QwenAgentOptions", "Limits", "Timeouts", "SettingsProfile", "WorkerPoolOptions", "AgentDefinition")


def tests() -> dict[str, str]:
    """The source of every test function by `file::function`, in the order of the files."""
    found: dict[str, str] = {}
    for path in sorted(HERE.rglob("test_*.py")):
        if path.name == "test_api.py":
            continue
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                found[f"{path.relative_to(HERE)}::{node.name}"] = ast.get_source_segment(source, node) or ""
    return found


def summary(value: Any) -> str:
    """The first sentence of a docstring."""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return text.split(". ")[0].rstrip(".") if text else ""


def names() -> list[tuple[str, str, str]]:
    """Name, description and the pattern that a test which covers it contains."""
    rows: list[tuple[str, str, str]] = []
    for name in sorted(sdk.__all__, key=str.lower):
        value = getattr(sdk, name)
        about = summary(value) if inspect.isclass(value) or inspect.isfunction(value) else ""
        rows.append((name, about, rf"\b{name}\b"))
        if name in CLASSES:
            for member, item in sorted(vars(value).items()):
                if (
                    member not in INTERNAL
                    and not member.startswith("_")
                    and (callable(item) or isinstance(item, (property, classmethod)))
                ):
                    target = item.fget if isinstance(item, property) else item
                    rows.append((f"{name}.{member}", summary(target), rf"\.{member}\b"))
        if name in DATA:
            for item in dataclasses.fields(value):
                rows.append((f"{name}.{item.name}", "", rf"\b{item.name}="))
    return rows


def table() -> tuple[str, list[str]]:
    """The page, and the names that no test mentions."""
    sources = tests()
    lines = [
        "# The public names and their tests",
        "",
        "Written by `tests/api_table.py`. Everything else in the package may change without notice.",
        "",
        "| name | what it is | a test that covers it |",
        "|---|---|---|",
    ]
    missing = []
    for name, about, pattern in names():
        expression = re.compile(pattern)
        test = next((key for key, source in sources.items() if expression.search(source)), None)
        if test is None:
            missing.append(name)
        cell = about.replace("|", "\\|")
        lines.append(f"| `{name}` | {cell} | `{test}` |")
    return "\n".join(lines) + "\n", missing


def main() -> int:
    text, missing = table()
    if missing:
        print("no test mentions:", ", ".join(missing), file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:]:
        if TARGET.exists() and TARGET.read_text() == text:
            return 0
        print(f"{TARGET} is out of date; run python tests/api_table.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
