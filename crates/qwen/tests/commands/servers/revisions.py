"""An MCP server over standard input and output, or with `http` as the second argument over HTTP on a port that it prints.
The first argument says which revisions it speaks: `stateless` (2026-07-28), `handshake` (2025-06-18) or `both`. It appends
every message that it gets to the file `asked`, with the HTTP headers, and is strict about what the revision requires."""
import base64
import http.server
import json
import sys

SPOKEN, TRANSPORT = sys.argv[1], sys.argv[2]
PREFIX = "io.modelcontextprotocol/"
STRING = {"type": "string"}
TOOLS = {
    "lend": {"shelf": {**STRING, "x-mcp-header": "Shelf"}, "title": STRING},
    "twice": {},
    "ask": {},
    "grow": {},
}
subscription = None


class Refusal(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


def decoded(value):
    if value is not None and value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode()
    return value


def check(method, params, headers):
    """Raises what a server of the stateless revision must answer to a wrong request."""
    meta = params.get("_meta", {})
    if PREFIX + "protocolVersion" not in meta or PREFIX + "clientCapabilities" not in meta:
        raise Refusal(-32602, "the metadata of the request is incomplete")
    if meta[PREFIX + "protocolVersion"] != "2026-07-28":
        raise Refusal(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"]})
    if headers is None:
        return
    expected = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    if method in ("tools/call", "resources/read"):
        expected["mcp-name"] = params.get("name", params.get("uri"))
    if params.get("name") == "lend":
        expected["mcp-param-shelf"] = params["arguments"].get("shelf")
    for name, value in expected.items():
        if decoded(headers.get(name)) != value:
            raise Refusal(-32020, f"Header mismatch: {name}")


def result(method, params, say):
    global subscription
    if method == "initialize" and SPOKEN != "stateless":
        capabilities = {"tools": {"listChanged": True}, "resources": {}}
        return {"protocolVersion": "2025-06-18", "serverInfo": {"name": "library", "version": "1"}, "capabilities": capabilities}
    if method == "initialize":
        raise Refusal(-32022, "Unsupported protocol version", {"supported": ["2026-07-28"]})
    if method == "server/discover" and SPOKEN != "handshake":
        # Over HTTP no stream of changes is offered: it would have to stay open.
        tools = {"listChanged": True} if TRANSPORT == "stdio" else {}
        info = {PREFIX + "serverInfo": {"name": "library", "version": "2"}}
        return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": tools, "resources": {}}, "_meta": info}
    if method == "subscriptions/listen" and SPOKEN != "handshake":
        subscription = params["_meta"]
        return None
    if method == "tools/list":
        schema = lambda fields: {"type": "object", "properties": fields}
        return {"tools": [{"name": name, "inputSchema": schema(fields)} for name, fields in TOOLS.items()]}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], "text": "Water the plants."}]}
    if method == "tools/call":
        return called(params, say)
    raise Refusal(-32601, "Method not found")


def called(params, say):
    name = params["name"]
    if name == "ask":
        return {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create", "params": {}}}}
    if name == "twice" and "requestState" not in params:
        return {"resultType": "input_required", "requestState": "halfway"}
    if name == "grow":
        TOOLS["fresh"] = {}
        say({"method": "notifications/tools/list_changed"})
    token = params["_meta"].get("progressToken")
    say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "message": "on my way"}})
    text = f"Here you are: {params.get('requestState', params['arguments'].get('shelf'))}."
    return {"content": [{"type": "text", "text": text}]}


def answer(message, headers, say):
    """The response to a message; none for a notification and a request that stays open."""
    with open("asked", "a", encoding="utf-8") as asked:
        asked.write(json.dumps({**message, "headers": headers}) + "\n")
    if "id" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    is_stateless = SPOKEN == "stateless" or PREFIX + "protocolVersion" in params.get("_meta", {})
    try:
        if is_stateless and method != "initialize":
            check(method, params, headers)
        outcome = result(method, params, say)
    except Refusal as refusal:
        return {"id": message["id"], "error": refusal.error}
    if outcome is None:
        return None
    if is_stateless:
        outcome = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", **outcome}
    return {"id": message["id"], "result": outcome}


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = []
        response = answer(message, {name.lower(): value for name, value in self.headers.items()}, said.append)
        if response is None:
            self.reply(202, "text/plain", b"")
        elif "error" in response:
            self.reply(404 if response["error"]["code"] == -32601 else 400, "application/json", encoded(response))
        else:
            events = [b"data: " + encoded(one) + b"\n\n" for one in [*said, response]]
            self.reply(200, "text/event-stream", b"".join(events))

    def do_GET(self):
        self.reply(405, "text/plain", b"")

    do_DELETE = do_GET

    def reply(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def encoded(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def say(message):
    print(encoded(message).decode(), flush=True)


if TRANSPORT == "http":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    print(server.server_address[1], flush=True)
    server.serve_forever()
for line in sys.stdin:
    response = answer(json.loads(line), None, say)
    if response is not None:
        say(response)
