// Claude's TypeScript SDK, driving the program under test.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSdkMcpServer, getSessionMessages, listSessions, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { PIXEL, all, binary, blocks, call, children, gate, place, raw, result, say, signal, text, textOf, until, user } from './model.mjs';

const WRITE = call('write_file', { file_path: 'out.txt', content: 'written' }, 'call_w');

const start = (at, prompt, options = {}) =>
  query({ prompt, options: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...options } });

const run = (at, prompt, options) => all(start(at, prompt, options));

/** The messages of a query that ends in an error, and the error. */
async function failing(at, prompt, options) {
  const messages = [];
  let error;
  try {
    for await (const message of start(at, prompt, options)) messages.push(message);
  } catch (caught) {
    error = caught;
  }
  return { messages, error };
}

test('a prompt is answered by one success', async (t) => {
  const at = await place(t, [say('Hello ', 'there')]);
  const messages = await run(at, 'hi', { model: 'some-model' });
  const init = messages.find((m) => m.type === 'system' && m.subtype === 'init');
  assert.equal(init.model, 'some-model');
  assert.equal(init.cwd, at.work);
  assert.equal(init.permissionMode, 'default');
  assert.match(init.claude_code_version, /^\d+\.\d+\.\d+/);
  const end = result(messages);
  assert.deepEqual([end.subtype, end.is_error, end.result, end.session_id], ['success', false, 'Hello there', init.session_id]);
  assert.equal(text(messages), 'Hello there');
  assert.deepEqual(end.permission_denials, []);
  assert.equal(typeof end.total_cost_usd, 'number');
});

test('lines of a prompt are turns of one conversation', async (t) => {
  const at = await place(t, [say('one'), say('two')]);
  const first = signal();
  const running = start(at, (async function* () {
    yield user('a');
    await first.promise;
    yield user('b');
  })());
  const ends = [];
  for await (const message of running) {
    if (message.type === 'result') {
      ends.push(message.result);
      first.open();
    }
  }
  assert.deepEqual(ends, ['one', 'two']);
  assert.deepEqual(await at.history(), ['a', 'one', 'b']);
});

test('system prompts travel in initialize', async (t) => {
  const at = await place(t, [say('a'), say('b'), say('c')]);
  await run(at, 'hi', { systemPrompt: 'Be a pirate.' });
  await run(at, 'hi', { systemPrompt: { type: 'preset', preset: 'claude_code', append: 'Be polite.' } });
  assert.match(await at.system(0), /Be a pirate\./);
  assert.match(await at.system(1), /Be polite\./);
  assert.doesNotMatch(await at.system(1), /pirate/);
});

test('an allowed call runs, with the input that the host gives it', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const asked = [];
  const messages = await run(at, 'go', {
    canUseTool: async (name, input, options) => {
      asked.push({ name, input, options });
      return { behavior: 'allow', updatedInput: { ...input, content: 'changed' } };
    },
  });
  assert.equal(asked.length, 1);
  assert.equal(asked[0].input.content, 'written');
  assert.equal(asked[0].options.toolUseID, 'call_w');
  assert.ok(Array.isArray(asked[0].options.suggestions));
  assert.equal(readFileSync(join(at.work, 'out.txt'), 'utf8'), 'changed');
  assert.equal(result(messages).result, 'done');
});

test('a denied call does not run and is listed', async (t) => {
  const at = await place(t, [say(WRITE), say('a pity')]);
  const messages = await run(at, 'go', { canUseTool: async () => ({ behavior: 'deny', message: 'not today' }) });
  assert.ok(!existsSync(join(at.work, 'out.txt')));
  assert.deepEqual(result(messages).permission_denials.map((d) => d.tool_use_id), ['call_w']);
  assert.match((await at.results())[0], /not today/);
});

test('a denial can end the turn', async (t) => {
  const at = await place(t, [say(WRITE), say('never')]);
  const { messages } = await failing(at, 'go', { canUseTool: async () => ({ behavior: 'deny', message: 'stop', interrupt: true }) });
  assert.equal(result(messages).subtype, 'error_during_execution');
  assert.ok(result(messages).errors.length);
  assert.equal((await at.requests()).length, 1);
});

test('a callback that throws denies', async (t) => {
  const at = await place(t, [say(WRITE), say('a pity')]);
  const messages = await run(at, 'go', { canUseTool: async () => { throw new Error('the dialog broke'); } });
  assert.ok(!existsSync(join(at.work, 'out.txt')));
  assert.equal(blocks(messages, 'user', 'tool_result')[0].is_error, true);
});

