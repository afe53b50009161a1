// Qwen Code's TypeScript SDK: the handshake, the questions, and the shapes of the lines.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSdkMcpServer, query, tool } from '@qwen-code/sdk';
import { z } from 'zod';
import { all, binary, call, gate, place, raw, result, say, signal, user } from './model.mjs';

const WRITE = call('write_file', { file_path: 'out.txt', content: 'written' }, 'call_w');

const start = (at, prompt, options = {}) =>
  query({ prompt, options: { pathToQwenExecutable: binary, cwd: at.work, env: at.env, ...options } });

/** A conversation of one prompt, after which the host does something before it lets go. */
async function after(at, options, then) {
  const over = signal();
  const running = start(at, (async function* () { yield user('go'); await over.promise; })(), options);
  const messages = [];
  for await (const message of running) {
    messages.push(message);
    if (message.type === 'result') {
      try {
        await then(running, messages);
      } finally {
        over.open();
      }
    }
  }
  return messages;
}

test('effort is told at the start and when it changes', async (t) => {
  const at = await place(t, [say('hi')]);
  await after(at, { effort: 'high' }, async (running) => {
    for (const status of [running.getInitialEffortStatus(), await running.setEffortStatus('low')]) {
      assert.deepEqual([status.applied, status.override], [true, null]);
    }
  });
  assert.equal((await at.requests())[0].reasoning_effort, 'high');
});

test('models, usage, context and commands can be asked', async (t) => {
  const at = await place(t, [say('hi', { usage: { prompt_tokens: 900, completion_tokens: 100 } })]);
  await after(at, {}, async (running) => {
    const { models } = await running.getAvailableModels();
    assert.deepEqual(Object.keys(models[0]).sort(), ['capabilities', 'contextWindowSize', 'id', 'label']);
    for (const range of ['today', 'week', 'month', 'all', undefined]) {
      const usage = await running.getUsageInfo(range);
      assert.deepEqual([usage.range, usage.summary.totalTokens, usage.summary.requests], [range ?? 'all', 1000, 1]);
      for (const field of ['inputTokens', 'outputTokens', 'cachedTokens', 'thoughtsTokens', 'sessions', 'toolCalls', 'linesAdded', 'linesRemoved', 'cacheReadRate']) {
        assert.equal(typeof usage.summary[field], 'number', field);
      }
      assert.deepEqual(usage.models.map((m) => [m.model, m.totalTokens, m.share]), [['mock', 1000, 1]]);
      assert.deepEqual(usage.daily.map((d) => [d.tokens, d.sessions]), [[1000, 1]]);
      assert.equal(usage.heatmap[usage.daily[0].date].tokens, 1000);
      assert.equal(usage.heatmapDays, 1);
      assert.ok(Array.isArray(usage.skills) && !Number.isNaN(Date.parse(usage.generatedAt)));
    }
    const context = await running.getContextUsage(true);
    assert.deepEqual([context.modelName, context.totalTokens], ['mock', 1000]);
    for (const field of ['systemPrompt', 'builtinTools', 'mcpTools', 'memoryFiles', 'skills', 'startupContext', 'messages', 'unattributed', 'cachedTokens', 'freeSpace', 'autocompactBuffer']) {
      assert.equal(typeof context.breakdown[field], 'number', field);
    }
    assert.deepEqual(Object.keys(context.breakdown.thresholds).sort(), ['auto', 'effectiveWindow', 'hard', 'warn']);
    assert.equal(context.breakdown.currentTier, 'normal');
    assert.ok(context.builtinTools.every((each) => each.name && each.tokens > 0));
    assert.ok((await running.supportedCommands()).commands.length);
    assert.deepEqual((await running.continueLastTurn()), { subtype: 'continue_last_turn', accepted: false, interruption: 'none' });
  });
});

