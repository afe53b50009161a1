// Streams an answer to a web page with server-sent events. Closing the page interrupts the turn.
//   npx tsx web_stream.ts   then open http://127.0.0.1:8080

import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createAgentManager } from '@qwen-agent/sdk';

const PAGE = `<!doctype html><meta charset="utf-8"><title>qwen</title>
<form><input name="prompt" value="Look around" size="60"><button>Ask</button></form>
<pre id="answer"></pre><p id="status"></p>
<script>
document.querySelector('form').onsubmit = (event) => {
  event.preventDefault();
  const answer = document.querySelector('#answer'), status = document.querySelector('#status');
  answer.textContent = ''; status.textContent = 'working';
  const source = new EventSource('/stream?prompt=' + encodeURIComponent(event.target.prompt.value));
  source.addEventListener('text', ({ data }) => { answer.textContent += JSON.parse(data); });
  source.addEventListener('result', ({ data }) => { status.textContent = JSON.parse(data).status; source.close(); });
};
</script>`;

const manager = createAgentManager({ model: process.env.QWEN_EXAMPLE_MODEL ?? 'demo' });

async function stream(prompt: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  await using session = await manager.createSession();
  const gone = new AbortController();
  response.once('close', () => { gone.abort(); });
  const send = async (event: string, value: unknown): Promise<void> => {
    // A browser that reads slowly slows the agent down.
    if (!response.write(`event: ${event}\ndata: ${JSON.stringify(value)}\n\n`)) await once(response, 'drain', { signal: gone.signal });
  };
  for await (const message of session.stream(prompt, { signal: gone.signal })) {
    if (message.type === 'text') await send('text', message.text);
    if (message.type === 'result') await send('result', { status: message.result.status, usage: message.result.usage });
  }
  response.end();
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (url.pathname === '/stream') {
    stream(url.searchParams.get('prompt') ?? '', response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  } else {
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  }
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
});
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
  void manager.close();
});
