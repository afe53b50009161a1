// Qwen Code's TypeScript SDK, and what its own executable gets wrong.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSdkMcpServer, query, tool } from '@qwen-code/sdk';
import { z } from 'zod';
import { PIXEL, all, binary, blocks, call, children, gate, place, raw, result, say, signal, sleeping, text, textOf, until, user } from './model.mjs';

const WRITE = call('write_file', { file_path: 'out.txt', content: 'written' }, 'call_w');

const start = (at, prompt, options = {}) =>
  query({ prompt, options: { pathToQwenExecutable: binary, cwd: at.work, env: at.env, ...options } });

const run = (at, prompt, options) => all(start(at, prompt, options));

/** Two prompts, the second after the first result. */
function two(first, second) {
  const next = signal();
  return { next: next.open, prompts: (async function* () { yield first; await next.promise; yield second; })() };
}

/** The results of a conversation, with something to do at each message. */
async function ends(running, { next }, at = async () => {}) {
  const found = [];
  for await (const message of running) {
    await at(message);
    if (message.type === 'result') {
      found.push(message);
      next();
    }
  }
  return found;
}

test('a prompt is answered by one success', async (t) => {
  const at = await place(t, [say('Hello ', 'there')]);
  const sessionId = randomUUID();
  const messages = await run(at, 'hi', { sessionId });
  const [init] = messages;
  assert.deepEqual([init.type, init.subtype, init.session_id, init.permission_mode], ['system', 'init', sessionId, 'default']);
  assert.ok(init.qwen_code_version);
  const end = result(messages);
  assert.deepEqual([end.subtype, end.is_error, end.result, end.session_id], ['success', false, 'Hello there', sessionId]);
  assert.equal(text(messages), 'Hello there');
});

test('lines of a prompt are turns of one conversation', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const conversation = two(user('a'), user('b'));
  const found = await ends(start(at, conversation.prompts), conversation);
  assert.deepEqual(found.map((end) => end.result), ['one', 'two']);
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
});

test('with no mode given the host is asked before a file is written', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const asked = [];
  await run(at, 'go', {
    canUseTool: async (name, input, { suggestions }) => {
      asked.push({ name, suggestions });
      return { behavior: 'allow', updatedInput: input };
    },
  });
  assert.equal(asked[0].name, 'write_file');
  assert.deepEqual(asked[0].suggestions.map((s) => [s.type, s.label]), [['allow', 'Allow Edit'], ['deny', 'Deny'], ['modify', 'Review Changes']]);
  assert.equal(readFileSync(join(at.work, 'out.txt'), 'utf8'), 'written');
});

test('without a callback nothing is written', async (t) => {
  const at = await place(t, [say(WRITE), say('a pity')]);
  const end = result(await run(at, 'go'));
  assert.ok(!existsSync(join(at.work, 'out.txt')));
  assert.equal(end.permission_denials.length, 1);
});

test('a changed input is what runs', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  await run(at, 'go', { canUseTool: async (name, input) => ({ behavior: 'allow', updatedInput: { ...input, content: 'changed' } }) });
  assert.equal(readFileSync(join(at.work, 'out.txt'), 'utf8'), 'changed');
});

test('a denied call is listed', async (t) => {
  const at = await place(t, [say(WRITE), say('a pity')]);
  const end = result(await run(at, 'go', { canUseTool: async () => ({ behavior: 'deny', message: 'not today' }) }));
  assert.deepEqual(end.permission_denials.map((d) => [d.tool_name, d.tool_use_id]), [['write_file', 'call_w']]);
  assert.match((await at.results())[0], /not today/);
});

test('a denial can end the turn', async (t) => {
  const at = await place(t, [say(WRITE), say('never')]);
  const end = result(await run(at, 'go', { canUseTool: async () => ({ behavior: 'deny', message: 'stop', interrupt: true }) }));
  assert.deepEqual([end.subtype, end.is_error], ['error_during_execution', true]);
  assert.ok(end.error.message);
  assert.equal((await at.requests()).length, 1);
});

for (const [permissionMode, writes] of [['plan', false], ['default', false], ['auto-edit', true], ['auto', false], ['yolo', true]]) {
  test(`in the mode ${permissionMode} a file is ${writes ? '' : 'not '}written unasked`, async (t) => {
    const at = await place(t, [say(WRITE), say('done')]);
    await run(at, 'go', { permissionMode });
    assert.equal(existsSync(join(at.work, 'out.txt')), writes);
  });
}