test('the state of servers in the host is told', async (t) => {
  const at = await place(t, [say('hi')]);
  const calc = createSdkMcpServer({ name: 'calc', tools: [tool('add', 'Adds', { a: z.number() }, async () => ({ content: [] }))] });
  await after(at, { mcpServers: { calc } }, async (running, messages) => {
    assert.deepEqual((await running.mcpServerStatus()).status, { calc: 'connected' });
    assert.deepEqual(messages[0].mcp_servers, [{ name: 'calc', status: 'connected' }]);
  });
  assert.ok((await at.tools()).includes('mcp__calc__add'));
});

const QUESTIONS = {
  'a command': [call('run_shell_command', { command: 'touch made.txt' }), 'Allow Command', 'Execute: touch made.txt'],
  'an edit': [WRITE, 'Allow Edit', 'Edit file: out.txt'],
  'a function': [call('mcp__calc__add', { a: 1 }), 'Allow MCP Call', 'calc: add'],
  'a plan': [call('exit_plan_mode', { plan: 'First this.' }), 'Approve Plan', null],
};
for (const [name, [asked, label, description]] of Object.entries(QUESTIONS)) {
  test(`the question has its labels: ${name}`, async (t) => {
    const at = await place(t, [say(asked), say('done')]);
    const calc = createSdkMcpServer({ name: 'calc', tools: [tool('add', 'Adds', { a: z.number() }, async () => ({ content: [] }))] });
    const seen = [];
    await all(start(at, 'go', {
      mcpServers: { calc },
      ...(name === 'a plan' && { permissionMode: 'plan' }),
      canUseTool: async (tool, input, { suggestions }) => { seen.push(suggestions); return { behavior: 'deny', message: 'no' }; },
    }));
    assert.equal(seen.length, 1);
    const [first] = seen[0];
    assert.deepEqual([first.type, first.label], ['allow', label]);
    if (description) assert.equal(first.description, description);
  });
}

test('answers to questions of the model travel in the changed input', async (t) => {
  const questions = [{ question: 'Which?', header: 'Pick', options: [{ label: 'A', description: 'a' }, { label: 'B', description: 'b' }] }];
  const at = await place(t, [say(call('ask_user_question', { questions })), say('done')]);
  await all(start(at, 'go', {
    canUseTool: async (name, input) => ({ behavior: 'allow', updatedInput: { ...input, answers: { 'Which?': 'B' } } }),
  }));
  assert.match((await at.results())[0], /B/);
});

test('every line passes the guards and has its shape', async (t) => {
  const at = await place(t, [say({ thought: 'hm' }, 'I write', WRITE), say('done')]);
  const messages = await all(start(at, 'go', { permissionMode: 'yolo', includePartialMessages: true }));
  const need = {
    user: ['message'], assistant: ['uuid', 'message', 'session_id', 'parent_tool_use_id'], system: ['subtype', 'uuid', 'session_id'],
    result: ['subtype', 'duration_ms', 'is_error', 'uuid', 'session_id'], stream_event: ['uuid', 'session_id', 'event', 'parent_tool_use_id'],
  };
  for (const message of messages) for (const field of need[message.type]) assert.ok(field in message, `${message.type}.${field}`);
  const [init] = messages;
  for (const field of ['cwd', 'tools', 'mcp_servers', 'model', 'permission_mode', 'slash_commands', 'qwen_code_version', 'agents']) {
    assert.ok(field in init, field);
  }
  for (const { message } of messages.filter((m) => m.type === 'assistant')) {
    assert.equal(new Set(message.content.map((block) => block.type)).size, 1);
    assert.deepEqual([message.type, message.role], ['message', 'assistant']);
    assert.ok('stop_reason' in message && 'input_tokens' in message.usage && 'output_tokens' in message.usage);
  }
  const [answer] = messages.filter((m) => m.type === 'user').flatMap((m) => m.message.content);
  assert.deepEqual([answer.type, answer.tool_use_id, answer.is_error], ['tool_result', 'call_w', false]);
  const end = result(messages);
  for (const field of ['duration_api_ms', 'num_turns', 'result', 'usage', 'permission_denials']) assert.ok(field in end, field);
  const events = messages.filter((m) => m.type === 'stream_event').map((m) => m.event);
  const starts = events.filter((e) => e.type === 'message_start');
  assert.ok(starts.every(({ message }) => message.id && message.role === 'assistant' && message.model && message.content.length === 0));
});

