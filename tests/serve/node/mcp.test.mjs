// `/mcp` and `qwen mcp serve` through the official MCP clients: 1.x for the revisions with a handshake, 2.x for 2026-07-28.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const url = process.env.QWEN_SERVE_URL;
const token = process.env.QWEN_SERVE_TOKEN;
const workspace = process.env.QWEN_SERVE_WORKSPACE;
const made = join(workspace, 'made.txt');
const bearer = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
const info = { name: 'tests', version: '1.0.0' };
const home = mkdtempSync(join(tmpdir(), 'qwen-mcp-'));
const stdio = {
  command: process.env.QWEN_BIN,
  args: ['mcp', 'serve', '--', '--model', `script:${process.env.QWEN_SERVE_SCRIPT}`],
  cwd: workspace,
  env: { ...process.env, HOME: home, QWEN_HOME: join(home, 'qwen') },
};
after(() => rmSync(home, { recursive: true, force: true }));

/** A client of each kind, over each transport; `ask` answers its questions. */
const kinds = {
  'handshake over HTTP': (ask) => first(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), bearer), ask),
  'handshake on stdio': (ask) => first(new StdioClientTransport(stdio), ask),
  '2026-07-28 over HTTP': (ask) => second(new Http2(new URL(`${url}/mcp`), bearer), ask),
  '2026-07-28 on stdio': (ask) => second(new Stdio2(stdio), ask),
};

async function first(transport, ask) {
  const client = new Client(info, { capabilities: ask ? { elicitation: {} } : {} });
  if (ask) client.setRequestHandler(ElicitRequestSchema, ask);
  await client.connect(transport);
  const run = (args, options) => client.callTool({ name: 'run', arguments: args }, undefined, options);
  return { client, run };
}

async function second(transport, ask) {
  const options = { capabilities: ask ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode: { pin: '2026-07-28' } } };
  const client = new Client2(info, options);
  if (ask) client.setRequestHandler('elicitation/create', ask);
  await client.connect(transport);
  const run = (args, options) => client.callTool({ name: 'run', arguments: args }, options);
  return { client, run };
}

