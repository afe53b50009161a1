// Claude's TypeScript SDK: commands in the background and sub-agents.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { query } from '@anthropic-ai/claude-agent-sdk';
import { all, binary, call, gate, place, result, say, signal, user } from './model.mjs';

const BYPASS = { permissionMode: 'bypassPermissions', allowDangerouslySkipPermissions: true };
const DIG = { description: 'dig', prompt: 'Dig!' };

const tasks = (messages, subtype) => messages.filter((m) => m.type === 'system' && m.subtype === subtype);

test('a sub-agent tells its steps', async (t) => {
  const at = await place(t, [
    say(call('agent', DIG, 'call_a')),
    say(call('list_directory', { path: '.' })),
    say('I found gold.'),
    say('Gold!'),
  ]);
  const options = { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...BYPASS };
  const messages = await all(query({ prompt: 'go', options }));
  assert.equal(result(messages).result, 'Gold!');
  const [[started], [progress], [ended]] = ['started', 'progress', 'notification'].map((w) => tasks(messages, `task_${w}`));
  assert.deepEqual([started.tool_use_id, started.subagent_type, started.is_backgrounded], ['call_a', 'general-purpose', false]);
  assert.deepEqual([progress.last_tool_name, typeof progress.usage.total_tokens], ['LS', 'number']);
  assert.deepEqual([ended.status, ended.summary, ended.usage.tool_uses], ['completed', 'I found gold.', 1]);
});

test('tasks are told from their start to their end', async (t) => {
  const at = await place(t, [
    { match: 'go', ...say(call('agent', { ...DIG, run_in_background: true }, 'call_a')) },
    { match: 'Dig!', ...say(gate('dug'), 'I found gold.') },
    { match: 'go', ...say('It digs.') },
  ]);
  const over = signal();
  const running = query({
    prompt: (async function* () {
      yield user('go');
      await over.promise;
    })(),
    options: { pathToClaudeCodeExecutable: binary, cwd: at.work, env: at.env, ...BYPASS },
  });
  const messages = [];
  for await (const message of running) {
    messages.push(message);
    if (message.type === 'result') {
      await at.reached('dug');
      await at.open('dug');
    }
    if (message.subtype === 'task_notification') {
      assert.equal(readFileSync(message.output_file, 'utf8'), 'I found gold.\n');
      over.open();
    }
  }
  const [[started], [ended]] = [tasks(messages, 'task_started'), tasks(messages, 'task_notification')];
  assert.deepEqual([started.task_id, started.is_backgrounded, ended.task_id, ended.status], ['agent-1', true, 'agent-1', 'completed']);
});