test('usage adds up over the session', async (t) => {
  const spent = { usage: { prompt_tokens: 100, completion_tokens: 10 } };
  const at = await place(t, [say('a', spent), say('b', spent)]);
  const next = signal();
  const running = start(at, (async function* () { yield user('1'); await next.promise; yield user('2'); })());
  const used = [];
  for await (const message of running) {
    if (message.type !== 'result') continue;
    used.push(message.usage.input_tokens);
    next.open();
  }
  assert.deepEqual(used, [100, 200]);
});

test('an interrupted turn says so', async (t) => {
  const at = await place(t, [say('a', gate('never'))]);
  const over = signal();
  const running = start(at, (async function* () { yield user('go'); await over.promise; })());
  const stopping = at.reached('never').then(() => running.interrupt());
  let end;
  for await (const message of running) {
    if (message.type !== 'result') continue;
    end = message;
    over.open();
  }
  await stopping;
  assert.deepEqual([end.subtype, end.error.message], ['error_during_execution', 'Operation cancelled.']);
});

test('a command tells how far it is', async (t) => {
  const at = await place(t, [say(call('run_shell_command', { command: 'echo one; echo two' }, 'call_s')), say('done')]);
  const messages = await all(start(at, 'go', { permissionMode: 'yolo', includePartialMessages: true }));
  const told = messages.filter((m) => m.event?.type === 'tool_progress').map((m) => m.event);
  assert.ok(told.length);
  assert.deepEqual([told[0].tool_use_id, told[0].content.type], ['call_s', 'shell_progress']);
  assert.equal(typeof told[0].content.elapsedMs, 'number');
});

test('a slash command and a file of the prompt are looked after', async (t) => {
  const at = await place(t, [say('seen')]);
  const first = await all(start(at, '/help'));
  assert.equal(result(first).subtype, 'success');
  assert.equal((await at.requests()).length, 0);
  await all(start(at, 'what is in @nowhere.txt ?'));
  assert.match((await at.history())[0], /@nowhere\.txt/);
});

test('a flag that nobody knows ends the start', async (t) => {
  const at = await place(t, [say('never')]);
  await assert.rejects(all(start(at, 'go', { extraArgs: ['--no-such-flag'] })), /exited with code [1-9]/);
});

test('flags that are let through do no harm', async (t) => {
  const at = await place(t, [say('fine'), say('fine')]);
  const extra = ['--debug', '--bare', '--experimental-lsp', '--screen-reader', '--output-style', 'x', '--telemetry'];
  assert.equal(result(await all(start(at, 'go', { extraArgs: extra }))).result, 'fine');
  assert.equal(result(await all(start(at, 'go', { worktree: true, insecure: true }))).result, 'fine');
});

test('a refused call says that it was declined', async (t) => {
  const at = await place(t, [say(WRITE), say('a pity')]);
  await all(start(at, 'go', { canUseTool: async () => ({ behavior: 'deny', message: 'not today' }) }));
  assert.match((await at.results())[0], /was declined/);
  assert.ok(!existsSync(join(at.work, 'out.txt')));
});

test('the names of the tools are those of the reference, aliases too', async (t) => {
  const at = await place(t, [say(call('search_file_content', { pattern: 'x' })), say('done')]);
  const messages = await all(start(at, 'go'));
  for (const name of ['read_file', 'write_file', 'edit', 'glob', 'grep_search', 'list_directory', 'run_shell_command', 'todo_write', 'web_fetch', 'save_memory', 'ask_user_question', 'agent', 'exit_plan_mode']) {
    assert.ok(messages[0].tools.includes(name), name);
  }
  const [answer] = messages.filter((m) => m.type === 'user').flatMap((m) => m.message.content);
  assert.equal(answer.is_error, false);
});
