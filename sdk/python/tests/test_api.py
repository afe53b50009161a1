"""The public names, the list of behaviours and the package itself are what the documents say."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import api_table
from conftest import ROOT

import qwen_agent_sdk


def test_every_public_name_is_covered_and_the_table_is_current() -> None:
    text, missing = api_table.table()
    assert missing == []
    assert api_table.TARGET.read_text() == text, "run python tests/api_table.py"


def test_every_public_name_exists_and_is_documented() -> None:
    for name in qwen_agent_sdk.__all__:
        value = getattr(qwen_agent_sdk, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_the_python_column_of_the_behaviours_is_true() -> None:
    """Each cell names tests that exist; a row without one would be a promise that nobody keeps."""
    known = set(api_table.tests())
    rows = 0
    for line in (ROOT / "sdk/BEHAVIOURS.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 5 or cells[0] in ("id", "---"):
            continue
        rows += 1
        named = re.findall(r"`([^`]+)`", cells[2])
        assert named, f"{cells[0]} has no Python test"
        for name in named:
            assert name in known, f"{cells[0]}: {name}"
    assert rows > 50


def test_a_cold_import_loads_neither_pydantic_nor_mcp_nor_anyio() -> None:
    """What a first query must not pay for."""
    source = (
        "import sys, qwen_agent_sdk; print(sorted({'pydantic', 'mcp', 'anyio', 'trio', 'asyncio'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_types_are_part_of_the_package() -> None:
    assert (Path(qwen_agent_sdk.__file__).parent / "py.typed").exists()