for (const [kind, connect] of Object.entries(kinds)) {
  test(`${kind}: the tool is listed and a session continues`, async () => {
    const { client, run } = await connect();
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name), ['run']);
    assert.deepEqual(tools[0].inputSchema.required, ['prompt']);
    const one = await run({ prompt: 'say hello' });
    assert.equal(one.structuredContent.text, 'Hello from qwen.');
    assert.equal(one.structuredContent.status, 'done');
    assert.equal(one.content[0].text, 'Hello from qwen.');
    const two = await run({ prompt: 'and again', session: one.structuredContent.session });
    assert.deepEqual(two.structuredContent, { session: one.structuredContent.session, status: 'done', text: 'Hello again.' });
    await client.close();
  });

  test(`${kind}: progress is reported`, async () => {
    const { client, run } = await connect();
    const told = [];
    await run({ prompt: 'list the files' }, { onprogress: ({ progress, message }) => told.push([progress, message]) });
    assert.ok(told.some(([, message]) => message === 'Calling list_directory'), JSON.stringify(told));
    assert.ok(told.every(([progress], index) => index === 0 || progress > told[index - 1][0]), 'progress increases');
    await client.close();
  });

  for (const [decision, exists] of [['allow', true], ['deny', false]]) {
    test(`${kind}: a question is asked and answered: ${decision}`, async () => {
      rmSync(made, { force: true });
      const asked = [];
      const { client, run } = await connect(({ params }) => {
        asked.push(params);
        return { action: 'accept', content: { decision } };
      });
      const { structuredContent } = await run({ prompt: 'make a file' });
      assert.equal(structuredContent.status, 'done');
      assert.equal(structuredContent.text, 'File handled.');
      assert.equal(asked.length, 1);
      assert.match(asked[0].message, /touch made\.txt/);
      assert.deepEqual(asked[0].requestedSchema.required, ['decision']);
      assert.equal(existsSync(made), exists);
      await client.close();
    });
  }

  test(`${kind}: a declined question is a denial`, async () => {
    rmSync(made, { force: true });
    const { client, run } = await connect(() => ({ action: 'decline' }));
    await run({ prompt: 'make a file' });
    assert.equal(existsSync(made), false);
    await client.close();
  });

  test(`${kind}: without elicitation a call is denied at once, and the result states it`, async () => {
    rmSync(made, { force: true });
    const { client, run } = await connect();
    const { structuredContent, content } = await run({ prompt: 'make a file' });
    assert.equal(structuredContent.status, 'done');
    assert.deepEqual(structuredContent.denied, ['run_shell_command touch made.txt']);
    assert.match(content[0].text, /Denied.*touch made\.txt/s);
    assert.equal(existsSync(made), false);
    await client.close();
  });

  test(`${kind}: a cancelled call ends its turn`, async () => {
    const { client, run } = await connect();
    const abort = new AbortController();
    const running = run({ prompt: 'write slowly' }, { signal: abort.signal, onprogress: () => abort.abort() });
    await assert.rejects(running);
    if (kind.endsWith('HTTP')) await until(async () => (await sessions()).every(({ title, status }) => title !== 'write slowly' || status === 'idle'));
    await client.close();
  });

  test(`${kind}: what is wrong in the arguments is a result that the model can read`, async () => {
    const { client, run } = await connect();
    for (const [args, expected] of [
      [{ prompt: 'x', session: 'none' }, /no such session/],
      [{ prompt: 'x', workspace: '/etc' }, /not one of this server's/],
      [{ prompt: '' }, /not empty/],
    ]) {
      const result = await run(args);
      assert.equal(result.isError, true);
      assert.match(result.content[0].text, expected);
    }
    await assert.rejects(client.callTool({ name: 'other', arguments: {} }));
    await client.close();
  });

  test(`${kind}: a failed turn is an error with its cause`, async () => {
    const { client, run } = await connect();
    const result = await run({ prompt: 'fail please' });
    assert.equal(result.isError, true);
    assert.equal(result.structuredContent.status, 'error');
    assert.match(result.content[0].text, /broken model/);
    await client.close();
  });
}

async function sessions() {
  const response = await fetch(`${url}/api/sessions`, bearer.requestInit);
  return (await response.json()).sessions;
}

async function until(condition) {
  while (!(await condition()));
}

/** A request of revision 2026-07-28 that declares tasks and elicitation. */
async function request(method, params, { name, extensions = { 'io.modelcontextprotocol/tasks': {} }, headers = {} } = {}) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': info,
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, extensions },
  };
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      ...bearer.requestInit.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(name ? { 'mcp-name': name } : {}), ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
  });
  const text = await response.text();
  const json = response.headers.get('content-type') === 'application/json' ? text : text.split('data: ').at(-1);
  return { status: response.status, ...JSON.parse(json) };
}

const call = (prompt, options) => request('tools/call', { name: 'run', arguments: { prompt } }, { name: 'run', ...options });
const task = (method, taskId, params = {}) => request(method, { taskId, ...params }, { name: taskId });

async function ended(taskId) {
  for (;;) {
    const { result } = await task('tasks/get', taskId);
    if (!['working', 'input_required'].includes(result.status)) return result;
  }
}

test('a long run becomes a task, whose result is read later', async () => {
  const { result } = await call('take a while');
  assert.equal(result.resultType, 'task');
  assert.equal(result.status, 'working');
  const done = await ended(result.taskId);
  assert.equal(done.status, 'completed');
  assert.equal(done.resultType, 'complete');
  assert.equal(done.result.structuredContent.text, 'Took a while.');
});