test('limits are results with a clean end', async (t) => {
  const at = await place(t, [say(call('list_directory', { path: '.' }))], { loop: true });
  const turns = result(await run(at, 'go', { maxSessionTurns: 2 }));
  assert.deepEqual([turns.subtype, turns.is_error], ['error_max_turns', true]);
  const calls = result(await run(at, 'go', { maxToolCalls: 1 }));
  assert.equal(calls.is_error, true);
  assert.ok(calls.error.message);
});

test('a limit of time is a result too', async (t) => {
  const at = await place(t, [say('slow', gate('never'))]);
  const end = result(await run(at, 'go', { extraArgs: ['--max-wall-time', '1'] }));
  assert.equal(end.is_error, true);
  assert.ok(end.error.message);
});

test('an image is no text', async (t) => {
  const at = await place(t, [say('A pixel.')]);
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } };
  await run(at, (async function* () { yield user([{ type: 'text', text: 'What?' }, image]); })());
  const last = (await at.messages()).at(-1);
  assert.deepEqual(last.content.map((p) => p.type), ['text', 'image_url']);
  assert.ok(!textOf(last).includes(PIXEL));
});

test('arguments stream in pieces, and a message ends in its order', async (t) => {
  const bits = ['{"pa', 'th": ', '"."}'];
  const at = await place(t, [
    raw('tool_calls', { content: 'one' },
      { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'list_directory', arguments: '' } }] },
      ...bits.map((bit) => ({ tool_calls: [{ index: 0, function: { arguments: bit } }] }))),
    say('two'),
  ]);
  const messages = await run(at, 'go', { includePartialMessages: true });
  const events = messages.filter((m) => m.type === 'stream_event').map((m) => m.event);
  const pieces = events.map((e) => e.delta).filter((d) => d?.type === 'input_json_delta').map((d) => d.partial_json).filter(Boolean);
  assert.deepEqual(pieces, bits);
  const last = messages.slice(-4).map((m) => (m.type === 'stream_event' ? m.event.type : m.type));
  assert.deepEqual([last.at(-2), last.at(-1)], ['message_stop', 'result']);
});

test('functions of the host are tools', async (t) => {
  const at = await place(t, [say(call('mcp__calc__add', { a: 2, b: 3 })), say('done')]);
  const server = createSdkMcpServer({
    name: 'calc',
    tools: [tool('add', 'Adds', { a: z.number(), b: z.number() }, async ({ a, b }) => ({ content: [{ type: 'text', text: `sum ${a + b}` }] }))],
  });
  const messages = await run(at, 'go', { mcpServers: { calc: server }, allowedTools: ['mcp__calc__add'], permissionMode: 'yolo' });
  assert.equal(result(messages).result, 'done');
  assert.match((await at.results())[0], /sum 5/);
});

test('an interrupt ends the turn and keeps the session', async (t) => {
  const at = await place(t, [say('I was ', gate('never')), say('fresh')]);
  const conversation = two(user('talk'), user('again'));
  const running = start(at, conversation.prompts, { includePartialMessages: true });
  let asked = false;
  const found = await ends(running, conversation, async (message) => {
    if (message.type === 'stream_event' && message.event.delta?.text && !asked) {
      asked = true;
      await running.interrupt();
    }
  });
  assert.deepEqual(found.map((end) => end.subtype), ['error_during_execution', 'success']);
  assert.equal(found[1].result, 'fresh');
  assert.ok(found[0].error.message);
});

test('model, mode, effort and questions about the session', async (t) => {
  const at = await place(t, [say('one'), say(WRITE), say('two')]);
  const conversation = two(user('a'), user('b'));
  const running = start(at, conversation.prompts, { model: 'first' });
  let first = true;
  await ends(running, conversation, async (message) => {
    if (message.type !== 'result' || !first) return;
    first = false;
    await running.setModel('second');
    await running.setPermissionMode('yolo');
    await running.setEffort?.('low');
    assert.ok(Array.isArray((await running.supportedCommands()).commands));
    const usage = await running.getContextUsage(true);
    assert.ok(usage.contextWindowSize > 0 && usage.breakdown.freeSpace > 0 && usage.modelName);
    assert.ok(await running.mcpServerStatus());
    const models = await running.getAvailableModels?.();
    assert.ok(!models || JSON.stringify(models).includes('contextWindowSize'));
    await assert.rejects(running.setPermissionMode('bogus'), /Invalid permission mode: bogus/);
  });
  assert.deepEqual((await at.requests()).map((r) => r.model), ['first', 'second', 'second']);
  assert.ok(existsSync(join(at.work, 'out.txt')));
});

