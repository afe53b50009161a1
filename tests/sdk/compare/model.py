"""A scripted model on Anthropic's wire that both programs can use: it answers by the state of the conversation, because
the programs send further requests of their own (titles, summaries) that would disturb a list of replies."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[str, dict[str, Any] | None, str]
"""A text, a tool call (`name`, `input`) or none, and the stop reason."""


class ScriptedModel:
    """Serves until it is closed. `answer` gets the body of each request for a message."""

    def __init__(self, answer: Callable[[dict[str, Any]], Reply]) -> None:
        self.bodies: list[dict[str, Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def send(self, kind: str, data: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_HEAD(self) -> None:
                self.send("text/plain", b"")

            def do_GET(self) -> None:
                self.send("application/json", b"{}")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if not self.path.split("?")[0].endswith("/v1/messages"):
                    self.send("application/json", b'{"input_tokens":10}')
                    return
                model.bodies.append(body)
                self.send("text/event-stream", events(body, answer(body)))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()


def events(body: dict[str, Any], reply: Reply) -> bytes:
    """One streamed message: 100 tokens in, 20 out."""
    text, call, stop = reply
    usage = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": f"msg_{len(body['messages'])}", "type": "message", "role": "assistant", "model": body.get("model")}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    lines: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": text}))
    if call:
        start = {"type": "tool_use", "id": f"toolu_{len(body['messages'])}", "name": call["name"], "input": {}}
        blocks.append((start, {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}))
    for index, (start, delta) in enumerate(blocks):
        lines.append({"type": "content_block_start", "index": index, "content_block": start})
        lines.append({"type": "content_block_delta", "index": index, "delta": delta})
        lines.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "tool_use" if call else stop, "stop_sequence": None}
    lines.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}})
    lines.append({"type": "message_stop"})
    return "".join(f"event: {line['type']}\ndata: {json.dumps(line)}\n\n" for line in lines).encode()


def results_in(body: dict[str, Any]) -> int:
    """How many tool results the conversation contains."""
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return sum(block.get("type") == "tool_result" for block in blocks)
