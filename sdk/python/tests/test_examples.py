"""Every example runs as it is, with a scripted model; the README's first lines work as printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium, find_chromium
from conftest import ROOT, Script, call, write

EXAMPLES = ROOT / "examples"


def run(name: str, model: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "EXAMPLE_MODEL": model},
    )


def said(name: str, model: str, *arguments: str, given: str = "") -> str:
    ended = run(name, model, *arguments, given=given)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_example_is_tested() -> None:
    source = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f'"{path.name}"' in source, path.name


def test_quickstart(script: Script) -> None:
    assert said("quickstart.py", script("It is a calculator.")).startswith("It is a calculator.\ndone: ")
    assert "demo" in said("quickstart.py", "demo")


def test_mcp_calculator(script: Script) -> None:
    model = script(
        [call("mcp__calculator__add", a=19, b=23)],
        [{"expect": {"contains": "42"}}, call("mcp__calculator__divide", a=42, b=2)],
        [{"expect": {"contains": "21"}}, call("mcp__calculator__divide", a=1, b=0)],
        [{"expect": {"contains": "division by zero"}}, {"text": "It is 21."}],
    )
    out = said("mcp_calculator.py", model)
    assert "[mcp__calculator__add: success]" in out and "It is 21." in out
    assert out.endswith("done, 3 tool calls\n")


@pytest.mark.parametrize(("answer", "is_written"), [("y", True), ("a", True), ("n", False)])
def test_permission_dialog(answer: str, is_written: bool, script: Script, place: Path) -> None:
    out = said("permission_dialog.py", script([write("haiku.txt", "water")], "Done."), given=answer + "\n")
    assert "+water" in out, "the diff is shown"
    assert (place / "haiku.txt").exists() == is_written
    assert ("refused: write_file" in out) != is_written


def test_hooks(script: Script, place: Path) -> None:
    model = script(
        [{"expect": {"contains": "House rule"}}, call("run_shell_command", command="rm -rf build")],
        [{"expect": {"contains": "not allowed here"}}, {"text": "I left it."}],
    )
    assert said("hooks.py", model) == "I left it.\n"
    (record,) = [json.loads(line) for line in (place / "audit.jsonl").read_text().splitlines()]
    assert record["tool"] == "run_shell_command"


def test_worker_pool() -> None:
    out = said("worker_pool.py", "demo")
    assert len([line for line in out.splitlines() if line[0].isdigit()]) == 8 and "workers:" in out


def test_resume_and_fork(script: Script) -> None:
    answers = [("Remember", "Noted."), ("What is", "heron"), ("backwards", "noreh"), ("capitals", "HERON")]
    model = script(*({"match": cue, "steps": [{"text": text}]} for cue, text in answers))
    out = said("resume_and_fork.py", model)
    assert "resumed: heron" in out and "noreh" in out and "original: HERON" in out


def test_structured_output(script: Script) -> None:
    finding = {"file": "a.py", "line": 3, "problem": "off by one", "severity": "high"}
    assert said("structured_output.py", script([call("structured_output", findings=[finding])])) == (
        "a.py:3: high: off by one\n"
    )


def test_sub_agents(script: Script, place: Path) -> None:
    (place / "README.md").write_text("Hello.")
    model = script(
        [call("agent", description="Read", prompt="Read README.md", subagent_type="reader")],
        "It says hello.",
        "The README greets.",
    )
    out = said("sub_agents.py", model)
    assert "[reader] completed" in out and out.endswith("The README greets.\n")


def test_thought_tree() -> None:
    out = said("thought_tree.py", "oracle:game24")
    assert "├─ Expanding" in out and "└─" in out and "24" in out


def test_replay(script: Script) -> None:
    source = "from qwen_agent_sdk import *; c = Client(model=MODEL); r = c.chat('Look'); print(r.session_id); c.close()"
    model = script([call("list_directory", path=".")], "Nothing here.")
    recorded = subprocess.run(
        [sys.executable, "-c", source.replace("MODEL", repr(model))], capture_output=True, text=True, check=True
    )
    out = said("replay.py", "", recorded.stdout.strip())
    assert "used: list_directory" in out and ": done: Nothing here." in out


def test_chat_bot(script: Script) -> None:
    out = said("chat_bot.py", script("Hello!", "Bye!"), given="hi\n\nbye\n/quit\n")
    assert "Hello!" in out and "Bye!" in out


@pytest.mark.parametrize(("severity", "code"), [("note", 0), ("serious", 1)])
def test_ci_review(severity: str, code: int, script: Script) -> None:
    comment = {"file": "a.py", "line": 3, "severity": severity, "text": "leaks a file"}
    ended = run("ci_review.py", script([call("structured_output", comments=[comment])]), given="--- a\n+++ b\n")
    assert ended.returncode == code, ended.stderr
    assert "file=a.py,line=3::leaks a file" in ended.stdout


def test_ci_review_says_when_the_review_itself_failed(script: Script) -> None:
    assert run("ci_review.py", script([{"error": {"status": 400, "message": "no"}}]), given="x").returncode == 2


@pytest.fixture
def web_server(script: Script) -> Iterator[str]:
    """The address of the web example, once it listens; its model says five words."""
    model = script([{"text": "Streamed to a real page.", "split": "word"}])
    environment = {**os.environ, "EXAMPLE_MODEL": model, "PORT": "0", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(EXAMPLES / "streaming_web.py")]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        lines = (re.search(r"running on (http://127.0.0.1:\d+)", line) for line in server.stderr)
        address = next(found for found in lines if found)
        yield address[1]
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_streaming_web(web_server: str) -> None:
    """ "streaming_web.py" sends the words as they come."""
    with urllib.request.urlopen(f"{web_server}/stream?prompt=hi", timeout=20) as answer:
        stream = answer.read().decode()
    pieces = [json.loads(piece) for piece in re.findall(r"event: text\ndata: (.*)\n", stream)]
    assert "".join(pieces) == "Streamed to a real page." and len(pieces) == 5
    assert '"status": "done"' in stream


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")
def test_streaming_web_in_a_real_browser(web_server: str, tmp_path: Path) -> None:
    browser = find_chromium()
    assert browser is not None
    done = """new Promise((resolve) => {
        const [answer, status] = ["answer", "status"].map((id) => document.getElementById(id));
        const texts = new Set();
        new MutationObserver(() => {
            texts.add(answer.textContent);
            if (status.textContent === "done") resolve([answer.textContent, texts.size]);
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
        document.querySelector("form").requestSubmit();
    })"""
    with Chromium(browser, f"{web_server}/", tmp_path / "profile") as page:
        text, states = page.evaluate(done)
    assert text == "Streamed to a real page." and states > 1, "the text grows piece by piece"


def readme_blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "sdk/python/README.md").read_text(), re.DOTALL)


def test_the_six_lines_of_the_readme_work_as_printed() -> None:
    first = readme_blocks()[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 6
    ended = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0 and "list_directory" in ended.stdout, ended.stderr


def test_the_second_block_of_the_readme_works_as_printed() -> None:
    block = readme_blocks()[1].splitlines()
    imports, body = block[0], "\n".join("    " + line for line in block[1:])
    source = f"import asyncio\n{imports}\nasync def main():\n{body}\nasyncio.run(main())\n"
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0 and "demo" in ended.stdout, ended.stderr