test('sessions are resumed and forked, and the fork says its name', async (t) => {
  const at = await place(t, [say('one'), say('two'), say('three')]);
  const id = result(await run(at, 'a')).session_id;
  assert.equal(result(await run(at, 'b', { resume: id })).session_id, id);
  const forked = await run(at, 'c', { resume: id, forkSession: true });
  assert.notEqual(result(forked).session_id, id);
  assert.equal(forked[0].session_id, result(forked).session_id);
  assert.deepEqual(await at.history(), ['a', 'one', 'b', 'two', 'c']);
});

test('agents of the host do their part', async (t) => {
  const at = await place(t, [
    say(call('agent', { description: 'look', prompt: 'Look', subagent_type: 'reviewer' }, 'call_a')), say('Fine.'), say('All is well.'),
  ]);
  const agents = [{ name: 'reviewer', description: 'Reviews', systemPrompt: 'You review with care.', level: 'session' }];
  const messages = await run(at, 'go', { agents, permissionMode: 'yolo' });
  assert.equal(result(messages).result, 'All is well.');
  assert.match(await at.system(1), /You review with care\./);
});

test('tools can be chosen and left out', async (t) => {
  const at = await place(t, [say('a'), say('b')]);
  await run(at, 'hi', { coreTools: ['read_file'] });
  await run(at, 'hi', { excludeTools: ['run_shell_command'] });
  assert.deepEqual(await at.tools(0), ['read_file']);
  assert.ok(!(await at.tools(1)).includes('run_shell_command'));
});

test('system prompts reach the model', async (t) => {
  const at = await place(t, [say('a'), say('b')]);
  await run(at, 'hi', { systemPrompt: 'Be a pirate.' });
  await run(at, 'hi', { systemPrompt: { type: 'preset', preset: 'qwen_code', append: 'Be polite.' } });
  assert.match(await at.system(0), /Be a pirate\./);
  assert.match(await at.system(1), /Be polite\./);
});

test('an error of the model is a result', async (t) => {
  const at = await place(t, [{ steps: [{ status: 400, body: { error: { message: 'an odd prompt' } } }] }]);
  const end = result(await run(at, 'hi'));
  assert.equal(end.is_error, true);
  assert.match(JSON.stringify(end), /an odd prompt/);
});

const OPTIONS = {
  'more directories': { includeDirectories: ['.'] },
  'the depth of agents': { maxSubagentDepth: 3 },
  extensions: { extensions: ['none'] },
  'names of MCP servers': { allowedMcpServerNames: ['calc'] },
  'fallback models': { fallbackModel: ['a', 'b'] },
  'the safe mode': { safeMode: true },
  'slash commands that are off': { disabledSlashCommands: ['help'] },
  'an authentication': { authType: 'openai' },
  effort: { effort: 'high' },
  'no sandbox': { sandbox: false },
};
for (const [name, options] of Object.entries(OPTIONS)) {
  test(`the option is accepted: ${name}`, async (t) => {
    const at = await place(t, [say('fine')]);
    assert.equal(result(await run(at, 'hi', options)).result, 'fine');
  });
}

test('aborting ends the process and what it started', async (t) => {
  const nap = 100_000 + Math.floor(Math.random() * 800_000);
  const at = await place(t, [say(call('run_shell_command', { command: `sleep ${nap}` }))]);
  const abortController = new AbortController();
  const reading = assert.rejects(all(start(at, 'go', { abortController, permissionMode: 'yolo' })));
  await until('the command runs', () => sleeping(nap).length);
  abortController.abort();
  await reading;
  await until('nothing is left', () => !children().length && !sleeping(nap).length);
});

test('a huge output stays readable', async (t) => {
  const at = await place(t, [say(call('run_shell_command', { command: 'cat big.txt' })), say('x'.repeat(200_000))]);
  writeFileSync(join(at.work, 'big.txt'), '0123456789abcdef\n'.repeat(100_000));
  const messages = await run(at, 'go', { permissionMode: 'yolo', includePartialMessages: true });
  assert.equal(result(messages).subtype, 'success');
  assert.ok(messages.every((m) => JSON.stringify(m).length < 65_536));
  assert.equal(blocks(messages, 'user', 'tool_result').length, 1);
});
