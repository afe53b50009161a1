import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { HookEvent, McpServerInstance, PermissionRequest } from '@qwen-agent/sdk';
import { z } from 'zod';
import { z as z3 } from 'zod3';
import { all, call, only, place, say, sdk, signal } from './harness.js';

const WRITE = call('write_file', { file_path: 'out.txt', content: 'written' }, 'call_w');
const written = (work: string, name = 'out.txt'): boolean => existsSync(join(work, name));

test('every question reaches the callback and allow runs the call', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const asked: PermissionRequest[] = [];
  const session = await at.manager({ onPermissionRequest: (request) => { asked.push(request); return 'allow'; } }).createSession();
  const result = await session.run('write it');
  assert.deepEqual(asked.map(({ toolName, input, sessionId }) => ({ toolName, input, sessionId })), [
    { toolName: 'write_file', input: { file_path: 'out.txt', content: 'written' }, sessionId: session.id },
  ]);
  assert.equal(asked[0]?.confirmation?.type, 'edit');
  assert.deepEqual([result.ok, result.permissionDenials.length], [true, 0]);
  assert.ok(written(at.work));
});

test('deny refuses the call, tells the model and is listed in the result', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const session = await at.manager({ onPermissionRequest: () => ({ behavior: 'deny', message: 'not on a Sunday' }) }).createSession();
  const result = await session.run('write it');
  assert.deepEqual([result.status, result.ok], ['done', false]);
  assert.deepEqual(result.permissionDenials.map(({ tool_name: name, tool_call_id: id, reason }) => [name, id, reason]), [['write_file', 'call_w', 'not on a Sunday']]);
  assert.match((await at.toolResults()).join(), /not on a Sunday/);
  assert.ok(!written(at.work));
});

test('a denial with interrupt ends the turn', async (t) => {
  const at = await place(t, [say(WRITE), say('never said')]);
  const session = await at.manager({ onPermissionRequest: () => ({ behavior: 'deny', interrupt: true }) }).createSession();
  const result = await session.run('write it');
  assert.equal(result.status, 'cancelled');
  assert.equal(result.permissionDenials.length, 1);
});

test('ask with nobody to ask is a denial', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const session = await at.manager({ onPermissionRequest: () => 'ask' }).createSession();
  const result = await session.run('write it');
  assert.equal(result.permissionDenials.length, 1);
  assert.ok(!written(at.work));
});

test('a call runs with the input that the callback returned', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const session = await at
    .manager({ onPermissionRequest: () => ({ behavior: 'allow', updatedInput: { file_path: 'out.txt', content: 'changed' } }) })
    .createSession();
  await session.run('write it');
  assert.equal(readFileSync(join(at.work, 'out.txt'), 'utf8'), 'changed');
});

test('rules of an answer hold for the calls that follow', async (t) => {
  const at = await place(t, [say(WRITE), say('one'), say(call('write_file', { file_path: 'two.txt', content: '2' })), say('two')]);
  let questions = 0;
  const session = await at
    .manager({ onPermissionRequest: () => { questions += 1; return { behavior: 'allow', rules: ['Edit'] }; } })
    .createSession();
  await session.run('first');
  const result = await session.run('second');
  assert.deepEqual([questions, result.ok, written(at.work, 'two.txt')], [1, true, true]);
});

test('without a callback a question is a denial that the result lists', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const session = await at.manager().createSession();
  const result = await session.run('write it');
  assert.deepEqual([result.status, result.ok, result.permissionDenials.length], ['done', false, 1]);
});

test('callbacks are served for a prompt that is one string', async (t) => {
  const at = await place(t, [say(WRITE), say(call('write_file', { file_path: 'b.txt', content: 'b' })), say('done')]);
  let questions = 0;
  const options = { binaryPath: process.env.QWEN_BIN, cwd: at.work, env: at.env, onPermissionRequest: () => { questions += 1; return 'allow' as const; } };
  const messages = await all(sdk.query('write both', options));
  assert.equal(only(messages, 'result')[0]?.result.status, 'done');
  assert.equal(questions, 2);
});

test('a hook refuses a call and the model is told why', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const session = await at
    .manager({
      permissionMode: 'yolo',
      hooks: { PreToolUse: [{ matcher: 'Write', handler: () => ({ permissionDecision: 'deny', permissionDecisionReason: 'frozen' }) }] },
    })
    .createSession();
  await session.run('write it');
  assert.match((await at.toolResults()).join(), /frozen/);
  assert.ok(!written(at.work));
});

test('a hook changes the input of a call', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const handler = ({ toolInput }: HookEvent): object => ({ updatedInput: { ...toolInput, content: 'by the hook' } });
  const session = await at.manager({ permissionMode: 'yolo', hooks: { PreToolUse: [{ handler }] } }).createSession();
  await session.run('write it');
  assert.equal(readFileSync(join(at.work, 'out.txt'), 'utf8'), 'by the hook');
});

