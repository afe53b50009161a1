"""A small MCP server with one tool and a few resources. It counts its starts in the file `starts` and
writes what it is told about a call to `called`; with the argument
`hang` it never introduces itself, with `die` it ends at once, with `odd` a second tool has a name that is none."""
import base64
import json
import sys
import time

with open("starts", "a", encoding="utf-8") as starts:
    starts.write("x")
if sys.argv[1:] == ["hang"]:
    time.sleep(1000)
if sys.argv[1:] == ["die"]:
    sys.stderr.write("no license found\n")
    sys.exit(3)

RESOURCES = {
    "note://today": {"text": "Water the plants."},
    "note://long": {"text": "x" * 300_000},
    "note://secret": {"text": "The key is sk-ant-REDACTED indeed."},
    "pic://dot": {"mimeType": "image/png", "blob": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()},
}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "serverInfo": {"name": "library", "version": "1"},
            "capabilities": {"tools": {}, "resources": {}},
        }
    if method == "tools/list":
        odd = [{"name": "lend twice!", "inputSchema": {"type": "object"}}] if sys.argv[1:] == ["odd"] else []
        return {"tools": [{"name": "lend", "description": "Lends a book.", "inputSchema": {"type": "object"}}, *odd]}
    if method == "tools/call":
        with open("called", "w", encoding="utf-8") as called:
            json.dump(params.get("_meta"), called)
        return {"content": [{"type": "text", "text": "Here you are."}]}
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": "A resource"} for uri in RESOURCES]}
    if method == "resources/read" and params["uri"] in RESOURCES:
        return {"contents": [{"uri": params["uri"], **RESOURCES[params["uri"]]}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    said = {"result": result} if result is not None else {"error": {"code": -32002, "message": "Resource not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
