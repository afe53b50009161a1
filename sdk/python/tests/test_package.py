"""The wheel that carries the binary."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import BINARY, ROOT


def build_wheel(folder: Path, environment: dict[str, str]) -> Path:
    """Builds the package and returns the only wheel in `folder`."""
    source = str(ROOT / "sdk/python")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", str(folder), source]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Built as `make dist` builds it, from the binary under test."""
    stripped = tmp_path / "qwen"
    shutil.copy(BINARY, stripped)
    if shutil.which("strip"):
        subprocess.run(["strip", str(stripped)], check=True)
    environment = {**os.environ, "QWEN_WHEEL_BINARY": str(stripped), "SOURCE_DATE_EPOCH": "1700000000"}
    return build_wheel(tmp_path / "dist", environment)


@pytest.mark.timeout(300)
def test_the_wheel_works_in_a_clean_environment_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    assert "-py3-none-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        (binary,) = [item for item in archive.infolist() if item.filename == "qwen_agent_sdk/bin/qwen"]
        assert binary.external_attr >> 16 & 0o111, "the binary is executable"
        assert {"qwen_agent_sdk/py.typed", "qwen_agent_sdk/LICENSE"} <= set(archive.namelist())
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", str(clean)], check=True)
    python = clean / "bin" / "python"
    # The synchronous client needs no other package, so nothing has to come from an index.
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    environment = {"PATH": "/nowhere", "HOME": os.environ["HOME"], "QWEN_HOME": os.environ["QWEN_HOME"]}
    subprocess.run(install, check=True, env=environment)
    readme = (ROOT / "sdk/python/README.md").read_text()
    quick_start = readme.split("```python\n", 1)[1].split("```", 1)[0]
    ended = subprocess.run(
        [str(python), "-I", "-c", quick_start],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0 and "list_directory" in ended.stdout, ended.stderr
    # `uvx qwen-agent-sdk --acp` runs this command, which ends with its input.
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    command = [str(clean / "bin" / "qwen-agent-sdk"), "--acp", "--model", "demo"]
    agent = subprocess.run(
        command, input=hello, capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert agent.returncode == 0 and '"protocolVersion":1' in agent.stdout, agent.stderr


@pytest.mark.timeout(300)
def test_a_wheel_without_a_binary_is_pure_python(tmp_path: Path) -> None:
    built = build_wheel(tmp_path, dict(os.environ))
    assert built.name.endswith("-py3-none-any.whl")


def test_the_tag_is_that_of_the_oldest_glibc() -> None:
    sys.path.insert(0, str(ROOT / "sdk/python"))
    from hatch_build import platform_tag

    assert (
        platform_tag(b"\0GLIBC_2.17\0GLIBC_2.34\0GLIBC_2.2.5\0 GLIBC_2.99 in a text", "x86_64")
        == "manylinux_2_34_x86_64"
    )
    assert platform_tag(b"static", "aarch64") == "manylinux_2_17_aarch64.musllinux_1_1_aarch64"
    assert platform_tag(b"/lib/ld-musl-x86_64.so.1\0", "x86_64") == "musllinux_1_2_x86_64"


@pytest.mark.skipif(shutil.which("objdump") is None, reason="there is no objdump")
def test_the_tag_is_that_of_the_symbols_of_the_binary() -> None:
    sys.path.insert(0, str(ROOT / "sdk/python"))
    from hatch_build import platform_tag

    symbols = subprocess.run(["objdump", "-T", BINARY], capture_output=True, text=True, check=True).stdout
    needed = max((int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))
    tag = platform_tag(Path(BINARY).read_bytes(), "x86_64")
    assert tag == f"manylinux_{needed[0]}_{max(needed[1], 17)}_x86_64"


TYPED_PROGRAM = """
from typing import Any
from qwen_agent_sdk import HookContext, HookMatcher, QwenAgentOptions, SdkMcpTool, hook, query, tool

@tool("add", "Adds two numbers.", {"a": float, "b": float})
async def add(args: dict[str, Any]) -> float:
    return float(args["a"] + args["b"])

@tool
async def double(a: float) -> float:
    return 2 * a

@hook("PreToolUse")
async def watch(given: dict[str, Any], context: HookContext) -> None:
    print(given["tool_name"], context.tool_use_id)

made: list[SdkMcpTool] = [add, double]
scout = {"description": "Looks around.", "prompt": "You look around."}
options = QwenAgentOptions(hooks={"PreToolUse": [HookMatcher([watch])]}, agents={"scout": scout})
messages = query("Go", options)
"""


@pytest.mark.timeout(300)
def test_a_program_with_tools_and_hooks_passes_mypy_strict(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TYPED_PROGRAM)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "sdk/python/src")}
    ended = subprocess.run([*command, str(program)], capture_output=True, text=True, env=environment, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