test('a SessionEnd hook runs when the session is closed', async (t) => {
  const at = await place(t, [say('done')]);
  const heard: string[] = [];
  const session = await at.manager({ hooks: { SessionEnd: [{ handler: ({ name }: HookEvent) => { heard.push(name); return undefined; } }] } }).createSession();
  await session.run('go');
  assert.deepEqual(heard, []);
  await session.close();
  assert.deepEqual(heard, ['SessionEnd']);
});

test('onHookEvent is told of every event', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const seen: string[] = [];
  const session = await at.manager({ permissionMode: 'yolo', onHookEvent: ({ name }) => { seen.push(name); } }).createSession();
  await session.run('write it');
  for (const name of ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop']) assert.ok(seen.includes(name), `${name}: ${seen.join()}`);
});

test('a hook that throws with onFailure block refuses the call', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const handler = (): never => { throw new Error('hook is broken'); };
  const session = await at.manager({ permissionMode: 'yolo', hooks: { PreToolUse: [{ handler, onFailure: 'block' }] } }).createSession();
  await session.run('write it');
  assert.ok(!written(at.work));
});

for (const [library, input] of [
  ['zod 4', z.object({ a: z.number(), b: z.number().default(1) })],
  ['zod 3', z3.object({ a: z3.number(), b: z3.number().default(1) })],
  ['a shape of zod schemas', { a: z.number(), b: z.number().default(1) }],
  ['a JSON Schema', { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a'] }],
] as const) {
  test(`a function of the host is a tool, described with ${library}`, async (t) => {
    const at = await place(t, [say(call('mcp__calc__add', { a: 2, b: 3 })), say('five')]);
    const add = sdk.tool({ name: 'add', description: 'Adds two numbers', input, run: (args) => { const { a, b } = args as { a: number; b: number }; return a + b; } });
    const session = await at.manager({ permissionMode: 'yolo', tools: [sdk.defineTools('calc', [add])] }).createSession();
    const result = await session.run('add');
    assert.equal(result.text, 'five');
    assert.deepEqual(await at.toolResults(), ['5']);
    const offered = (await at.requests())[0]?.tools?.find((tool) => tool.function.name === 'mcp__calc__add');
    const { parameters } = offered?.function as unknown as { parameters: { properties: object; required: string[] } };
    assert.deepEqual(Object.keys(parameters.properties), ['a', 'b']);
    assert.deepEqual(parameters.required, ['a']);
  });
}

test('arguments that do not fit and a ToolError are error results with their text', async (t) => {
  const at = await place(t, [say(call('mcp__calc__add', { a: 3 }), call('mcp__calc__fail')), say('well')]);
  const add = sdk.tool({ name: 'add', description: 'Adds', input: { a: z.number().refine((n) => n % 2 === 0, 'must be even') }, run: ({ a }) => a });
  const fail = sdk.tool({ name: 'fail', description: 'Fails', input: {}, run: () => { throw new sdk.ToolError('out of paper'); } });
  const session = await at.manager({ permissionMode: 'yolo', mcpServers: { calc: [add, fail] } }).createSession();
  assert.equal((await session.run('go')).status, 'done');
  const [first, second] = await at.toolResults();
  assert.match(first ?? '', /do not fit: .*must be even/);
  assert.match(second ?? '', /out of paper/);
});

test('the text of an error is logged and never sent to the model', async (t) => {
  const at = await place(t, [say(call('mcp__t__leak')), say(WRITE), say(call('list_directory', { path: '.' })), say('ok')]);
  const throws = (): never => { throw new Error('the password is hunter2'); };
  const logged: Array<[string, string]> = [];
  const ignore = (): void => undefined;
  const error = (message: string, fields?: Record<string, unknown>): void => { logged.push([message, String(fields?.stack)]); };
  const leak = sdk.tool({ name: 'leak', description: 'Leaks', input: {}, run: throws });
  const session = await at
    .manager({
      mcpServers: { t: [leak] },
      allowedTools: ['mcp__t__leak'],
      onPermissionRequest: throws,
      hooks: { PostToolUse: [{ matcher: 'list_directory', handler: throws }] },
      logger: { debug: ignore, info: ignore, warn: ignore, error },
    })
    .createSession();
  const result = await session.run('go');
  assert.equal(result.text, 'ok');
  assert.doesNotMatch(JSON.stringify(await at.requests()) + JSON.stringify(result.raw), /hunter2/);
  assert.deepEqual(logged.map(([message]) => message), ['tool failed', 'callback failed', 'callback failed']);
  for (const [, stack] of logged) assert.match(stack, /hunter2[^]*callbacks\.test/);
});

test('in-process tools of one message run in the order that the model wrote', async (t) => {
  const at = await place(t, [say(call('mcp__pair__left'), call('mcp__pair__right')), say('both')]);
  const order: string[] = [];
  const run = (name: string) => async (): Promise<string> => { order.push(`${name} begins`); await turnOfTheLoop(); order.push(`${name} ends`); return name; };
  const tools = sdk.defineTools('pair', [
    sdk.tool({ name: 'left', description: 'l', input: {}, run: run('left') }),
    sdk.tool({ name: 'right', description: 'r', input: {}, run: run('right') }),
  ]);
  const session = await at.manager({ permissionMode: 'yolo', tools: [tools] }).createSession();
  assert.equal((await session.run('go')).text, 'both');
  assert.deepEqual(order, ['left begins', 'left ends', 'right begins', 'right ends']);
});

test('a server of the official MCP SDK runs in process', async (t) => {
  const at = await place(t, [say(call('mcp__official__greet', { name: 'Ada' })), say('ok')]);
  const server = new McpServer({ name: 'official', version: '1.0.0' });
  server.registerTool('greet', { description: 'Greets', inputSchema: { name: z.string() } }, ({ name }) => ({ content: [{ type: 'text', text: `Hello ${name}` }] }));
  const instance = server as unknown as McpServerInstance;
  const session = await at.manager({ permissionMode: 'yolo', mcpServers: { official: { type: 'sdk', instance } } }).createSession();
  await session.run('greet');
  assert.deepEqual(await at.toolResults(), ['Hello Ada']);
});

test('tools need permission like any others', async (t) => {
  const at = await place(t, [say(call('mcp__calc__add')), say('no')]);
  let isCalled = false;
  const add = sdk.tool({ name: 'add', description: 'Adds', input: {}, run: () => { isCalled = true; return ''; } });
  const session = await at.manager({ tools: [sdk.defineTools('calc', [add])] }).createSession();
  assert.equal((await session.run('go')).permissionDenials.length, 1);
  assert.equal(isCalled, false);
});

test('a callback that throws is a denial and the turn goes on', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const session = await at.manager({ onPermissionRequest: () => { throw new Error('dialog crashed'); } }).createSession();
  const result = await session.run('write it');
  assert.deepEqual([result.status, result.text, result.permissionDenials.length], ['done', 'understood', 1]);
  assert.match(JSON.stringify(result.controlErrors), /can_use_tool callback failed/);
  assert.deepEqual([result.done, result.ok], [true, false], 'the turn completed, and a call was refused in it');
});

test('a callback that never returns is a denial at its deadline, and its signal is aborted', async (t) => {
  const at = await place(t, [say(WRITE), say('understood')]);
  const aborted = signal();
  const session = await at
    .manager({
      timeouts: { permission: 100 },
      onPermissionRequest: (_request, { signal: abort }) => {
        abort.addEventListener('abort', () => { aborted.open(); });
        return new Promise(() => undefined);
      },
    })
    .createSession();
  const result = await session.run('write it');
  assert.deepEqual([result.status, result.permissionDenials.length], ['done', 1]);
  await aborted.promise;
});

test('an answer after the deadline changes nothing and answers no other question', async (t) => {
  const at = await place(t, [say(WRITE), say('first'), say(call('write_file', { file_path: 'two.txt', content: '2' })), say('second')]);
  const late: Array<(answer: 'allow') => void> = [];
  const session = await at
    .manager({ timeouts: { permission: 100 }, onPermissionRequest: () => new Promise((resolve) => late.push(resolve)) })
    .createSession();
  await session.run('one');
  late[0]?.('allow');
  const result = await session.run('two');
  assert.equal(result.permissionDenials.length, 1);
  assert.ok(!written(at.work) && !written(at.work, 'two.txt'));
});

test('a prompt that is queued during a question does not answer it', async (t) => {
  const at = await place(t, [say(WRITE), say('first'), say('second')]);
  const answer = signal<'deny'>();
  const asked = signal();
  const session = await at.manager({ onPermissionRequest: () => { asked.open(); return answer.promise; } }).createSession();
  const first = session.run('one');
  await asked.promise;
  const second = session.run('yes, allow');
  answer.open('deny');
  assert.equal((await first).permissionDenials.length, 1);
  assert.equal((await second).text, 'second');
});

test('questions that are open when the turn is interrupted are aborted', async (t) => {
  const at = await place(t, [say(WRITE), say('next')]);
  const [asked, aborted] = [signal(), signal()];
  const session = await at
    .manager({
      onPermissionRequest: (_request, { signal: abort }) => {
        abort.addEventListener('abort', () => { aborted.open(); });
        asked.open();
        return new Promise(() => undefined);
      },
    })
    .createSession();
  const turn = session.run('write it');
  await asked.promise;
  await session.interrupt();
  assert.equal((await turn).status, 'cancelled');
  await aborted.promise;
  assert.equal((await session.run('go on')).text, 'next');
});

test('a control request within a slow loop is answered', async (t) => {
  const words = Array.from({ length: 6000 }, () => 'word ');
  const at = await place(t, [say(...words)]);
  const session = await at.manager().createSession();
  let hasAsked = false;
  for await (const message of session.stream('flood')) {
    if (hasAsked || message.type !== 'text') continue;
    hasAsked = true;
    assert.ok(await session.request('get_context_usage'));
  }
  assert.ok(hasAsked);
});
