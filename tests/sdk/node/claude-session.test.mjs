// Claude's TypeScript SDK: what a host does with a running session besides talking to it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { binary, blocks, call, gate, place, result, say, signal, sleeping, until, user } from './model.mjs';

const WRITE = call('write_file', { file_path: 'out.txt', content: 'written' }, 'call_w');

/** A conversation: each prompt is sent when the result of the one before has been looked at by its function. */
async function converse(at, prompts, options = {}) {
  // One more than there are prompts: input stays open until the last result has been looked at.
  const turns = [...prompts, null].map(() => signal());
  turns[0].open();
  const running = query({
    prompt: (async function* () {
      for (const [number, [prompt]] of prompts.entries()) {
        await turns[number].promise;
        yield typeof prompt === 'string' ? user(prompt) : prompt;
      }
      await turns.at(-1).promise;
    })(),
    options: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...options },
  });
  const messages = [];
  let ended = 0;
  for await (const message of running) {
    messages.push(message);
    if (message.type !== 'result') continue;
    try {
      await prompts[ended][1]?.(running, message);
    } catch (error) {
      running.close();
      throw error;
    }
    turns[++ended].open();
  }
  return messages;
}

test('the handshake says what runs', async (t) => {
  const at = await place(t, [say('hi')]);
  await converse(at, [['hi', async (running) => {
    const said = await running.initializationResult();
    assert.ok(said.commands.every((c) => c.name && typeof c.description === 'string' && 'argumentHint' in c));
    assert.equal(said.output_style, 'default');
    assert.ok(said.available_output_styles.includes('default'));
    assert.ok(said.models[0].value && said.models[0].displayName);
    assert.equal((await running.accountInfo()).apiKeySource, 'OPENAI_API_KEY');
  }]]);
});

test('files are put back, and a look at it changes none', async (t) => {
  const at = await place(t, [say(WRITE), say('done')]);
  const uuid = randomUUID();
  const path = join(at.work, 'out.txt');
  await converse(at, [[{ ...user('go'), uuid }, async (running) => {
    assert.equal(readFileSync(path, 'utf8'), 'written');
    const look = await running.rewindFiles(uuid, { dryRun: true });
    assert.equal(look.canRewind, true);
    assert.ok(existsSync(path));
    const done = await running.rewindFiles(uuid);
    assert.deepEqual([done.canRewind, done.filesChanged.length], [true, 1]);
    assert.ok(!existsSync(path));
  }]], { permissionMode: 'acceptEdits', enableFileCheckpointing: true });
});

test('the use of the context and the state of servers can be asked', async (t) => {
  const at = await place(t, [say('hi', { usage: { prompt_tokens: 1000, completion_tokens: 24 } })]);
  const calc = createSdkMcpServer({ name: 'calc', tools: [tool('add', 'Adds', { a: z.number() }, async () => ({ content: [] }))] });
  await converse(at, [['hi', async (running) => {
    const usage = await running.getContextUsage();
    assert.ok(usage.totalTokens >= 1000 && usage.maxTokens > usage.totalTokens && usage.rawMaxTokens >= usage.maxTokens);
    assert.ok(usage.categories.every((c) => c.name && c.color && Number.isInteger(c.tokens)));
    const [server] = await running.mcpServerStatus();
    assert.deepEqual([server.name, server.status], ['calc', 'connected']);
    assert.deepEqual(server.tools.map((each) => each.name), ['add']);
    assert.ok(server.serverInfo.name && server.scope);
  }]], { mcpServers: { calc } });
});

test('a server can be switched off and on', async (t) => {
  const at = await place(t, [say('a'), say('b'), say('c')]);
  const calc = createSdkMcpServer({ name: 'calc', tools: [tool('add', 'Adds', { a: z.number() }, async () => ({ content: [] }))] });
  await converse(at, [
    ['1', (running) => running.toggleMcpServer('calc', false)],
    ['2', (running) => running.toggleMcpServer('calc', true)],
    ['3', (running) => assert.rejects(running.reconnectMcpServer('nobody'), /nobody/)],
  ], { mcpServers: { calc } });
  const offered = [await at.tools(0), await at.tools(1), await at.tools(2)].map((names) => names.includes('mcp__calc__add'));
  assert.deepEqual(offered, [true, false, true]);
});

