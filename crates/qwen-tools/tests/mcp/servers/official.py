"""A server made with the official package, over standard input and output, or with `http` over HTTP on a port that it
prints. The package serves clients of all revisions; with `stateless` as the last argument the server refuses the handshake,
as one does that speaks only 2026-07-28."""
import json
import socket
import subprocess
import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("official", version="1.2.3", instructions="Add numbers.")
PIXEL = bytes.fromhex("47494638396101000100000000002c00000000010001000002")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def picture() -> Image:
    """Draws a picture."""
    return Image(data=PIXEL, format="gif")


@server.tool()
async def work(steps: int, ctx: Context) -> str:
    """Works and tells about it."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "worked"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it was never meant to work")


@server.tool()
async def wait(ctx: Context) -> str:
    """Waits until it is cancelled."""
    await ctx.report_progress(0, 1, "waiting")
    try:
        await anyio.sleep(1000)
    except anyio.get_cancelled_exc_class():
        with open("cancelled", "w", encoding="utf-8") as out:
            out.write("yes")
        raise
    return "waited"


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda: "new", name="fresh", description="A new tool.")
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("note://today")
def note() -> str:
    """What there is to do."""
    return "Water the plants."


def refusal(message):
    """The error for a handshake; none for everything else."""
    if message.get("method") != "initialize":
        return None
    error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error})


def without_handshake(app):
    """The HTTP application, which refuses the handshake."""

    async def serve(scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await app(scope, receive, send)
        events = [await receive()]
        while events[-1].get("more_body"):
            events.append(await receive())
        refused = refusal(json.loads(b"".join(event["body"] for event in events)))
        if refused:
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"application/json")]})
            return await send({"type": "http.response.body", "body": refused.encode()})

        async def replayed():
            return events.pop(0) if events else await receive()

        await app(scope, replayed, send)

    return serve


def filter_handshake():
    """Stands between the client and the server itself."""
    with subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE) as child:
        for line in sys.stdin.buffer:
            refused = refusal(json.loads(line))
            if refused:
                print(refused, flush=True)
            else:
                child.stdin.write(line)
                child.stdin.flush()


if sys.argv[1:2] == ["http"]:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    if sys.argv[2:] == ["stateless"]:
        app = without_handshake(app)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
elif sys.argv[1:] == ["stateless"]:
    filter_handshake()
else:
    server.run()