for (const [mode, writes] of [['default', false], ['plan', false], ['acceptEdits', true], ['bypassPermissions', true]]) {
  test(`in the mode ${mode} a file is ${writes ? '' : 'not '}written unasked`, async (t) => {
    const at = await place(t, [say(WRITE), say('done')]);
    const more = mode === 'bypassPermissions' ? { allowDangerouslySkipPermissions: true } : {};
    await run(at, 'go', { permissionMode: mode, ...more });
    assert.equal(existsSync(join(at.work, 'out.txt')), writes);
  });
}

test('allowed, disallowed and chosen tools', async (t) => {
  const at = await place(t, [say(WRITE), say('done'), say('a'), say('b')]);
  await run(at, 'go', { allowedTools: ['Write'] });
  assert.ok(existsSync(join(at.work, 'out.txt')));
  await run(at, 'hi', { disallowedTools: ['Bash'] });
  assert.ok(!(await at.tools()).includes('Bash'));
  await run(at, 'hi', { tools: ['Read'] });
  assert.deepEqual(await at.tools(), ['Read']);
});

test('functions of the host are tools', async (t) => {
  const at = await place(t, [say(call('mcp__calc__add', { a: 2, b: 3 })), say(call('mcp__calc__picture')), say('done')]);
  const server = createSdkMcpServer({
    name: 'calc',
    tools: [
      tool('add', 'Adds', { a: z.number(), b: z.number() }, async ({ a, b }) => ({ content: [{ type: 'text', text: `sum ${a + b}` }] })),
      tool('picture', 'Shows', {}, async () => ({ content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] })),
    ],
  });
  const messages = await run(at, 'go', { mcpServers: { calc: server }, allowedTools: ['mcp__calc__add', 'mcp__calc__picture'] });
  assert.equal(result(messages).result, 'done');
  assert.match((await at.results(1))[0], /sum 5/);
  const parts = (await at.messages(2)).flatMap((m) => (Array.isArray(m.content) ? m.content : []));
  assert.deepEqual(parts.filter((p) => p.type === 'image_url').map((p) => p.image_url.url), [`data:image/png;base64,${PIXEL}`]);
});

test('a function that fails is an error result', async (t) => {
  const at = await place(t, [say(call('mcp__calc__crash')), say('a pity')]);
  const server = createSdkMcpServer({ name: 'calc', tools: [tool('crash', 'Crashes', {}, async () => { throw new Error('a bug'); })] });
  const messages = await run(at, 'go', { mcpServers: { calc: server }, allowedTools: ['mcp__calc__crash'] });
  assert.equal(blocks(messages, 'user', 'tool_result')[0].is_error, true);
  assert.match((await at.results())[0], /a bug/);
});

test('pieces are in order and add up, arguments too', async (t) => {
  const bits = ['{"pa', 'th": ', '"."}'];
  const at = await place(t, [
    raw('tool_calls', { content: 'one ' }, { content: 'two' },
      { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'list_directory', arguments: '' } }] },
      ...bits.map((bit) => ({ tool_calls: [{ index: 0, function: { arguments: bit } }] }))),
    say('three'),
  ]);
  const messages = await run(at, 'go', { includePartialMessages: true });
  const events = messages.filter((m) => m.type === 'stream_event').map((m) => m.event);
  const deltas = events.filter((e) => e.type === 'content_block_delta').map((e) => e.delta);
  assert.equal(deltas.filter((d) => d.type === 'text_delta').map((d) => d.text).join(''), text(messages));
  const pieces = deltas.filter((d) => d.type === 'input_json_delta').map((d) => d.partial_json).filter(Boolean);
  assert.deepEqual(pieces, bits);
  const kinds = events.map((e) => e.type);
  assert.equal(kinds[0], 'message_start');
  assert.deepEqual(kinds.slice(-2), ['message_delta', 'message_stop']);
});

test('an interrupt stops the words and keeps the session', async (t) => {
  const at = await place(t, [say('I was ', gate('never')), say('fresh')]);
  const next = signal();
  const running = start(at, (async function* () {
    yield user('talk');
    await next.promise;
    yield user('again');
  })(), { includePartialMessages: true });
  const ends = [];
  let asked = false;
  for await (const message of running) {
    if (message.type === 'stream_event' && message.event.delta?.text && !asked) {
      asked = true;
      await running.interrupt();
    }
    if (message.type === 'result') {
      ends.push(message);
      next.open();
    }
  }
  assert.deepEqual(ends.map((end) => end.subtype), ['error_during_execution', 'success']);
  assert.equal(ends[1].result, 'fresh');
});

