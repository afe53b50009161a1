"""The binary against llama.cpp's own server: text, JSON lines, a tool call, cancellation, limits, discovery and errors.

A model this small answers nonsense, so nothing here depends on what it says.
"""

import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable

SERVE = pathlib.Path(__file__).with_name("serve.py")
# Without tools and with a short system prompt an answer takes seconds on two cores.
BRIEF = ["--system-prompt", "Answer in a few words.", "--core-tools", "", "--settings", '{"model":{"maxTokens":64}}']

Case = Callable[["Stage"], None]
CASES: list[Case] = []


def case(function: Case) -> Case:
    CASES.append(function)
    return function


class Stage:
    """The binary in an empty directory, with a server behind it and a transcript of what was typed."""

    def __init__(self, binary: pathlib.Path, transcript: pathlib.Path) -> None:
        self.binary = binary
        self.transcript = transcript.open("w", encoding="utf-8")
        self.home = tempfile.TemporaryDirectory()
        self.cwd = pathlib.Path(self.home.name, "project")
        self.cwd.mkdir()
        (self.cwd / "README.md").write_text("# Sample\n\nA small project.\n")
        self.server = subprocess.Popen(
            [sys.executable, str(SERVE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        address = self.server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), f"the server did not start: {address!r}"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": self.home.name,
            "OPENAI_BASE_URL": f"{address}/v1",
            "NO_COLOR": "1",
        }

    def log(self, text: str) -> None:
        print(text, flush=True)
        self.transcript.write(text + "\n")
        self.transcript.flush()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        shown = " ".join(argument if re.fullmatch(r"[\w./=-]+", argument) else repr(argument[:60]) for argument in arguments)
        self.log(f"$ qwen {shown}")
        return subprocess.Popen(
            [str(self.binary), *arguments],
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        started = time.monotonic()
        process = self.start(*arguments)
        out, err = process.communicate(timeout=900)
        self.show(out, err, process.returncode, time.monotonic() - started)
        return process.returncode, out, err

    def show(self, out: str, err: str, code: int, seconds: float) -> None:
        for text, mark in ((out, "  "), (err, "! ")):
            lines = text.splitlines()
            for line in lines[:8]:
                self.log(mark + line[:300])
            if len(lines) > 8:
                self.log(f"{mark}… {len(lines) - 8} more lines")
        self.log(f"exit code {code}, {seconds:.1f} s\n")

    def close(self) -> None:
        self.server.stdin.close()
        self.server.wait(timeout=60)
        self.transcript.close()
        self.home.cleanup()


def examples() -> list[dict]:
    """Questions that a call answers."""
    messages: list[dict] = []
    for directory in ("src", "docs", "tests"):
        function = {"name": "list_directory", "arguments": json.dumps({"path": directory})}
        messages += [
            {"role": "user", "content": f"List the files of the directory {directory}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": directory, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": directory, "content": f"{directory}/a.txt"},
            {"role": "assistant", "content": f"There is {directory}/a.txt."},
        ]
    return messages


class Coached:
    """Stands before the server and puts three examples of calls into the conversation, after the system prompt.

    A model this small calls no tool when it is only told about it; with examples it makes the call itself.
    """

    def __init__(self, target: str) -> None:
        self.target = target.removesuffix("/v1")
        self.requests: list[dict] = []
        coached = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                coached.requests.append(body)
                system, *rest = body["messages"]
                body = {**body, "messages": [system, *examples(), *rest], "temperature": 0}
                request = urllib.request.Request(coached.target + self.path, json.dumps(body).encode(), {"content-type": "application/json"})
                with urllib.request.urlopen(request, timeout=900) as answer:
                    self.send_response(answer.status)
                    self.send_header("content-type", answer.headers["content-type"])
                    self.end_headers()
                    while piece := answer.read1():
                        self.wfile.write(piece)

            def do_GET(self) -> None:
                with urllib.request.urlopen(coached.target + self.path, timeout=60) as answer:
                    content = answer.read()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self) -> "Coached":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@case
def the_only_model_of_the_server_is_found(stage: Stage) -> None:
    code, out, _ = stage.run("models")
    assert code == 0 and len(out.splitlines()) == 1 and out.startswith("* "), out


@case
def text_mode_prints_the_answer_and_one_closing_line(stage: Stage) -> None:
    code, out, err = stage.run("-p", "Say hello in one short sentence.", *BRIEF)
    assert code == 0 and out.strip(), out
    # A model this small may not stop by itself.
    err = err.replace("qwen: the answer was cut off at the model's output limit\n", "")
    assert re.fullmatch(r"qwen: session \S+, \d+ tokens\n", err), err


@case
def json_lines_keep_the_rules_and_carry_the_servers_usage(stage: Stage) -> None:
    code, out, _ = stage.run("-p", "Name a colour.", *BRIEF, "--dialect", "qwen", "--output-format", "stream-chunk-json")
    lines = records(out)
    assert code == 0 and len(lines) > 3, out
    assert lines[-1]["metadata"]["turn"]["status"] == "done", lines[-1]
    assert lines[-1]["usage"]["prompt_tokens"] > 0 and lines[-1]["usage"]["completion_tokens"] > 0, lines[-1]
    stream = stage.cwd / "stream.jsonl"
    stream.write_text(out)
    assert stage.run("check", str(stream))[0] == 0


@case
def a_tool_call_of_the_model_is_executed_and_its_result_goes_back(stage: Stage) -> None:
    (stage.cwd / "lib").mkdir()
    (stage.cwd / "lib" / "parser.c").write_text("int main(void) { return 0; }\n")
    with Coached(stage.env["OPENAI_BASE_URL"]) as server:
        code, out, _ = stage.run(
            "-p", "List the files of the directory lib", "--system-prompt", "Use the tool.", "--core-tools", "list_directory",
            "--settings", '{"model":{"maxTokens":100}}', "--dialect", "claude", "--max-session-turns", "2", "--openai-base-url", server.url,
        )
    lines = records(out)
    assert lines[-1]["type"] == "result", lines[-1]
    calls = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"] if block["type"] == "tool_use"]
    results = [block for line in lines if line["type"] == "user" for block in line["message"]["content"] if block["type"] == "tool_result"]
    assert calls and [call["id"] for call in calls] == [result["tool_use_id"] for result in results], (calls, results)
    assert calls[0]["name"] == "list_directory" and calls[0]["input"] == {"path": "lib"}, calls
    assert "parser.c" in json.dumps(results), results
    told = [message for message in server.requests[-1]["messages"] if message["role"] == "tool"]
    assert len(server.requests) == 2 and len(told) == len(calls), server.requests
    stage.log(f"the model called {calls[0]['name']} {json.dumps(calls[0]['input'])}, which gave {told[0]['content'][:80]!r}\n")


@case
def the_whole_prompt_with_all_tools_is_answered(stage: Stage) -> None:
    code, out, _ = stage.run("-p", "Hi", "--max-session-turns", "1", "--dialect", "qwen", "--settings", '{"model":{"maxTokens":16}}')
    lines = records(out)
    assert lines[-1]["metadata"]["turn"]["status"] in ("done", "max_turns"), lines[-1]
    stage.log(f"the first request has {lines[-1]['usage']['prompt_tokens']} tokens\n")


@case
def an_interrupt_ends_the_turn_and_frees_the_server(stage: Stage) -> None:
    started = time.monotonic()
    process = stage.start("-p", "Write a very long story about the sea.", *BRIEF[:-2], "--dialect", "qwen", "--output-format", "stream-chunk-json")
    out = ""
    for line in process.stdout:
        out += line
        if line.count('"content":"') and '"delta"' in line:
            process.send_signal(signal.SIGINT)
            break
    rest, err = process.communicate(timeout=60)
    stage.show(rest, err, process.returncode, time.monotonic() - started)
    last = records(out + rest)[-1]
    assert process.returncode == 130 and last["metadata"]["turn"]["status"] == "cancelled", last
    code, answer, _ = stage.run("-p", "Say hello in one short sentence.", *BRIEF, "-q")
    assert code == 0 and answer.strip()


@case
def exceeding_the_limit_of_tokens_is_reported(stage: Stage) -> None:
    code, _, err = stage.run("-p", "Name a colour.", *BRIEF, "-q", "--max-tokens-total", "10")
    assert code == 0 and "was exceeded by" in err, err


@case
def a_prompt_that_does_not_fit_is_a_clear_error(stage: Stage) -> None:
    code, out, err = stage.run("-p", "word " * 12000, *BRIEF, "-q")
    assert code == 1 and not out and "context" in err, (code, err)


@case
def doctor_finds_everything_in_order(stage: Stage) -> None:
    code, out, _ = stage.run("doctor")
    assert code == 0, out
    for check in ("settings", "server", "model", "tool call", "sandbox", "mcp", "disk"):
        assert any(line.startswith(check) for line in out.splitlines()), out


@case
def a_stopped_server_is_named(stage: Stage) -> None:
    stage.server.stdin.close()
    stage.server.wait(timeout=60)
    code, out, err = stage.run("-p", "Hi", *BRIEF[:-2], "-q", "--settings", '{"model":{"maxRetries":0}}')
    assert code == 1 and not out and "cannot connect to 127.0.0.1" in err, err


def main() -> int:
    stage = Stage(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
    failed = 0
    wanted = [test for test in CASES if all(word in test.__name__ for word in sys.argv[3:])]
    for test in wanted:
        name = test.__name__.replace("_", " ")
        stage.log(f"### {name}")
        try:
            test(stage)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            stage.log(f"FAILED: {name}: {error}\n")
    stage.log(f"{len(wanted) - failed} passed, {failed} failed")
    stage.close()
    return 1 if failed else 0


sys.exit(main())