test('a task asks its questions and is told the answers', async () => {
  rmSync(made, { force: true });
  const { result } = await call('make a file');
  assert.equal(result.resultType, 'task');
  let asking;
  do asking = (await task('tasks/get', result.taskId)).result; while (asking.status === 'working');
  assert.equal(asking.status, 'input_required');
  const [[key, question]] = Object.entries(asking.inputRequests);
  assert.equal(question.method, 'elicitation/create');
  const inputResponses = { [key]: { action: 'accept', content: { decision: 'allow' } } };
  assert.deepEqual((await task('tasks/update', result.taskId, { inputResponses })).result.resultType, 'complete');
  const done = await ended(result.taskId);
  assert.equal(done.result.structuredContent.text, 'File handled.');
  assert.equal(existsSync(made), true);
});

test('a task is cancelled', async () => {
  const { result } = await call('write slowly');
  assert.equal(result.resultType, 'task');
  await task('tasks/cancel', result.taskId);
  assert.equal((await ended(result.taskId)).status, 'cancelled');
});

test('a task needs the extension, and an unknown one is an error', async () => {
  const without = await request('tasks/get', { taskId: 'x' }, { name: 'x', extensions: {} });
  assert.deepEqual([without.status, without.error.code], [400, -32021]);
  assert.equal((await task('tasks/get', 'unknown')).error.code, -32602);
});

test('the state of a question is valid once, and only for its request', async () => {
  const { result } = await call('make a file', { extensions: {} });
  assert.equal(result.resultType, 'input_required');
  const { requestState, inputRequests } = result;
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: 'decline' }]));
  const retry = (prompt) => request('tools/call', { name: 'run', arguments: { prompt }, requestState, inputResponses }, { name: 'run', extensions: {} });
  assert.equal((await retry('another prompt')).error.code, -32602);
  assert.equal((await retry('make a file')).result.structuredContent.text, 'File handled.');
  assert.equal((await retry('make a file')).error.code, -32602);
});

test('headers that differ from the body are refused', async () => {
  for (const headers of [{ 'mcp-method': 'tools/list' }, { 'mcp-name': 'other' }, { 'mcp-protocol-version': '2025-11-25' }]) {
    const refused = await call('say hello', { headers });
    assert.deepEqual([refused.status, refused.error.code], [400, -32020], JSON.stringify(headers));
  }
});

test('an unknown revision is refused with those that are known', async () => {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } } };
  const response = await fetch(`${url}/mcp`, {
    method: 'POST', body: JSON.stringify(body),
    headers: { ...bearer.requestInit.headers, 'content-type': 'application/json', 'mcp-protocol-version': '2030-01-01' },
  });
  const { error } = await response.json();
  assert.deepEqual([response.status, error.code, error.data.supported[0]], [400, -32022, '2026-07-28']);
});

test('an unknown session of the handshake is 404, and a session ends by DELETE', async () => {
  const headers = { ...bearer.requestInit.headers, 'content-type': 'application/json' };
  const post = (body, further = {}) => fetch(`${url}/mcp`, { method: 'POST', headers: { ...headers, ...further }, body: JSON.stringify({ jsonrpc: '2.0', ...body }) });
  assert.equal((await post({ id: 1, method: 'tools/list' }, { 'mcp-session-id': 'unknown' })).status, 404);
  assert.equal((await post({ id: 1, method: 'tools/list' })).status, 400);
  const started = await post({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: info } });
  assert.equal((await started.json()).result.protocolVersion, '2025-06-18');
  const session = { 'mcp-session-id': started.headers.get('mcp-session-id') };
  assert.equal((await post({ method: 'notifications/initialized' }, session)).status, 202);
  assert.equal((await post({ id: 2, method: 'tools/list' }, session)).status, 200);
  assert.equal((await fetch(`${url}/mcp`, { method: 'DELETE', headers: { ...headers, ...session } })).status, 204);
  assert.equal((await post({ id: 3, method: 'tools/list' }, session)).status, 404);
  assert.equal((await fetch(`${url}/mcp`, { headers: bearer.requestInit.headers })).status, 405);
});