test('an interrupt takes a question back', async (t) => {
  const at = await place(t, [say(WRITE), say('fresh')]);
  const [asked, aborted, next] = [signal(), signal(), signal()];
  const running = start(at, (async function* () {
    yield user('go');
    await next.promise;
    yield user('again');
  })(), {
    canUseTool: (name, input, { signal: abort }) => new Promise((_, reject) => {
      abort.addEventListener('abort', () => { aborted.open(); reject(new Error('taken back')); });
      asked.open();
    }),
  });
  const stopping = asked.promise.then(() => running.interrupt());
  const ends = [];
  for await (const message of running) {
    if (message.type === 'result') {
      ends.push(message.subtype);
      next.open();
    }
  }
  await Promise.all([stopping, aborted.promise]);
  assert.deepEqual(ends, ['error_during_execution', 'success']);
  assert.ok(!existsSync(join(at.work, 'out.txt')));
});

test('model, mode and questions about the session', async (t) => {
  const at = await place(t, [say('one'), say(WRITE), say('two')]);
  const next = signal();
  const running = start(at, (async function* () {
    yield user('a');
    await next.promise;
    yield user('b');
  })(), { model: 'first' });
  let ends = 0;
  for await (const message of running) {
    if (message.type !== 'result' || ++ends > 1) continue;
    await running.setModel('second');
    await running.setPermissionMode('acceptEdits');
    assert.ok(Array.isArray(await running.supportedCommands()));
    assert.ok((await running.supportedModels())[0].value);
    assert.ok((await running.supportedAgents()).every((agent) => agent.name));
    assert.deepEqual(await running.mcpServerStatus(), []);
    assert.equal(typeof (await running.accountInfo()), 'object');
    await assert.rejects(running.setPermissionMode('bogus'), /bogus/);
    next.open();
  }
  assert.deepEqual((await at.requests()).map((r) => r.model), ['first', 'second', 'second']);
  assert.ok(existsSync(join(at.work, 'out.txt')));
});

test('hooks may refuse, change, add and block', async (t) => {
  const at = await place(t, [say(WRITE), say(call('list_directory', { path: '.' })), say('done')]);
  const seen = [];
  const messages = await run(at, 'go', {
    permissionMode: 'acceptEdits',
    hooks: {
      PreToolUse: [{ matcher: 'Write', hooks: [async (input) => {
        seen.push(input.hook_event_name);
        return { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'frozen' } };
      }] }],
      PostToolUse: [{ hooks: [async (input) => {
        seen.push(input.hook_event_name);
        return { hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: 'and mind the gap' } };
      }] }],
      UserPromptSubmit: [{ hooks: [async (input) => { seen.push(input.prompt); return {}; }] }],
      Stop: [{ hooks: [async (input) => { seen.push(input.last_assistant_message); return {}; }] }],
    },
  });
  assert.equal(result(messages).result, 'done');
  assert.deepEqual(seen, ['go', 'PreToolUse', 'PostToolUse', 'done']);
  assert.ok(!existsSync(join(at.work, 'out.txt')));
  assert.match((await at.messages()).filter((m) => m.role !== 'system').map(textOf).join('\n'), /frozen[^]*mind the gap/);
});

test('sessions are named, resumed, continued and forked', async (t) => {
  const at = await place(t, [say('one'), say('two'), say('three'), say('four')]);
  const id = randomUUID();
  assert.equal(result(await run(at, 'a', { sessionId: id })).session_id, id);
  assert.equal(result(await run(at, 'b', { resume: id })).session_id, id);
  assert.equal(result(await run(at, 'c', { continue: true })).session_id, id);
  assert.notEqual(result(await run(at, 'd', { resume: id, forkSession: true })).session_id, id);
  assert.deepEqual(await at.history(), ['a', 'one', 'b', 'two', 'c', 'three', 'd']);
});

test('a session nobody knows is an error result', async (t) => {
  const at = await place(t, [say('never')]);
  const id = randomUUID();
  const { messages, error } = await failing(at, 'hi', { resume: id });
  assert.ok(error || messages.some((m) => m.type === 'result' && m.is_error));
  assert.match(String(error) + JSON.stringify(messages), new RegExp(`No conversation found with session ID: ${id}`));
  assert.deepEqual(await at.requests(), []);
});

