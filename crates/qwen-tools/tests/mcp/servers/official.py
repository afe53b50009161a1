"""A server made with the official package, over standard input and output, or with `http` over HTTP on a port that it
prints."""
import socket
import sys
import time

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


if sys.argv[1:] == ["http"]:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
else:
    server.run()
