// Mistakes that must not pass silently, and callbacks of the host that fail.

import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentManagerOptions } from '@qwen-agent/sdk';
import { call, fakeWorker, place, say, sdk, temporaryDirectory } from './harness.js';

/** Options as a program without types may pass them. */
const untyped = (options: Record<string, unknown>): AgentManagerOptions => options;

for (const [name, words] of [
  ['canUseTool', /There is no option canUseTool; use onPermissionRequest/],
  ['maxTurns', /use limits\.maxTurns/],
  ['excludeTools', /use disallowedTools/],
  ['abortController', /use signal/],
  ['pathToQwenExecutable', /use binaryPath/],
  ['resume', /use manager\.resumeSession\(id\)/],
] as const) {
  test(`the option ${name} of another SDK is an error that names ours`, async () => {
    assert.throws(() => sdk.createAgentManager(untyped({ [name]: 1 })), { name: 'TypeError', message: words });
    assert.throws(() => sdk.query('go', untyped({ [name]: 1 })), { name: 'TypeError', message: words });
    await assert.rejects(sdk.createAgentManager().createSession(untyped({ [name]: 1 })), { name: 'TypeError', message: words });
  });
}

test('a text in place of a list, a directory with a comma and tool servers of one name are errors', () => {
  for (const name of ['allowedTools', 'disallowedTools', 'coreTools', 'additionalDirectories', 'settingSources', 'extraArgs', 'tools']) {
    assert.throws(() => sdk.createAgentManager(untyped({ [name]: 'Bash' })), { message: `The option ${name} must be an array` });
  }
  assert.throws(() => sdk.createAgentManager({ additionalDirectories: ['/a,b'] }), /comma/);
  const server = sdk.defineTools('s', []);
  assert.throws(() => sdk.createAgentManager({ tools: [server, server] }), /two tool servers named s/);
  assert.throws(() => sdk.createAgentManager(untyped({ tools: [{}] })), /what defineTools\(\) returns/);
  assert.throws(() => sdk.createAgentManager(untyped({ mcpServers: { t: [() => 1] } })), /mcpServers\.t must be an array of tools/);
  assert.throws(() => sdk.tool('add' as never), /tool\(\{ name, description, input, run \}\)/);
});

test('hooks that would never be called are errors at the start', async () => {
  const start = (hooks: object): Promise<unknown> => sdk.createAgentManager(untyped({ hooks })).createSession();
  await assert.rejects(start({ PreToolUse: [{ matcher: 'Bash', hooks: [() => ({})] }] }), /must be an array of \{ matcher, handler \}/);
  await assert.rejects(start({ PreToolUse: () => ({}) }), /must be an array of \{ matcher, handler \}/);
  await assert.rejects(start({ PreTool: [{ handler: () => ({}) }] }), /the event PreTool, which does not exist; there are PreToolUse/);
});

test('what is no prompt is an error, and the session goes on', async (t) => {
  const at = await place(t, [say('fine')]);
  const session = await at.manager().createSession();
  for (const [wrong, words] of [
    [undefined, /A prompt is undefined; it must be a text/],
    [42, /A prompt is 42/],
    [['go'], /a part is an object with the type text, image or file/],
    [[{ type: 'video' }], /a part is an object with the type text, image or file/],
    [{ prompt: 'go', options: {} }, /query\(prompt, options\)/],
  ] as const) {
    assert.throws(() => sdk.query(wrong as never), words);
    await assert.rejects(session.run(wrong as never), words);
    await assert.rejects(session.steer(wrong as never), words);
  }
  async function* prompts(): AsyncGenerator<string> {
    yield await Promise.resolve(7 as never);
  }
  await assert.rejects(session.run(prompts()), /A prompt is 7/);
  assert.equal((await session.run('go')).text, 'fine');
});

test('a permission callback that returns no decision is a denial, and the log says why', async (t) => {
  const at = await place(t, [say(call('write_file', { file_path: 'x', content: 'x' })), say('done')]);
  const logged: unknown[] = [];
  const ignore = (): void => undefined;
  const logger = { debug: ignore, info: ignore, warn: ignore, error: (_: string, fields?: object) => { logged.push(fields); } };
  const session = await at.manager({ logger, onPermissionRequest: () => true as never }).createSession();
  const result = await session.run('go');
  assert.equal(result.ok, false);
  assert.match(JSON.stringify(logged), /onPermissionRequest must return allow, deny or ask.*it returned true/);
  assert.equal(existsSync(join(at.work, 'x')), false);
});

test('a logger, a stderr callback and a subscriber that throw cost nothing', async (t) => {
  const fail = (): never => {
    throw new Error('a callback of the host failed');
  };
  const body = 'process.stderr.write("words\\n"); handshake(); write({ type: "result/heartbeat", session_id: id }); serve((prompt) => { write({ type: "result/heartbeat", session_id: id }); text(prompt, "fine"); terminal(prompt); });';
  const logger = { debug: fail, info: fail, warn: fail, error: fail };
  const manager = sdk.createAgentManager({ binaryPath: fakeWorker(t, body), logger, stderr: fail });
  t.after(() => manager.close());
  const session = await manager.createSession();
  session.subscribe(fail);
  assert.equal((await session.run('go')).text, 'fine');
});

test('a working directory that is a file is an error that says so', async (t) => {
  const cwd = join(temporaryDirectory(t), 'file');
  writeFileSync(cwd, '');
  const manager = sdk.createAgentManager({ binaryPath: process.execPath, cwd });
  await assert.rejects(manager.createSession(), { name: 'ProtocolError', code: 'cannot_start', message: /is not a directory/ });
});

test('many sessions with settings of their own add no warning about listeners', async (t) => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): void => { warnings.push(message); };
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  const at = await place(t, []);
  const controller = new AbortController();
  const manager = at.manager({ allowedTools: ['Read'], signal: controller.signal });
  await Promise.all(Array.from({ length: 12 }, () => manager.createSession()));
  await manager.close();
  // Warnings are delivered with the next tick.
  await new Promise((done) => setImmediate(done));
  assert.deepEqual(warnings, []);
});
