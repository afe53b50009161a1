"""Streams an answer to a web page with FastAPI.

pip install fastapi uvicorn
python examples/streaming_web.py         # then open http://127.0.0.1:8000
"""

import json
import os
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, StreamingResponse

from qwen_agent_sdk import AssistantChunk, ResultMessage, query

app = FastAPI()

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>qwen</title>
<form id="form"><input id="prompt" size="60" value="What can you do?"> <button>Ask</button></form>
<pre id="answer"></pre><p id="status"></p>
<script>
document.getElementById("form").onsubmit = (event) => {
  event.preventDefault();
  const answer = document.getElementById("answer"), status = document.getElementById("status");
  answer.textContent = ""; status.textContent = "…";
  const source = new EventSource("/stream?prompt=" + encodeURIComponent(document.getElementById("prompt").value));
  source.addEventListener("text", (e) => { answer.textContent += JSON.parse(e.data); });
  source.addEventListener("result", (e) => { status.textContent = JSON.parse(e.data).status; source.close(); });
};
</script>
"""


@app.get("/")
async def page() -> HTMLResponse:
    return HTMLResponse(PAGE)


@app.get("/stream")
async def stream(prompt: str) -> StreamingResponse:
    return StreamingResponse(events(prompt), media_type="text/event-stream")


async def events(prompt: str) -> AsyncIterator[str]:
    # A browser that goes away cancels this generator, and 'async with' ends the worker.
    model = os.environ.get("EXAMPLE_MODEL", "demo")
    async with query(prompt, model=model, include_partial_messages=True) as messages:
        async for message in messages:
            if isinstance(message, AssistantChunk) and message.text:
                yield f"event: text\ndata: {json.dumps(message.text)}\n\n"
            elif isinstance(message, ResultMessage):
                data = {"status": message.status, "tokens": message.usage.total_tokens}
                yield f"event: result\ndata: {json.dumps(data)}\n\n"


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))