test('the SDK lists and reads our sessions', async (t) => {
  const at = await place(t, [say('one')]);
  const kept = process.env.CLAUDE_CONFIG_DIR;
  process.env.CLAUDE_CONFIG_DIR = at.env.CLAUDE_CONFIG_DIR;
  t.after(() => (kept === undefined ? delete process.env.CLAUDE_CONFIG_DIR : (process.env.CLAUDE_CONFIG_DIR = kept)));
  const id = result(await run(at, 'A first prompt')).session_id;
  const [listed] = await listSessions({ dir: at.work });
  assert.deepEqual([listed.sessionId, listed.firstPrompt], [id, 'A first prompt']);
  const messages = await getSessionMessages(id, { dir: at.work });
  assert.deepEqual(messages.map((m) => m.type), ['user', 'assistant']);
});

test('an error of the model is a result', async (t) => {
  const at = await place(t, [{ steps: [{ status: 400, body: { error: { message: 'an odd prompt' } } }] }]);
  const { messages } = await failing(at, 'hi');
  const end = result(messages);
  assert.deepEqual([end.subtype, end.is_error, end.api_error_status, end.terminal_reason], ['success', true, 400, 'api_error']);
  assert.match(end.result, /^API Error: 400 .*an odd prompt/);
  assert.equal(messages.find((m) => m.type === 'assistant').message.model, '<synthetic>');
});

test('the limit of turns is a result', async (t) => {
  const at = await place(t, [say(call('list_directory', { path: '.' }))], { loop: true });
  const { messages } = await failing(at, 'go', { maxTurns: 2 });
  assert.equal(result(messages).subtype, 'error_max_turns');
  assert.ok(result(messages).errors.length);
});

test('agents of the host do their part', async (t) => {
  const at = await place(t, [
    say(call('agent', { description: 'look', prompt: 'Look at it', subagent_type: 'reviewer' }, 'call_a')),
    say(call('list_directory', { path: '.' })), say('Fine.'), say('All is well.'),
  ]);
  const messages = await run(at, 'go', {
    agents: { reviewer: { description: 'Reviews', prompt: 'You review with care.', tools: ['LS'] } },
  });
  assert.equal(result(messages).result, 'All is well.');
  assert.match(await at.system(1), /You review with care\./);
  assert.ok(messages.some((m) => m.parent_tool_use_id === 'call_a'));
});

test('an image reaches the model as an image', async (t) => {
  const at = await place(t, [say('A pixel.')]);
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } };
  await run(at, (async function* () { yield user([{ type: 'text', text: 'What?' }, image]); })());
  assert.deepEqual((await at.messages()).at(-1).content.map((p) => p.type), ['text', 'image_url']);
});

test('structured output follows its schema', async (t) => {
  const at = await place(t, [say(call('StructuredOutput', { n: 42 })), say('done')]);
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const messages = await run(at, 'count', { outputFormat: { type: 'json_schema', schema } });
  assert.deepEqual(result(messages).structured_output, { n: 42 });
});

const OPTIONS = {
  'setting sources': { settingSources: ['user', 'project'] },
  settings: { settings: { permissions: { allow: [] } } },
  'more directories': { additionalDirectories: ['/tmp'] },
  'a fallback model': { fallbackModel: 'other' },
  thinking: { thinking: { type: 'adaptive' } },
  'a budget for thinking': { maxThinkingTokens: 1024 },
  effort: { effort: 'high' },
  'a budget': { maxBudgetUsd: 5, model: 'claude-sonnet-4' },
  'betas': { betas: ['context-1m-2025-08-07'] },
  'hook events': { includeHookEvents: true },
  'strict MCP': { strictMcpConfig: true },
  'no persistence': { persistSession: false },
  debugging: { debug: true },
  'file checkpoints': { enableFileCheckpointing: true },
  'an agent for the main thread': { agent: 'reviewer', agents: { reviewer: { description: 'Reviews.', prompt: 'Review.' } } },
};
for (const [name, options] of Object.entries(OPTIONS)) {
  test(`the option is accepted: ${name}`, async (t) => {
    const at = await place(t, [say('fine')]);
    assert.equal(result(await run(at, 'hi', options)).result, 'fine');
  });
}

test('aborting ends the process', async (t) => {
  const at = await place(t, [say('one', gate('never'))]);
  const abortController = new AbortController();
  const running = start(at, 'hi', { abortController });
  await assert.rejects(async () => {
    for await (const message of running) {
      if (message.type === 'system') {
        await at.reached('never');
        assert.equal(children().length, 1);
        abortController.abort();
      }
    }
  });
  await until('the process is gone', () => !children().length);
});

test('what it says on standard error reaches the callback', async (t) => {
  const at = await place(t, [say('fine')]);
  writeFileSync(join(at.work, 'x'), '');
  const lines = [];
  await run(at, 'hi', { stderr: (line) => lines.push(line), betas: ['context-1m-2025-08-07'] });
  assert.match(lines.join(''), /betas/);
});