test('a command in the background can be ended', async (t) => {
  const nap = 100_000 + Math.floor(Math.random() * 800_000);
  const at = await place(t, [say(call('Bash', { command: `sleep ${nap}`, run_in_background: true })), say('started')]);
  await converse(at, [['go', async (running) => {
    await until('the command runs', () => sleeping(nap).length);
    await running.stopTask('shell-1');
    await until('the command is gone', () => !sleeping(nap).length);
    await assert.rejects(running.stopTask('shell-9'), /shell-9/);
  }]], { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true });
});

test('what is not known is an error, and the session goes on', async (t) => {
  const at = await place(t, [say('a'), say('b')]);
  const messages = await converse(at, [
    ['1', (running) => assert.rejects(running.updateSettings('localSettings', { outputStyle: 'x' }), /update_settings/)],
    ['2'],
  ]);
  assert.deepEqual(messages.filter((m) => m.type === 'result').map((m) => m.result), ['a', 'b']);
});

test('usage, plugins and skills can be asked, and the mode of a server can be set', async (t) => {
  const at = await place(t, [say('a')]);
  await converse(at, [
    [
      '1',
      async (running) => {
        const { session, rate_limits_available: limits } = await running.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET();
        assert(session.model_usage.mock.inputTokens > 0 && limits === false, JSON.stringify(session));
        const { plugins, error_count: errors } = await running.reloadPlugins();
        assert.deepEqual([plugins, errors, (await running.reloadSkills()).skills], [[], 0, []]);
        assert.match((await running.setMcpPermissionModeOverride('db', 'default')).warning, /db/);
        assert.deepEqual(await running.setMcpPermissionModeOverride('db', null), {});
        await assert.rejects(running.readMcpResource('db', 'ui://x'), /db/);
      },
    ],
  ]);
});

test('cost is a running total', async (t) => {
  const spent = { usage: { prompt_tokens: 1000, completion_tokens: 100 } };
  const at = await place(t, [say('a', spent), say('b', spent)]);
  const settings = { model: { prices: { mock: { input: 1, output: 2 } } } };
  const messages = await converse(at, [['1'], ['2']], { settings: JSON.stringify(settings) });
  const costs = messages.filter((m) => m.type === 'result').map((m) => Math.round(m.total_cost_usd * 10_000));
  assert.deepEqual(costs, [12, 24]);
});

test('more input can be streamed into a running query', async (t) => {
  const at = await place(t, [say('one', gate('held')), say('two')]);
  const later = signal();
  const running = query({
    prompt: (async function* () { yield user('a'); await later.promise; })(),
    options: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env },
  });
  const ends = [];
  const adding = at.reached('held').then(async () => {
    await running.streamInput((async function* () { yield user('b'); })());
    await at.open('held');
  });
  for await (const message of running) {
    if (message.type !== 'result') continue;
    ends.push(message.result);
    if (ends.length === 2) later.open();
  }
  await adding;
  assert.deepEqual(ends, ['one', 'two']);
});

test('closing a query in the middle of a turn leaves nothing', async (t) => {
  const nap = 100_000 + Math.floor(Math.random() * 800_000);
  const at = await place(t, [say(call('run_shell_command', { command: `sleep ${nap}` }))]);
  const running = query({
    prompt: 'go',
    options: {
      pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env,
      permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true,
    },
  });
  const reading = (async () => { for await (const message of running) void message; })().catch(() => {});
  await until('the command runs', () => sleeping(nap).length);
  running.close();
  await reading;
  await until('the command is gone', () => !sleeping(nap).length);
});

test('sub-agents are asked about under their own name, and hooks know them', async (t) => {
  const at = await place(t, [
    say(call('agent', { description: 'look', prompt: 'Write it', subagent_type: 'writer' }, 'call_a')),
    say(WRITE), say('Written.'), say('done'),
  ]);
  const [asked, told] = [[], []];
  const running = query({
    prompt: 'go',
    options: {
      pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env,
      agents: { writer: { description: 'Writes', prompt: 'You write.' } },
      canUseTool: async (name, input, options) => { asked.push(options.agentID); return { behavior: 'allow', updatedInput: input }; },
      hooks: { PreToolUse: [{ matcher: 'Write', hooks: [async (input) => { told.push([input.agent_id, input.agent_type]); return {}; }] }] },
    },
  });
  const messages = [];
  for await (const message of running) messages.push(message);
  assert.equal(result(messages).result, 'done');
  assert.deepEqual(asked, ['call_a']);
  assert.deepEqual(told, [['call_a', 'writer']]);
  assert.equal(blocks(messages, 'user', 'tool_result').length, 2);
});
